"""Structural risk minimisation: nested classes of functions, the bound as printed, and refusals by name."""

import math

import numpy as np
import pyarrow as pa
import pytest
from sklearn.svm import SVC

from app.base.errors import InvalidData, InvalidRequest
from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import Stages, unheard
from app.ml.jobs.search import SearchRequest, check
from app.ml.kinds.job import JobContext, Sheet
from app.ml.training.planning.plan import plan
from app.ml.training.search import search
from app.ml.training.search.candidates import SearchSpec, candidates

DEGREES = 9
DATASET = "01980000-0000-7000-8000-000000000000"


def bent(rows, seed=0, classes=2):
    """Classes on both sides of a parabola, a tenth of them wrong, and the powers of the input as columns."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, rows)
    y = (x**2 - 0.3 > 0) ^ (rng.random(rows) < 0.1) if classes == 2 else np.arange(rows) % classes
    powers = {f"x{degree}": x**degree for degree in range(1, DEGREES + 1)}
    return pa.table(powers | {"y": [f"c{int(code)}" for code in y]})


def columns(table):
    kinds = ["numeric"] * (table.num_columns - 1) + ["categorical"]
    return [TableColumn(name, kind, 0, 9) for name, kind in zip(table.column_names, kinds, strict=True)]


def ranked(table, metric="structural_risk", **spec):
    requested = SearchSpec.model_validate({"target": "y", **spec})
    found = candidates(requested)
    return search.rank(
        found, plan(found[0].spec, columns(table), table.num_rows), table,
        folds=5, metric=metric, rule="best", stages=Stages(unheard), share=0.9,
    )  # fmt: skip


def test_of_nested_polynomials_the_least_sum_is_chosen():
    """S4: h = degree + 1, a sum of two terms as printed, and a minimum below the highest degree on noisy rows."""
    table, tried = bent(4000), []
    for degree in range(1, DEGREES + 1):
        features = [f"x{power}" for power in range(1, degree + 1)]
        ranking = ranked(table, algorithm={"name": "logistic", "l2": 1e-6}, features=features)
        (one,) = ranking.tried
        tried.append((one.validation.value, one.capacity))
        assert one.capacity.dimension == degree + 1
    h, rows = np.arange(2, DEGREES + 2), 3200
    terms = np.sqrt((h * (np.log(2 * rows / h) + 1) - math.log(0.05 / 4)) / rows)
    bounds = np.array([bound for bound, _ in tried])
    errors = np.array([capacity.empirical_risk for _, capacity in tried])
    np.testing.assert_allclose(bounds, errors + terms, rtol=1e-12)
    assert errors[1] < errors[0] - 0.1
    assert np.ptp(errors[1:]) < 0.03
    assert bounds.argmin() == 1


def test_the_margin_of_a_machine_is_its_capacity():
    """S5: h ≤ min(⌈R²A²⌉, n) + 1 for rows in a ball of radius R and ‖w‖ = A."""
    table = bent(200).select(["x1", "x2", "y"])
    grid = [{"pointer": "/algorithm/C", "values": [0.001, 0.01, 100.0]}]
    algorithm = {"name": "svm", "kernel": "linear", "cv": None, "tol": 1e-6}
    ranking = ranked(table, algorithm=algorithm, grid=grid, validation={"test_fraction": 0})
    x = np.column_stack([table["x1"], table["x2"]])
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    radius = np.linalg.norm(z, axis=1).max()
    for one, cost in zip(ranking.tried, (0.001, 0.01, 100.0), strict=True):
        theirs = SVC(C=cost, kernel="linear", tol=1e-6).fit(z, table["y"].to_pylist())
        length = np.linalg.norm(theirs.coef_)
        assert one.capacity.dimension == min(math.ceil(radius**2 * length**2), 2) + 1
        assert one.capacity.empirical_risk == pytest.approx(1 - theirs.score(z, table["y"].to_pylist()), abs=0.01)
    dimensions = [one.capacity.dimension for one in ranking.tried]
    assert dimensions == sorted(dimensions)
    assert dimensions[0] < dimensions[-1]


def test_a_bound_above_one_is_called_void():
    ranking = ranked(
        bent(60), algorithm={"name": "svm", "cv": None}, grid=[{"pointer": "/algorithm/C", "values": [100.0, 1000.0]}]
    )
    assert all(one.validation.value >= 1 for one in ranking.tried)
    assert "The bound of the risk is not below 1 for 2 of 2 candidates" in ranking.warnings[0]
    assert ranking.evidence == "2 candidates on all 48 training rows."


def test_it_is_not_defined_of_several_classes():
    with pytest.raises(InvalidData, match="structural_risk bounds the risk of two classes; these are 3"):
        ranked(bent(90, classes=3), algorithm={"name": "logistic"})


def test_labellings_of_trees_are_counted():
    """Two levels find both ends of the parabola; of many leaves the term outweighs the errors that they mend."""
    depths = [{"pointer": "/algorithm/max_depth", "values": [1, 2, 12]}]
    ranking = ranked(bent(4000), algorithm={"name": "decision_tree"}, features=["x1"], grid=depths)
    parts = [one.capacity for one in ranking.tried]
    assert [part.dimension for part in parts] == [None] * 3
    assert parts[0].confidence < parts[1].confidence < parts[2].confidence
    assert parts[0].empirical_risk > parts[1].empirical_risk > parts[2].empirical_risk
    assert ranking.tried[1].rank == 1


def test_algorithms_without_a_capacity_and_other_tasks_are_refused_by_name():
    table = bent(60)
    sheet = JobContext((Sheet("", 60, tuple(columns(table))),))

    def faults(target="y", **spec):
        body = {"dataset": DATASET, "target": target, "metric": "structural_risk", **spec}
        with pytest.raises(InvalidRequest) as refused:
            check(SearchRequest.model_validate(body), sheet)
        return [(fault.pointer, fault.detail) for fault in refused.value.faults]

    found = faults(algorithm={"name": "knn"}, alternatives=[{"name": "svm"}, {"name": "random_forest"}])
    assert [pointer for pointer, _ in found] == ["/metric", "/metric"]
    able = "decision_tree, linear, linear_sgd, logistic, perceptron, ridge, svm"
    assert f"which knn lacks. These state it: {able}." in found[0][1]
    assert "which random_forest lacks" in found[1][1]
    assert faults(target="x1", algorithm={"name": "ridge"}) == [
        ("/metric", "structural_risk ranks classifications only.")
    ]
