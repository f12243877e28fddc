"""A job of the kind `optimise` over HTTP: a plan under constraints, a front of two models, and refusals."""

import pytest

ROWS = [(x / 10, (x * 7 % 41) / 41, "ab"[x % 2]) for x in range(41)]
LINES = [
    "heat,time,tool,yield,cost",
    *(f"{x},{y},{c},{4 * x + 2 * y + (c == 'b')},{x + y + 3 * (c == 'b')}" for x, y, c in ROWS),
]
GOALS = [{"model": "plan-yield"}, {"model": "plan-cost", "aim": "minimise"}]


@pytest.fixture(scope="module")
def dataset(client):
    return client.post("/v1/datasets", content="\n".join(LINES)).json()["id"]


@pytest.fixture(scope="module")
def trained(done, dataset):
    for target in ("yield", "cost"):
        done("train", {"model": f"plan-{target}", "dataset": dataset, "target": target, "algorithm": {"name": "linear"},
                       "features": ["heat", "time", "tool"], "validation": {"test_fraction": 0}})  # fmt: skip


@pytest.fixture
def optimised(done, trained):
    return lambda body: done("optimise", {"effort": "quick"} | body)["result"]


def test_the_best_plan_with_the_prices_of_its_limits(optimised, dataset):
    """4 heat + 2 time is worth most where all of the heat, then of the time, fits into the cost of 3."""
    goals = [GOALS[0], {"model": "plan-cost", "aim": "at_most", "value": 3.0}]
    variables = [{"column": "heat", "minimum": 0, "maximum": 2.5}]
    result = optimised({"goals": goals, "variables": variables, "dataset": dataset})
    assert (result["kind"], result["feasible"]) == ("optimise", True)
    (solution,) = result["solutions"]
    assert solution["row"] == {"heat": pytest.approx(2.5), "time": pytest.approx(0.5), "tool": "a"}
    assert result["value"] == pytest.approx(11)
    assert [goal.get("kept") for goal in solution["goals"]] == [None, True]
    prices = {(one["limit"], one.get("column", one.get("place"))): one["price"] for one in result["prices"]}
    assert prices == {("goal", 1): pytest.approx(2, rel=1e-3), ("bound", "heat"): pytest.approx(2, rel=1e-3)}
    assert solution["at_bound"] == ["heat"]
    assert solution["outside_range"] == []
    assert solution["nearest"]["distance"] > 0
    assert 0 <= solution["nearest"]["row"] < 41


def test_a_front_of_two_models(optimised):
    result = optimised({"goals": GOALS, "n_solutions": 5, "constraints": [
        {"coefficients": {"heat": 1, "time": 1}, "at_least": 1}], "fixed": {"tool": "b"}})  # fmt: skip
    reached = [[goal["prediction"] for goal in one["goals"]] for one in result["solutions"]]
    assert len(reached) == 5
    assert reached == sorted(reached, reverse=True)
    assert result["hypervolume"] > 0
    assert "prices" not in result
    assert all(one["row"]["tool"] == "b" for one in result["solutions"])
    assert all(one["row"]["heat"] + one["row"]["time"] >= 1 - 1e-6 for one in result["solutions"])


def test_a_weighted_sum(optimised):
    goals = [GOALS[0] | {"weight": 1.0}, GOALS[1] | {"weight": 3.0}]
    result = optimised({"goals": goals, "combine": "weighted_sum"})
    (solution,) = result["solutions"]
    assert solution["row"] == {"heat": pytest.approx(4), "time": pytest.approx(0, abs=1e-6), "tool": "a"}
    assert result["value"] == pytest.approx(4)


@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        ({"effort": "heroic"}, ["/effort"]),
        ({"goals": []}, ["/goals"]),
        ({"goals": [{"model": "plan-yield", "aim": "target"}]}, ["/goals/0"]),
        ({"goals": [{"model": "plan-yield", "label": "a"}]}, ["/goals/0/label"]),
        ({"goals": [{"model": "plan-yield", "value": 1e300, "aim": "target"}]}, ["/goals/0/value"]),
        ({"fixed": {"cold": 1, "tool": 2}}, ["/fixed/cold", "/fixed/tool"]),
        ({"variables": [{"column": "heat", "minimum": 3, "maximum": 2}]}, ["/variables/0/minimum"]),
        ({"constraints": [{"coefficients": {"heat": 1}, "at_least": 5}]}, ["/constraints"]),
        ({"constraints": [{"coefficients": {"heat": 1, "tool": 1}, "at_most": 5}]},
         ["/constraints/0/coefficients/tool"]),
    ],
)  # fmt: skip
def test_a_fault_has_its_pointer(client, trained, changes, pointers):
    response = client.post("/v1/jobs/optimise:validate", json={"goals": GOALS} | changes)
    assert response.status_code == 422, response.text
    assert {fault["pointer"] for fault in response.json()["errors"]} == {*pointers}


def test_a_model_that_does_not_exist_is_not_found(client, trained):
    for changes in ({"goals": [{"model": "nothing"}]}, {"dataset": "nothing"}):
        response = client.post("/v1/jobs/optimise", json={"goals": GOALS} | changes)
        assert response.status_code in {404, 422}, response.text


def test_a_dry_run_without_faults(client, trained):
    assert client.post("/v1/jobs/optimise:validate", json={"goals": GOALS}).status_code == 200
