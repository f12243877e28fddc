import jsonschema_rs
import pytest

from app.ml.catalogue.algorithm_files import every_entry


def test_the_catalogue_is_served_whole_and_in_pages(client):
    whole = client.get("/v1/algorithms").json()
    assert [card["name"] for card in whole["items"]] == sorted(every_entry())
    assert "next_cursor" not in whole
    pages, cursor = [], None
    while True:
        page = client.get("/v1/algorithms", params={"limit": 1} | ({"cursor": cursor} if cursor else {})).json()
        pages += page["items"]
        cursor = page.get("next_cursor")
        if cursor is None:
            break
    assert pages == whole["items"]


@pytest.mark.parametrize("name", sorted(every_entry()))
def test_a_card_says_what_its_file_says(client, name):
    card = client.get(f"/v1/algorithms/{name}").json()
    entry = every_entry()[name]
    assert all(card[part] for part in ("title", "gist", "method", "use_when", "references"))
    assert card["tasks"] == sorted(entry.algorithm.tasks)
    defaults = entry.algorithm.params().model_dump(mode="json")
    schema = card["parameters"]
    assert set(schema["properties"]) == set(defaults)
    jsonschema_rs.validator_for(schema, retriever=_retriever(client)).validate(defaults)


def _retriever(client):
    """References to the service's own documents are followed on the service."""

    def retrieve(uri):
        return client.get(uri.removeprefix("json-schema://")).json()

    return retrieve


def test_a_learner_is_checked_as_an_algorithm(client):
    schema = client.get("/v1/algorithms/bagging").json()["parameters"]
    validator = jsonschema_rs.validator_for(schema, retriever=_retriever(client))
    assert validator.is_valid({"estimator": {"name": "ridge", "l2": 2.0}})
    assert not validator.is_valid({"estimator": {"name": "ridge", "l2": "much"}})


def test_the_catalogue_stays_small(client):
    """Algorithms made of learners refer to the OpenAPI document instead of repeating every other algorithm."""
    found = client.get("/v1/algorithms")
    assert len(found.content) < 2_800 * len(found.json()["items"])
    schema = client.get("/v1/algorithms/bagging").json()["parameters"]
    assert schema["$defs"] == {"Learner": {"$ref": "/openapi.json#/components/schemas/Learner"}}


def test_classifiers_say_what_they_learn_and_what_their_shares_are(client):
    """B3.3, B3.9."""
    cards = {card["name"]: card for card in client.get("/v1/algorithms").json()["items"]}
    assert [name for name, card in cards.items() if card.get("family") == "generative"] == ["generative_bayes"]
    assert {cards[name]["scores"] for name in ("logistic", "knn", "random_forest", "perceptron")} == {"probability"}
    assert {cards[name]["scores"] for name in ("linear", "ridge")} == {"membership"}
    assert not {"family", "scores"} & cards["lasso"].keys()


def test_every_number_among_the_parameters_has_bounds(client):
    """So that a form can be drawn for it; each parameter has a sentence, and a default or a word on its absence."""

    def unbounded(schema):
        inner = [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]
        if any(one.get("type") == "string" for one in inner):  # a class label, which may be a number
            return False
        if schema.get("type") in {"number", "integer"}:
            keys = " ".join(schema).lower()
            return not ("minimum" in keys and "maximum" in keys)
        return any(map(unbounded, inner))

    for card in client.get("/v1/algorithms").json()["items"]:
        parameters = card["parameters"]["properties"]
        assert [name for name, schema in parameters.items() if unbounded(schema)] == [], card["name"]
        assert [name for name, schema in parameters.items() if not schema.get("description")] == []
        assert [name for name, s in parameters.items() if "default" not in s and "Absent" not in s["description"]] == []


def test_an_unknown_algorithm_is_refused_with_the_known_ones(client):
    problem = client.get("/v1/algorithms/magic").json()
    assert "ridge" in problem["detail"]
    assert "magic" not in problem["detail"]
