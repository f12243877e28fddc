"""Calculators of learning theory over HTTP."""

from app.ml.operations import calculator_entries


def test_every_calculator_is_listed_with_its_route(client):
    items = client.get("/v1/theory").json()["items"]
    assert [item["name"] for item in items] == list(calculator_entries())
    paths = client.get("/openapi.json").json()["paths"]
    assert all("post" in paths[item["path"]] for item in items)


def test_pages_of_the_list(client):
    first = client.get("/v1/theory", params={"limit": 2}).json()
    second = client.get("/v1/theory", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [item["name"] for item in first["items"] + second["items"]] == list(calculator_entries())[:4]


def test_a_result_has_its_formula_its_source_and_a_curve(client):
    response = client.post("/v1/theory/pac", json={"class_size": 1000, "epsilon": 0.1, "delta": 0.05})
    assert response.status_code == 200
    result = response.json()
    assert result["values"][0] == {
        "name": "rows", "value": 100.0, "description": "Number of training rows that are enough."
    }  # fmt: skip
    assert result["formula"]
    assert result["source"]
    assert result["assumptions"]
    [curve] = result["curves"]
    assert len(curve["x"]) == len(curve["series"][0]["y"])


def test_faults_are_named_with_their_places(client):
    response = client.post("/v1/theory/pac", json={"class_size": 0, "rows": -1, "delta": 2})
    assert response.status_code == 422
    assert {fault["pointer"] for fault in response.json()["errors"]} == {"/class_size", "/rows", "/delta"}
    response = client.post("/v1/theory/no_free_lunch", json={"points": 30, "rows": 30})
    assert response.status_code == 422
    assert {fault["code"] for fault in response.json()["errors"]} == {"limit"}
    assert client.post("/v1/theory/astrology", json={}).status_code == 404
