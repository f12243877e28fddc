"""Online sessions over HTTP: rounds, labels that come later, retries, two writers, and models that are published."""

import threading
from uuid import uuid4

import numpy as np
import pytest

RNG = np.random.default_rng(5)
X = RNG.normal(size=(400, 2)).round(3)
CLICKED = (X @ [1.0, -2.0] > 0).tolist()
ROWS = [{"age": a, "visits": b, "clicked": c} for (a, b), c in zip(X.tolist(), CLICKED, strict=True)]
PLANE = {
    "learner": {"name": "perceptron", "fit_intercept": False},
    "inputs": [{"name": "age"}, {"name": "visits"}],
    "target": "clicked",
}
STEPS = {
    "learner": {"name": "halving", "hypotheses": {"name": "thresholds", "grid": [0.5, 1.5, 2.5]}},
    "inputs": [{"name": "dose"}],
    "target": "effect",
    "labels": ["no", "yes"],
}


def opened(client, spec=PLANE, **headers):
    response = client.post("/v1/sessions", json=spec, headers=headers)
    assert response.status_code == 201, response.text
    assert response.headers["location"] == f"/v1/sessions/{response.json()['id']}"
    return response.headers["location"]


def play(client, path, revision=None, *, key=None, **body):
    headers = {} if key is None else {"Idempotency-Key": key}
    sent = body if revision is None else body | {"revision": revision}
    return client.post(f"{path}/rounds", json=sent, headers=headers)


def refused(response, status, code):
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    return [(one["pointer"], one["code"]) for one in response.json().get("errors", [])]


def test_rows_are_predicted_before_their_labels_are_learned(client):
    path = opened(client)
    first = play(client, path, 0, rows=ROWS[:100])
    assert first.status_code == 200, first.text
    result = first.json()
    assert (result["revision"], result["first_round"], len(result["predictions"])) == (1, 1, 100)
    wrong = sum(one != truth for one, truth in zip(result["predictions"], CLICKED, strict=False))
    assert result["counts"]["mistakes"] == wrong > 0
    columns = play(client, path, 1, columns=["age", "visits", "clicked"], data=[[*row.values()] for row in ROWS[100:]])
    assert (columns.json()["revision"], columns.json()["first_round"]) == (2, 101)
    found = client.get(path).json()
    assert found["counts"] == columns.json()["counts"]
    assert (found["revision"], found["counts"]["rounds"], found["counts"]["learned"]) == (2, 400, 400)
    assert found["curve"]["learned"][-1] == 400
    assert found["spec"]["learner"]["name"] == found["learner"] == "perceptron"


def test_a_label_may_come_later(client):
    path = opened(client, STEPS)
    predicted = play(client, path, 0, rows=[{"dose": 2.0}, {"dose": 1.0, "effect": None}]).json()
    assert predicted["counts"] | {"rounds": 2, "learned": 0, "waiting": 2, "delayed": 1} == predicted["counts"]
    assert client.get(path).json()["open_rounds"] == [1, 2]
    late = play(client, path, 1, labels=[{"number": 2, "label": "no"}]).json()
    assert (late["predictions"], late["counts"]["learned"], late["counts"]["waiting"]) == ([], 1, 1)
    mixed = play(client, path, 2, labels=[{"number": 1, "label": "yes"}], rows=[{"dose": 3.0, "effect": "yes"}]).json()
    assert (mixed["first_round"], mixed["predictions"]) == (3, ["yes"])
    assert (mixed["counts"]["learned"], mixed["counts"]["waiting"]) == (3, 0)
    again = play(client, path, 3, labels=[{"number": 1, "label": "yes"}])
    assert refused(again, 422, "invalid_request") == [("/labels/0/number", "not_open")]


def test_predictions_and_bounds_are_those_of_one_request_after_another(client):
    """Rounds one by one, and all at once."""
    one_by_one, at_once = opened(client), opened(client)
    for place, row in enumerate(ROWS[:30]):
        assert play(client, one_by_one, place, rows=[row]).status_code == 200
    play(client, at_once, 0, rows=ROWS[:30])
    first, second = client.get(one_by_one).json(), client.get(at_once).json()
    for part in ("counts", "curve", "summary"):
        assert first[part] == second[part]


def test_the_same_revision_is_learned_once(client):
    path = opened(client)
    first = play(client, path, 0, rows=ROWS[:50])
    again = play(client, path, 0, rows=ROWS[:50])
    assert again.status_code == 200
    assert again.json() == first.json()
    other = play(client, path, 0, rows=ROWS[50:60])
    assert refused(other, 409, "revision_conflict") == [("/revision", "stale")]
    assert "It has revision 1." in other.json()["detail"]
    assert refused(play(client, path, 7, rows=ROWS[:1]), 409, "revision_conflict")
    assert client.get(path).json()["counts"]["rounds"] == 50


def test_the_same_key_is_learned_once(client):
    path, key = opened(client), uuid4().hex
    first = play(client, path, key=key, rows=ROWS[:50])
    assert play(client, path, key=key, rows=ROWS[:50]).json() == first.json()
    refused(play(client, path, key=key, rows=ROWS[:49]), 422, "idempotency_key_reused")
    assert play(client, path, key=uuid4().hex, rows=ROWS[50:60]).json()["revision"] == 2
    refused(play(client, path, key=key, rows=ROWS[:50]), 409, "rounds_applied")
    assert refused(play(client, path, rows=ROWS[:1]), 422, "invalid_request") == [("/revision", "missing")]
    assert client.get(path).json()["counts"]["rounds"] == 60


def test_an_opening_is_retried_by_its_key(client):
    key = uuid4().hex
    assert opened(client, **{"Idempotency-Key": key}) == opened(client, **{"Idempotency-Key": key})
    other = client.post("/v1/sessions", json=STEPS, headers={"Idempotency-Key": key})
    refused(other, 422, "idempotency_key_reused")


@pytest.mark.parametrize("keyed", [True, False])
def test_of_two_writers_every_round_is_learned_once(client, keyed):
    path, taken, failures = opened(client), [], []

    def write(rows):
        for row in rows:
            key, revision = uuid4().hex, client.get(path).json()["revision"]
            while (found := play(client, path, None if keyed else revision, key=key, rows=[row])).status_code == 409:
                revision = client.get(path).json()["revision"]
            (taken if found.status_code == 200 else failures).append(found.json().get("first_round"))

    writers = [threading.Thread(target=write, args=(ROWS[at::2][:20],)) for at in (0, 1)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert sorted(taken) == [*range(1, 41)]
    assert client.get(path).json()["counts"]["rounds"] == client.get(path).json()["revision"] == 40


BAD_SPECS = [
    (PLANE | {"learner": {"name": "perceptrn"}}, ["/learner/name"]),
    (PLANE | {"inputs": [{"name": "age"}, {"name": "age"}, {"name": "clicked"}]},
     ["/inputs/0/name", "/inputs/1/name", "/inputs/2/name"]),
    (PLANE | {"labels": [1, 1]}, ["/labels"]),
    (PLANE | {"labels": [1, "no"]}, ["/labels"]),
    (PLANE | {"labels": ["a", "b", "c"]}, ["/labels"]),
    (PLANE | {"inputs": [{"name": "age", "kind": "categorical"}]}, ["/inputs/0/kind"]),
    (PLANE | {"learner": {"name": "perceptron", "comparator": {"coefficients": [1]}}},
     ["/learner/comparator/coefficients"]),
    (PLANE | {"learner": {"name": "ogd", "horizon": 10, "learning_rate": 1}}, ["/learner/horizon"]),
    (PLANE | {"learner": {"name": "ogd", "loss": "squared"}, "labels": [0, 1]}, ["/labels"]),
    (STEPS | {"learner": {"name": "soa", "hypotheses": {"name": "thresholds", "grid": [2, 1]}}},
     ["/learner/hypotheses/grid"]),
    (STEPS | {"learner": {"name": "soa", "hypotheses": {"name": "experts"}}},
     ["/inputs/0/kind", "/learner/hypotheses"]),
    (STEPS | {"learner": {"name": "halving", "hypotheses": {"name": "intervals", "grid": [*range(100)]}}},
     ["/learner/hypotheses/grid"]),
    (STEPS | {"learner": {"name": "halving",
                          "hypotheses": {"name": "table", "points": ["a", "a"], "predictions": [[True]]}}},
     ["/inputs", "/learner/hypotheses/points", "/learner/hypotheses/predictions/0"]),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "pointers"), BAD_SPECS)
def test_every_fault_of_a_session_has_its_place(client, spec, pointers):
    response = client.post("/v1/sessions", json=spec)
    assert response.status_code == 422, response.text
    assert sorted(one["pointer"] for one in response.json()["errors"]) == sorted(pointers)


def test_bad_rounds_are_refused_whole_with_their_places(client):
    path = opened(client, STEPS)
    rows = [{"dose": 1, "effect": "no"}, {"dose": "x", "effect": "maybe"}, {"dose": None}, {"dose": 1e60}, {}]
    found = refused(play(client, path, 0, rows=rows), 422, "invalid_data")
    assert [pointer for pointer, _ in found] == ["/rows/1/dose", "/rows/1/effect", "/rows/2/dose", "/rows/4"]
    large = play(client, path, 0, columns=["dose", "effect"], data=[[1, "no"], [-1e60, "yes"]])
    assert refused(large, 422, "invalid_data") == [("/data/1/0", "too_large")]
    unknown = play(client, path, 0, rows=[{"doses": 1.0, "effect": "no"}])
    assert refused(unknown, 422, "invalid_data") == [("/rows", "missing_columns")]
    assert "'doses' may be meant for 'dose'" in unknown.json()["detail"]
    late = play(client, path, 0, labels=[{"number": 4, "label": "no"}, {"number": 5, "label": 1}])
    assert [pointer for pointer, _ in refused(late, 422, "invalid_request")] == [
        *("/labels/0/number", "/labels/1/number", "/labels/1/label"),
    ]
    for body in ({}, {"rows": [], "data": []}, {"columns": ["dose"]}, {"rows": []}, {"rows": [3]}, {"rows": 3}):
        assert play(client, path, 0, **body).status_code == 422
    assert play(client, path, 0, rows=[{"dose": 1.0}] * 10_001).status_code == 413
    refused(play(client, path, 0, rows=[{"dose": 1.0}] * 1001), 409, "too_many_open_rounds")
    assert client.get(path).json()["counts"]["rounds"] == 0


def test_numeric_labels_are_compared_as_numbers(client):
    path = opened(client, PLANE | {"labels": [-1, 1]})
    assert play(client, path, 0, rows=[{"age": 1, "visits": 0, "clicked": 1.0}]).json()["predictions"] == [-1]
    wrong = play(client, path, 1, rows=[{"age": 1, "visits": 0, "clicked": 2}])
    assert refused(wrong, 422, "invalid_data") == [("/rows/0/clicked", "unknown_label")]


def test_numbers_are_learned_by_squared_loss(client):
    spec = PLANE | {"learner": {"name": "ogd", "loss": "squared", "radius": 3.0, "lipschitz": 5.0}}
    path = opened(client, spec)
    rows = [{"age": a, "visits": b, "clicked": a - b} for a, b in X.tolist()]
    counts = play(client, path, 0, rows=rows).json()["counts"]
    assert "mistakes" not in counts
    assert 0 < counts["regret"] <= counts["bound"]
    assert client.post(f"{path}/publish", json={"model": "line", "hypothesis": "average"}).status_code == 201
    predicted = client.post("/v1/models/line/predict", json={"rows": [{"age": 1.0, "visits": -1.0}]}).json()
    assert 1.0 < predicted["predictions"][0] < 2.5


def test_a_published_hypothesis_predicts_with_a_receipt(client):
    path = opened(client, STEPS)
    doses = RNG.integers(0, 4, 60).tolist()
    play(client, path, 0, rows=[{"dose": dose, "effect": "yes" if dose >= 2 else "no"} for dose in doses])
    made = client.post(f"{path}/publish", json={"model": "steps", "hypothesis": "random_round", "revision": 1})
    assert made.status_code == 201, made.text
    assert made.headers["location"] == "/v1/models/steps/versions/1"
    publication = made.json()
    assert publication["bound"]["value"] == pytest.approx(2 / 60)
    again = client.post(f"{path}/publish", json={"model": "steps", "hypothesis": "random_round"})
    assert (again.status_code, again.json()) == (200, publication)
    last = client.post(f"{path}/publish", json={"model": "steps"}).json()
    assert last["version"]["version"] == 2
    body = {"rows": [{"dose": dose} for dose in (0, 1, 2, 3)]}
    predicted = client.post("/v1/models/steps/predict", json=body).json()
    assert (predicted["predictions"], predicted["classes"]) == (["no", "no", "yes", "yes"], ["no", "yes"])
    version = client.get("/v1/models/steps/versions/2").json()
    assert version["receipt"]["session"]["hypothesis"] == "last"
    assert path.endswith(version["session"])
    assert "job" not in version
    assert client.get("/v1/models/steps/versions/2/report").json()["summary"]["remaining"] == 1
    refused(client.post(f"{path}/publish", json={"model": "steps", "revision": 0}), 409, "revision_conflict")
    refused(client.post(f"{path}/publish", json={"model": "steps", "hypothesis": "average"}), 409, "no_hypothesis")
    assert client.delete(path).status_code == 204
    assert client.get("/v1/models/steps/versions/2").status_code == 200


def test_nothing_is_published_before_the_first_label(client):
    refused(client.post(f"{opened(client)}/publish", json={"model": "empty"}), 409, "no_hypothesis")


def test_sessions_are_listed_newest_first_and_deleted(client):
    older, newer = opened(client, PLANE | {"name": "older"}), opened(client)
    page = client.get("/v1/sessions", params={"limit": 1}).json()
    assert newer.endswith(page["items"][0]["id"])
    following = client.get("/v1/sessions", params={"limit": 1, "cursor": page["next_cursor"]}).json()
    assert (following["items"][0]["name"], older.rpartition("/")[2]) == ("older", following["items"][0]["id"])
    assert client.delete(older).status_code == 204
    for response in (client.get(older), client.delete(older), play(client, older, 0, rows=ROWS[:1])):
        refused(response, 404, "session_not_found")
    assert client.get("/v1/sessions", params={"cursor": "x"}).status_code == 422
    assert client.get("/v1/sessions/x").status_code == 422
