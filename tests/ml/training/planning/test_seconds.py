"""Estimated time of a fit: more for more, the sum of the learners within, each as often as it is fitted."""

import dataclasses
import math

import numpy as np
import pytest

from app.ml.catalogue import nested as learners
from app.ml.catalogue.algorithm_files import catalogue, find
from app.ml.contract.algorithm import Data, Size, Task
from app.ml.contract.columns import TableColumn
from app.ml.jobs.search import SearchRequest, check
from app.ml.kinds.job import JobContext, Sheet
from app.ml.training.dry_run import estimate
from app.ml.training.planning import cost
from app.ml.training.planning.cost import BASE_SECONDS
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec

RIDGE, TREE = {"name": "ridge"}, {"name": "decision_tree"}
NAMES = sorted(catalogue())


def seconds(spec, size, task=Task.REGRESSION):
    entry = find(spec["name"])
    return learners.seconds(entry.algorithm, entry.spec.model_validate(spec), task, size)


@pytest.mark.parametrize("name", NAMES)
def test_more_rows_columns_and_classes_take_no_less(name):
    algorithm = find(name).algorithm
    for task in algorithm.tasks:
        classes = 3 if task is Task.CLASSIFICATION else 0
        result = [
            seconds({"name": name}, Size(*size, classes), task)
            for size in [(1000, 5), (1000, 10), (4000, 10), (16_000, 40)]
        ]
        assert result == sorted(result)
        assert 0 < result[0] < result[-1] < math.inf
        if classes:
            assert seconds({"name": name}, Size(1000, 5, 9), task) >= result[0]


def test_learners_within_learners_add_up():
    size = Size(5000, 12)

    def committee(*members, **more):
        return seconds({"name": "committee", "estimators": list(members), **more}, size)

    own = committee(RIDGE) - seconds(RIDGE, size)
    both = seconds(RIDGE, size) + seconds(TREE, size)
    assert committee(RIDGE, TREE) == pytest.approx(own + both, rel=1e-12)
    nested = {"name": "committee", "estimators": [TREE, TREE]}
    assert committee(RIDGE, nested) == pytest.approx(2 * own + both + seconds(TREE, size), rel=1e-12)
    bags = [seconds({"name": "bagging", "estimator": TREE, "n_estimators": count}, size) for count in (1, 2, 3)]
    assert bags[2] - bags[1] == pytest.approx(bags[1] - bags[0]) == pytest.approx(seconds(TREE, size))


def test_a_learner_of_less_than_a_row_learns_from_one():
    few = [seconds({"name": "bagging", "max_samples": share, "estimator": {"name": "boost_majority"}},
                   Size(2, 5, 2), Task.CLASSIFICATION) for share in (1e-9, 0.5)]  # fmt: skip
    assert few[0] == few[1] > 0


WITHIN = {
    "bagging": ({"estimator": TREE, "n_estimators": 7, "max_samples": 0.5}, Task.CLASSIFICATION),
    "random_subspace": ({"estimator": TREE, "n_estimators": 6, "max_features": 0.5}, Task.REGRESSION),
    "named groups": (
        {"name": "random_subspace", "estimator": RIDGE, "groups": [["c0"], ["c1", "c2"]]},
        Task.REGRESSION,
    ),
    "committee": ({"estimators": [RIDGE, TREE], "fallback_estimator": {"name": "knn"}}, Task.CLASSIFICATION),
    "fold models": ({"name": "committee", "estimators": [RIDGE, TREE], "cv": 4}, Task.REGRESSION),
    "stacking": ({"estimators": [RIDGE, TREE], "cv": 4}, Task.REGRESSION),
    "feature_weighted_stacking": ({"estimators": [RIDGE, TREE], "cv": 3}, Task.REGRESSION),
    "ecoc": ({"estimator": TREE}, Task.CLASSIFICATION),
    "one against all": ({"name": "ecoc", "estimator": TREE, "code": "one_vs_all"}, Task.CLASSIFICATION),
    "random codes": ({"name": "ecoc", "estimator": TREE, "code": "random", "bits": 12}, Task.CLASSIFICATION),
    "a given code": (
        {"name": "ecoc", "estimator": TREE, "code_words": [[i & 1, i >> 1 & 1, i >> 2] for i in range(8)]},
        Task.CLASSIFICATION,
    ),
}


@pytest.mark.parametrize(("spec", "task"), [({"name": name} | spec, task) for name, (spec, task) in WITHIN.items()])
def test_fits_within_are_counted_as_they_are_made(spec, task):
    """Every number given to a learner within, watched, beside what the plan counts."""
    rng = np.random.default_rng(0)
    n, d, k = 120, 8, 8 if task is Task.CLASSIFICATION else 0
    y = np.arange(n) % k if k else rng.normal(size=n)
    data = Data.of(task, rng.normal(size=(n, d)), y, names=[f"c{j}" for j in range(d)])
    train_mask, context = [], learners.context(0)

    def fit(inner, rows):
        train_mask.append(rows.x.size)
        return context.fit(inner, rows)

    watched = dataclasses.replace(context, fit_all=lambda fits: (fit(one.spec, one.data()) for one in fits))
    entry = find(spec["name"])
    params = entry.spec.model_validate(spec)
    entry.algorithm.fit(params, data, watched)
    counted = [member.fits(Size(n, d, k)) for member in entry.algorithm.members(params, task)]
    assert sum(count * each.cells for count, each in counted) == pytest.approx(sum(train_mask), rel=1e-9)


def columns(target="numeric"):
    return (*(TableColumn(f"x{j}", "numeric", 0, 900) for j in range(10)), TableColumn("y", target, 0, 3))


def test_the_plan_counts_fits_and_a_search_its_candidates():
    sheet = Sheet("", 50_000, columns())
    expected = {"target": "y", "algorithm": {"name": "random_forest"}}

    def planned(**more):
        return plan(TrainSpec.model_validate(expected | more), sheet.columns, sheet.rows).seconds - BASE_SECONDS

    once = planned()
    assert planned(validation={"method": "kfold", "folds": 9}) == pytest.approx(10 * once, rel=0.01)
    assert planned(algorithm={"name": "random_forest", "n_estimators": 200}) == pytest.approx(2 * once, rel=0.05)
    assert planned(algorithm=RIDGE) < once / 20
    grid = [{"pointer": "/algorithm/n_estimators", "values": [100, 100, 100]}]
    requested = SearchRequest.model_validate(
        expected | {"dataset": "01980000-0000-7000-8000-000000000000", "grid": grid}
    )
    result = check(requested, JobContext((sheet,))).estimate
    assert result.seconds - BASE_SECONDS == pytest.approx(3 * 5 * once, rel=0.01)
    named = requested.model_copy(update={"model": "chosen"})
    trained = check(named, JobContext((sheet,))).estimate
    assert (trained.fits, result.fits) == (16, 15)
    assert trained.seconds - result.seconds == pytest.approx(once, rel=0.01)


def test_a_dry_run_counts_the_halvings_of_a_clustering_and_a_search_those_of_the_last_fit():
    """Ten halvings of at most a thousand rows, whatever the number of rows."""
    sheet = Sheet("", 50_000, columns())
    spec = {
        "algorithm": {"name": "kmeans", "n_clusters": 8},
        "features": [column.name for column in sheet.columns if column.name != "y"],
    }
    planned = plan(TrainSpec.model_validate(spec), sheet.columns, sheet.rows)
    half = Size(500, len(planned.features))
    prepared = cost.SECONDS_PER_CELL * half.cells + cost.SECONDS_PER_COLUMN * len(planned.features)
    one = prepared + seconds({"name": "kmeans", "n_clusters": 8}, half, Task.CLUSTERING)
    assert planned.halvings == pytest.approx(20 * one)
    assert estimate(planned, sheet.rows).seconds == pytest.approx(planned.seconds + 20 * one, abs=0.01)
    grid = [{"pointer": "/algorithm/n_clusters", "values": [8, 8]}]
    given = spec | {"dataset": "01980000-0000-7000-8000-000000000000", "grid": grid, "model": "chosen"}
    found = check(SearchRequest.model_validate(given), JobContext((sheet,))).estimate
    expected = 11 * (planned.seconds - BASE_SECONDS) + planned.halvings
    assert found.seconds - BASE_SECONDS == pytest.approx(expected, rel=0.02)
    assert plan(TrainSpec.model_validate({"target": "y", "algorithm": RIDGE}), sheet.columns, sheet.rows).halvings == 0


def test_support_vector_machines_of_many_rows_fit_within_the_default_limit():
    """100,000 rows of 20 columns; a linear machine keeps no rows of the kernel, and its time grows with the rows."""
    size, task = Size(100_000, 20, 2), Task.CLASSIFICATION
    assert seconds({"name": "svm"}, size, task) < 3600
    linear = {"name": "svm", "kernel": "linear"}
    assert seconds(linear, size, task) < 0.01 * seconds({"name": "svm"}, size, task)
    entry = find("svm")
    assert entry.algorithm.memory(entry.spec.model_validate(linear), size) < 100 * 2**20
    assert seconds({**linear, "C": None}, size, task) == seconds({"name": "svm"}, size, task)


MEASURED = [
    ("kmeans", 5000, 3, 1.98),
    ("kmeans", 5000, 20, 4.72),
    ("mpck_means", 500, 10, 2.75),
    ("mpck_means", 5000, 20, 5.84),
    ("gmm", 500, 10, 1.61),
    ("gmm", 5000, 20, 4.31),
    ("soft_kmeans", 500, 10, 2.48),
    ("som", 5000, 20, 1.77),
    ("agglomerative", 500, 10, 0.53),
    ("agglomerative", 5000, 3, 1.5),
    ("kmedoids", 200, 2000, 5.92),
    ("kernel_kmeans", 60, 4, 0.56),
    ("spectral_layout", 50_000, 10, 7.01),
    ("pca", 200, 2000, 1.04),
]
"""Rows, columns and CPU seconds of trainings that tests/benchmarks/plan_seconds.py has measured."""


@pytest.mark.parametrize(("name", "rows", "numbers", "taken"), MEASURED)
def test_the_dry_run_of_a_clustering_or_map_is_within_a_factor_of_three(name, rows, numbers, taken):
    sheet = [TableColumn(f"x{j}", "numeric", 0, rows) for j in range(numbers)]
    task = Task.CLUSTERING if Task.CLUSTERING in find(name).algorithm.tasks else Task.PROJECTION
    planned = plan(TrainSpec.model_validate({"algorithm": {"name": name}, "task": task}), sheet, rows)
    assert taken / 3 < estimate(planned, rows).seconds < 3 * taken
