"""Shares of classes that are no probabilities get no log loss and no Brier score, and the report says why."""

import numpy as np
import pyarrow as pa
import pytest
from pydantic import TypeAdapter

from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import any_algorithm, catalogue, find
from app.ml.catalogue.nested import Meaning
from app.ml.contract.algorithm import Context, Data, FittedLearner, Task
from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import Stages, unheard
from app.ml.evaluation.costs import Costs
from app.ml.evaluation.evaluation import ClassOptions, evaluate, of_classes
from app.ml.evaluation.metrics import NO_PROBABILITIES
from app.ml.evaluation.predictions import predictions
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.resampling import Rows
from app.ml.training.planning.plan import plan
from app.ml.training.search import search
from app.ml.training.search.candidates import SearchSpec, candidates

LOSSES = {"log_loss", "brier"}


def degrees(**spec):
    algorithm = find(spec["name"]).algorithm
    return nested.degrees(algorithm, TypeAdapter(any_algorithm()).validate_python(spec))


def test_what_has_probabilities_by_construction_at_its_defaults():
    classifiers = {name for name, entry in catalogue().items() if Task.CLASSIFICATION in entry.algorithm.tasks}
    of_degrees = {name for name in classifiers if degrees(name=name)}
    expected = {"boost_majority", "linear", "ridge", "transductive_svm"}
    assert of_degrees == expected


TREE, RIDGE, LOGISTIC = ({"name": name} for name in ("decision_tree", "ridge", "logistic"))
SPECS = {
    "nearest of one": ({"name": "knn", "n_neighbors": 1}, True),
    "nearest of five": ({"name": "knn"}, False),
    "hinge loss": ({"name": "linear_sgd", "class_loss": "hinge"}, True),
    "a vote": ({"name": "bagging", "voting": "hard"}, True),
    "bagged ridge": ({"name": "bagging", "estimator": RIDGE}, True),
    "codewords": ({"name": "ecoc", "decode": "hamming"}, True),
    "majority": ({"name": "committee", "estimators": [TREE, LOGISTIC], "voting": "hard"}, True),
    "mean of probabilities": ({"name": "committee", "estimators": [TREE, LOGISTIC]}, False),
    "mean with degrees": ({"name": "committee", "estimators": [TREE, RIDGE]}, True),
    "second level": ({"name": "stacking", "estimators": [RIDGE], "final_estimator": LOGISTIC}, False),
    "second level of degrees": ({"name": "stacking", "estimators": [TREE], "final_estimator": RIDGE}, True),
}


@pytest.mark.parametrize("case", SPECS)
def test_learners_within_learners(case):
    spec, expected = SPECS[case]
    assert degrees(**spec) is expected


def table(n=80):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    return x, x[:, 0] + rng.normal(size=n) > 0


def evaluated(name):
    x, y = table()
    data, algorithm = Data.of(Task.CLASSIFICATION, x, y * 1.0, classes=2), find(name).algorithm
    params = algorithm.params()
    learned = FittedLearner(algorithm, params, algorithm.fit(params, data, Context.of(0)).state)
    metrics = evaluate(data, predictions(learned, data, data), ("no", "yes"), np.random.default_rng(0)).metrics
    return {metric.name: metric for metric in metrics if metric.label is None}


def test_the_losses_of_degrees_are_undefined_and_say_why():
    metrics = evaluated("boost_majority")
    for name in LOSSES:
        assert (metrics[name].value, metrics[name].display) == (None, "undefined")
        assert "not probabilities" in metrics[name].note
    assert all(metrics[name].value is not None for name in ("accuracy", "roc_auc", "pr_auc", "mcc"))


def test_the_losses_of_probabilities_are_there():
    metrics = evaluated("logistic")
    assert all(metrics[name].value > 0 and metrics[name].note != NO_PROBABILITIES for name in LOSSES)


def test_costs_that_rest_on_degrees_say_so():
    truth, shares = np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    requested = ClassOptions(costs=Costs(classes=["a", "b"], costs=[[0, 1], [5, 0]]))
    rows = Rows(Resamples.of(3, np.random.default_rng(0)))

    def note(*, degrees):
        found = of_classes(
            truth, shares.argmax(1), shares, rows, classes=["a", "b"], options=requested, means=Meaning(degrees)
        )
        return found.cost.cost.note

    assert note(degrees=False) is None
    assert "not probabilities" in note(degrees=True)


@pytest.mark.parametrize(("others", "metric"), [(["logistic"], "log_loss"), (["logistic", "ridge"], "accuracy")])
def test_a_search_ranks_by_what_all_candidates_have(others, metric):
    x, y = table()
    rows = pa.table({"a": x[:, 0], "b": x[:, 1], "y": np.where(y, "yes", "no")})
    columns = [TableColumn(name, "categorical" if name == "y" else "numeric", 0, 2) for name in rows.column_names]
    first, *more = ({"name": name} for name in others)
    requested = SearchSpec.model_validate({"target": "y", "algorithm": first, "alternatives": more})
    found, how = candidates(requested), {"folds": 3, "metric": None, "rule": "best", "share": 0.9}
    planned = plan(found[0].spec, columns, rows.num_rows)
    ranking = search.rank(found, planned, rows, stages=Stages(unheard), **how)
    assert ranking.metric == metric
    assert all(tried.error is None for tried in ranking.tried)
