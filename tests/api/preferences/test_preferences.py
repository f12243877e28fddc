"""Preferences over HTTP: pairs that a person compares, weights, retries, and the plan that the weights lead to."""

import threading
from uuid import uuid4

import pytest

GOALS = [{"name": "gain"}, {"name": "cost", "aim": "minimise"}]
CANDIDATES = [{"values": {"gain": gain, "cost": cost}, "row": {"tool": tool}}
              for gain, cost, tool in [(9, 5, "a"), (7, 2, "b"), (3, 1, None), (8, 9, "c")]]  # fmt: skip
SPEC = {"goals": GOALS, "candidates": CANDIDATES}
LINES = ["heat,time,yield,cost", *(f"{x / 10},{(x * 7 % 41) / 41},{4 * x - x * x / 20},{x}" for x in range(41))]


def opened(client, spec=SPEC, **headers):
    response = client.post("/v1/preferences", json=spec, headers=headers)
    assert response.status_code == 201, response.text
    assert response.headers["location"] == f"/v1/preferences/{response.json()['id']}"
    return response.headers["location"]


def compare(client, path, revision=None, *, key=None, **body):
    headers = {} if key is None else {"Idempotency-Key": key}
    sent = body if revision is None else body | {"revision": revision}
    return client.post(f"{path}/answers", json=sent, headers=headers)


def pair(first, second, preferred="first"):
    return {"first": first, "second": second, "preferred": preferred}


def refused(response, status, code):
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    return [(one["pointer"], one["code"]) for one in response.json().get("errors", [])]


def test_comparisons_teach_the_weights_of_goals(client):
    path = opened(client, SPEC | {"name": "tools"})
    fresh = client.get(path).json()
    assert (fresh["name"], fresh["revision"], fresh["candidates"], fresh["comparisons"]) == ("tools", 0, 4, 0)
    assert [one["weight"] for one in fresh["learned"]["weights"]] == [0, 0]
    assert fresh["learned"]["next_pair"]["probability"] == pytest.approx(0.5)
    comparisons = [pair(1, 0), pair(3, 1, "second"), pair(0, 3)]
    learned = compare(client, path, 0, comparisons=comparisons).json()
    gain, cost = learned["weights"]
    assert (cost["name"], cost["aim"]) == ("cost", "minimise")
    assert cost["lower"] < cost["weight"] < cost["upper"]
    assert cost["weight"] > 0
    assert cost["probability_positive"] > 0.8 > gain["probability_positive"]
    assert gain["share"] + cost["share"] == pytest.approx(1)
    first = learned["candidates"][0]
    assert first["utility"] == max(one["utility"] for one in learned["candidates"])
    assert {one["number"] for one in learned["candidates"]} == {0, 1, 2, 3}
    assert "row" in first
    assert sum(one["probability_best"] for one in learned["candidates"]) == pytest.approx(1)
    following = learned["next_pair"]
    assert {following["first"], following["second"]} not in [{0, 1}, {1, 3}, {0, 3}]
    assert 0 < following["information"] <= 1
    assert learned["contradicted"] == 0
    found = client.get(path).json()
    assert (found["given"], found["learned"], found["comparisons"]) == (comparisons, learned, 3)
    assert "optimise" not in learned


def test_further_candidates_come_with_comparisons(client):
    path = opened(client)
    better = {"values": {"gain": 10, "cost": 0.5}}
    learned = compare(client, path, 0, candidates=[better], comparisons=[pair(4, 0), pair(4, 1)]).json()
    assert learned["candidates"][0]["number"] == 4
    assert client.get(path).json()["candidates"] == 5
    every = [pair(a, b, "equal") for a in range(5) for b in range(a)]
    assert "next_pair" not in compare(client, path, 1, comparisons=every).json()


def test_the_same_revision_is_taken_once(client):
    path = opened(client)
    first = compare(client, path, 0, comparisons=[pair(0, 1)])
    again = compare(client, path, 0, comparisons=[pair(0, 1)])
    assert (again.status_code, again.json()) == (200, first.json())
    other = compare(client, path, 0, comparisons=[pair(1, 0)])
    assert refused(other, 409, "preference_changed") == [("/revision", "stale")]
    assert "They have revision 1." in other.json()["detail"]
    assert client.get(path).json()["comparisons"] == 1


def test_the_same_key_returns_what_it_returned_first(client):
    path, key = opened(client), uuid4().hex
    first = compare(client, path, key=key, comparisons=[pair(0, 1)])
    assert compare(client, path, key=uuid4().hex, candidates=CANDIDATES[:1]).json()["revision"] == 2
    assert compare(client, path, key=key, comparisons=[pair(0, 1)]).json() == first.json()
    refused(compare(client, path, key=key, comparisons=[pair(1, 0)]), 422, "idempotency_key_reused")
    assert refused(compare(client, path, comparisons=[pair(0, 1)]), 422, "invalid_request") == [
        ("/revision", "missing")
    ]
    assert client.get(path).json()["comparisons"] == 1


def test_an_opening_is_retried_by_its_key(client):
    key = uuid4().hex
    assert opened(client, **{"Idempotency-Key": key}) == opened(client, **{"Idempotency-Key": key})
    other = client.post("/v1/preferences", json=SPEC | {"l2": 1.0}, headers={"Idempotency-Key": key})
    refused(other, 422, "idempotency_key_reused")


def test_of_writers_at_once_every_comparison_is_taken_once(client):
    path, taken = opened(client), []

    def write():
        for _ in range(10):
            response = compare(client, path, key=uuid4().hex, comparisons=[pair(0, 1)])
            taken.append(response.json()["revision"])

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(taken) == [*range(1, 21)]
    assert client.get(path).json()["comparisons"] == 20


BAD_SPECS = [
    ({}, [""]),
    (SPEC | {"job": "plan"}, [""]),
    ({"goals": GOALS}, [""]),
    ({"candidates": CANDIDATES}, [""]),
    (SPEC | {"goals": [GOALS[0], GOALS[0]]},
     ["/goals/0/name", "/goals/1/name", *(f"/candidates/{place}/values/cost" for place in range(4))]),
    (SPEC | {"goals": [{"name": "gain", "aim": "target"}, {"name": "cost", "value": 1}]}, ["/goals/0", "/goals/1"]),
    (SPEC | {"candidates": [{"values": {"gain": 1}}, {"values": {"gain": 1, "cost": 2, "a/b": 3}}]},
     ["/candidates/0/values", "/candidates/1/values/a~1b"]),
    (SPEC | {"candidates": [{"values": {"gain": "1", "cost": 1e61}}, CANDIDATES[0]]},
     ["/candidates/0/values/gain", "/candidates/0/values/cost"]),
    (SPEC | {"candidates": CANDIDATES[:1], "l2": 0}, ["/candidates", "/l2"]),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "pointers"), BAD_SPECS)
def test_every_fault_of_an_opening_has_its_place(client, spec, pointers):
    response = client.post("/v1/preferences", json=spec)
    assert response.status_code == 422, response.text
    assert sorted(one["pointer"] for one in response.json()["errors"]) == sorted(pointers)


def test_bad_comparisons_are_refused_whole_with_their_places(client):
    path = opened(client)
    body = {"comparisons": [pair(0, 1), pair(0, 4), pair(2, 2)], "candidates": []}
    found = refused(compare(client, path, 0, **body), 422, "invalid_request")
    assert found == [("/comparisons/1/second", "unknown"), ("/comparisons/2/second", "invalid")]
    assert refused(compare(client, path, 0), 422, "invalid_request") == [("", "missing")]
    many = refused(compare(client, path, 0, candidates=CANDIDATES * 50), 422, "invalid_request")
    assert many == [("/candidates", "too_many")]
    for wrong in (pair(-1, 0), pair(0, 1, "third"), {"first": 0, "second": 1}, pair(0.5, 1), pair(0, 2**40)):
        assert compare(client, path, 0, comparisons=[wrong]).status_code == 422
    assert client.get(path).json()["revision"] == 0


def test_extreme_values_have_weights(client):
    values = [(1e60, 1e-300), (-1e60, 2e-300), (0, 0)]
    spec = SPEC | {"candidates": [{"values": {"gain": gain, "cost": cost}} for gain, cost in values]}
    learned = compare(client, opened(client, spec), 0, comparisons=[pair(0, 1)]).json()
    assert learned["weights"][0]["weight"] > 0
    assert learned["weights"][1]["weight"] == 0


def test_preferences_are_listed_newest_first_and_deleted(client):
    older, newer = opened(client, SPEC | {"name": "older"}), opened(client)
    page = client.get("/v1/preferences", params={"limit": 1}).json()
    assert newer.endswith(page["items"][0]["id"])
    following = client.get("/v1/preferences", params={"limit": 1, "cursor": page["next_cursor"]}).json()
    assert (following["items"][0]["name"], older.rpartition("/")[2]) == ("older", following["items"][0]["id"])
    assert client.delete(older).status_code == 204
    for response in (client.get(older), client.delete(older), compare(client, older, 0, comparisons=[pair(0, 1)])):
        refused(response, 404, "preference_not_found")
    assert client.get("/v1/preferences", params={"cursor": "x"}).status_code == 422
    assert client.get("/v1/preferences/x").status_code == 422


@pytest.fixture(scope="module")
def front(client, done):
    """A front of two goals and a limit, as a job with a name."""
    dataset = client.post("/v1/datasets", content="\n".join(LINES)).json()["id"]
    for target in ("yield", "cost"):
        done("train", {"model": f"kiln-{target}", "dataset": dataset, "target": target, "features": ["heat", "time"],
                       "algorithm": {"name": "gaussian_process"}, "validation": {"test_fraction": 0}})  # fmt: skip
    goals = [{"model": "kiln-yield"}, {"model": "kiln-cost", "aim": "at_most", "value": 30.0},
             {"model": "kiln-cost", "aim": "minimise"}]  # fmt: skip
    request = {"name": "kiln-front", "goals": goals, "effort": "quick", "n_solutions": 8, "fixed": {"time": 0.5}}
    return request, done("optimise", request)["result"]


def test_weights_of_a_front_lead_to_the_plan_of_a_person(client, front, done):
    """A person to whom a unit of yield is worth one of cost: 4x - x²/20 - x is largest at x = 30, its limit."""
    request, result = front
    path = opened(client, {"job": request["name"]})
    learned = client.get(path).json()["learned"]
    assert [one["name"] for one in learned["weights"]] == ["kiln-yield", "kiln-cost"]
    by_number = sorted(learned["candidates"], key=lambda one: one["number"])
    assert [one["row"] for one in by_number] == [one["row"] for one in result["solutions"]]
    worth = [one["values"]["kiln-yield"] - one["values"]["kiln-cost"] for one in by_number]
    for revision in range(12):
        following = learned["next_pair"]
        first, second = following["first"], following["second"]
        given = pair(first, second, "first" if worth[first] > worth[second] else "second")
        learned = compare(client, path, revision, comparisons=[given]).json()
    again = learned["optimise"]
    assert again["combine"] == "weighted_sum"
    assert again["goals"][1] == request["goals"][1]
    assert [again["goals"][place]["weight"] for place in (0, 2)] == [one["weight"] for one in learned["weights"]]
    (plan,) = done("optimise", again)["result"]["solutions"]
    assert plan["row"]["time"] == 0.5
    reached = plan["goals"][0]["prediction"] - plan["goals"][2]["prediction"]
    assert reached >= max(worth) - 0.1 * (max(worth) - min(worth))


def test_a_job_without_a_front_is_refused(client, front, done):
    refused(client.post("/v1/preferences", json={"job": "no-such-job"}), 404, "job_not_found")
    request, _ = front
    single = done("optimise", request | {"name": "kiln-single", "goals": request["goals"][:2]})
    response = client.post("/v1/preferences", json={"job": single["id"]})
    assert refused(response, 422, "invalid_request") == [("/job", "no_front")]
    trained = client.get("/v1/jobs", params={"limit": 50}).json()["items"][-1]["id"]
    response = client.post("/v1/preferences", json={"job": trained})
    assert refused(response, 422, "invalid_request") == [("/job", "invalid")]
