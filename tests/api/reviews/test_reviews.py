"""The review queue: rejected rows are stored before the response, labelled by people, exported once, and trained on."""

import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

MODEL = "doubtful"


@pytest.fixture(scope="module")
def model(client, done):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 2))
    lines = ["a,site,y", *(f"{a:.6f},{'north' if b > 0 else 'south'},{'yes' if a > 0 else 'no'}" for a, b in x)]
    dataset = client.post("/v1/datasets", content="\n".join(lines)).json()["id"]
    done("train", {"model": MODEL, "dataset": dataset, "target": "y", "algorithm": {"name": "logistic", "l2": 0.1}})
    return MODEL


def predict(client, rows, model=MODEL, **query):
    query = {"review": "true", "min_probability": 0.9} | query
    return client.post(f"/v1/models/{model}/predict", json={"rows": rows}, params=query)


def listed(client, **query):
    return client.get("/v1/reviews", params=query).json()["items"]


def test_a_rejected_row_is_filed_labelled_and_exported_once(client, model):
    rows = [{"a": 3.0, "site": "north"}, {"a": 0.01, "site": "south"}, {"a": -0.02, "site": None}]
    response = predict(client, rows)
    assert response.json()["decisions"] == ["accepted", "rejected", "rejected"]
    assert response.headers["x-filed-reviews"] == "2"
    again = predict(client, rows)  # a retry files nothing twice
    assert (again.content, again.headers["x-filed-reviews"]) == (response.content, "2")
    oldest, newest = sorted(listed(client, model=model), key=lambda one: rows.index(one["row"]))
    assert oldest["row"] == rows[1]
    assert list(newest["row"]) == ["a", "site"]
    assert newest["row"] == rows[2]
    assert (newest["state"], newest["classes"], newest["target"]) == ("waiting", ["no", "yes"], "y")
    assert sum(newest["probabilities"]) == pytest.approx(1)
    assert newest["probabilities"] == response.json()["probabilities"][2]

    labelled = client.post(f"/v1/reviews/{newest['id']}/label", json={"label": "no"}).json()
    assert (labelled["state"], labelled["label"]) == ("labelled", "no")
    assert [one["id"] for one in listed(client, model=model, state="waiting")] == [oldest["id"]]
    made = client.post("/v1/reviews/export", json={"model": model, "name": "from people"})
    assert (made.status_code, made.json()["rows"]) == (201, 1)
    assert client.get(made.headers["location"]).json()["name"] == "from people"
    window = client.get(f"{made.headers['location']}/rows").json()
    assert (window["columns"], window["data"]) == (["a", "site", "y"], [[-0.02, None, "no"]])
    assert listed(client, model=model, state="exported")[0]["dataset"] == made.json()["id"]
    refused = client.post("/v1/reviews/export", json={"model": model})
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (422, "nothing_labelled")
    assert client.post("/v1/reviews/export", json={"model": model, "again": True}).json()["rows"] == 1
    assert client.post(f"/v1/reviews/{newest['id']}/label", json={"label": "yes"}).json()["state"] == "labelled"
    assert client.post("/v1/reviews/export", json={"model": model}).json()["rows"] == 1  # the label is new
    waits = client.post(f"/v1/reviews/{newest['id']}/label", json={"label": None}).json()
    assert waits["state"] == "waiting"
    assert "label" not in waits


def test_every_format_files_the_same_rows(client, model):
    table = pa.table({"a": [0.03, 5.0], "site": ["south", "south"]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    query = "review=true&min_probability=0.9"
    for body, kind in ((sink.getvalue(), "application/vnd.apache.arrow.stream"), (b"a,site\n0.03,south\n", "text/csv")):
        response = client.post(
            f"/v1/models/{model}/predict?{query}",
            content=body,
            headers={"Content-Type": kind, "Accept": "application/x-npy"},
        )
        assert (response.status_code, response.headers["x-filed-reviews"]) == (200, "1")
    assert [one["row"] for one in listed(client, model=model)].count({"a": 0.03, "site": "south"}) == 1


def test_rows_of_a_model_of_numbers_only_are_filed_from_their_matrix(client, numeric):
    name = numeric()
    rows = [{"x": 0.125, "y": 0, "z": 2}, {"x": 0.25, "y": -1, "z": 3.5}]
    assert predict(client, rows, name, min_probability=1).headers["x-filed-reviews"] == "2"
    found = sorted((one["row"] for one in listed(client, model=name)), key=lambda row: row["x"])
    assert found == [{"x": 0.125, "y": 0.0, "z": 2.0}, {"x": 0.25, "y": -1.0, "z": 3.5}]


def test_a_model_that_rejects_rows_itself_needs_no_rule(client, done):
    lines = ["a,y", *(f"{number},{'even' if number % 2 else 'odd'}" for number in range(40))]
    dataset = client.post("/v1/datasets", content="\n".join(lines)).json()["id"]
    algorithm = {"name": "knn", "n_neighbors": 2, "rule": "unanimity"}
    body = {"model": "unanimous", "dataset": dataset, "target": "y", "features": ["a"], "algorithm": algorithm}
    done("train", body)
    response = client.post("/v1/models/unanimous/predict?review=true", json={"rows": [{"a": 4.5}]})
    assert (response.json()["predictions"], response.headers["x-filed-reviews"]) == ([None], "1")


def test_faults_are_named(client, model, numeric):
    nothing = client.post(f"/v1/models/{model}/predict?review=true", json={"rows": [{"a": 1, "site": "north"}]})
    assert (nothing.status_code, nothing.json()["errors"][0]["pointer"]) == (422, "/query/review")
    regression = numeric("ridge", "y")
    refused = client.post(f"/v1/models/{regression}/predict?review=true", json={"rows": [{"x": 1, "z": 2}]})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/query/review")
    predict(client, [{"a": 0.005, "site": "north"}])
    review = listed(client, model=model, state="waiting")[0]
    wrong = client.post(f"/v1/reviews/{review['id']}/label", json={"label": "yess"}).json()
    assert (wrong["errors"][0]["pointer"], wrong["errors"][0]["code"]) == ("/label", "unknown_class")
    assert "did you mean 'yes'" in wrong["errors"][0]["detail"]
    nowhere = "019c0000-0000-7000-8000-000000000000"
    assert client.post(f"/v1/reviews/{nowhere}/label", json={"label": "yes"}).json()["code"] == "review_not_found"
    assert client.delete(f"/v1/reviews/{nowhere}").status_code == 404
    assert client.post("/v1/reviews/mine/label", json={"label": "yes"}).status_code == 422
    assert client.get("/v1/reviews", params={"cursor": "x"}).status_code == 422
    assert client.delete(f"/v1/reviews/{review['id']}").status_code == 204
    assert review["id"] not in {one["id"] for one in listed(client, model=model)}


def test_pages_hold_each_row_once(client, model):
    predict(client, [{"a": number / 1e4, "site": "north"} for number in range(7)], min_probability=0.99)
    found, cursor = [], None
    while cursor is not None or not found:
        page = client.get("/v1/reviews", params={"model": model, "limit": 2} | ({"cursor": cursor} if cursor else {}))
        found += [one["id"] for one in page.json()["items"]]
        cursor = page.json().get("next_cursor")
    assert len(found) == len(set(found)) >= 7
    assert found == sorted(found, reverse=True)


def test_two_exports_at_once_share_no_row(client, model):
    for review in listed(client, model=model, state="waiting"):
        client.post(f"/v1/reviews/{review['id']}/label", json={"label": "yes"})
    waiting = len(listed(client, model=model, state="labelled"))

    def export(_):
        return client.post("/v1/reviews/export", json={"model": model, "name": "race"})

    with ThreadPoolExecutor(4) as pool:
        responses = list(pool.map(export, range(4)))
    made = [one for one in responses if one.status_code == 201]
    assert {one.status_code for one in responses} <= {201, 409, 422}
    assert sum(one.json()["rows"] for one in made) == waiting > 0
    assert listed(client, model=model, state="labelled") == []


def test_a_full_queue_refuses_and_predicts_without_review(client, model, monkeypatch):
    monkeypatch.setattr(client.app.services.reviews, "_most", 0)
    refused = predict(client, [{"a": 0.0007, "site": "north"}])
    assert (refused.status_code, refused.json()["code"]) == (429, "reviews_full")
    assert predict(client, [{"a": 0.0007, "site": "north"}], review="false").status_code == 200
