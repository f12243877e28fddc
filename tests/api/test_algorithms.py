import jsonschema_rs
import pytest

from app.ml.catalogue import catalogue


def test_the_catalogue_is_served_whole_and_in_pages(client):
    whole = client.get("/v1/algorithms").json()
    assert [card["name"] for card in whole["items"]] == sorted(catalogue())
    assert "next_cursor" not in whole
    pages, cursor = [], None
    while True:
        page = client.get("/v1/algorithms", params={"limit": 1} | ({"cursor": cursor} if cursor else {})).json()
        pages += page["items"]
        cursor = page.get("next_cursor")
        if cursor is None:
            break
    assert pages == whole["items"]


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_a_card_says_what_its_file_says(client, name):
    card = client.get(f"/v1/algorithms/{name}").json()
    entry = catalogue()[name]
    assert all(card[part] for part in ("title", "gist", "method", "use_when", "references"))
    assert card["tasks"] == sorted(entry.algorithm.tasks)
    defaults = entry.algorithm.params().model_dump(mode="json")
    schema = card["parameters"]
    assert set(schema["properties"]) == set(defaults)
    jsonschema_rs.validator_for(schema).validate(defaults)


def test_an_unknown_algorithm_is_told_the_known_ones(client):
    problem = client.get("/v1/algorithms/magic").json()
    assert "ridge" in problem["detail"]
    assert "magic" not in problem["detail"]
