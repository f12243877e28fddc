"""On rows that neither has seen, ours are as good as scikit-learn's with the same settings: within a standard error."""

import math
from functools import partial

import numpy as np
import pytest
from sklearn import datasets, ensemble, linear_model, model_selection, tree

from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Data, Task

FOLDS, TURNS = 5, 2
WINE, CANCER, DIABETES = datasets.load_wine, datasets.load_breast_cancer, datasets.load_diabetes
TREE = {"min_samples_leaf": 5}
LIGHT = tree.DecisionTreeRegressor(min_weight_fraction_leaf=4.5 / 353)
"""Leaves of 5 of the 353 rows that are drawn: of a row drawn twice `min_samples_leaf` would count one."""
PEER = tree.DecisionTreeClassifier(**TREE)
LARGE = {"min_samples_leaf": 40}
STACK = [("small", tree.DecisionTreeRegressor(**TREE)), ("large", tree.DecisionTreeRegressor(**LARGE))]
POSITIVE = linear_model.LinearRegression(positive=True, fit_intercept=False)


def losses(y, predicted):
    """Minus the log-likelihood and the error rate of classes; 1 - R2 of numbers."""
    if predicted.ndim == 1:
        return [np.mean((predicted - y) ** 2) / y.var()]
    shares = np.maximum(predicted[np.arange(y.size), y], 1e-3)
    return [-np.log(shares).mean(), (predicted.argmax(axis=1) != y).mean()]


def ours(spec, x, y, new, *, task):
    algorithm = find(spec["name"]).algorithm
    params = algorithm.params.model_validate({key: value for key, value in spec.items() if key != "name"})
    fit = algorithm.fit(params, Data.of(task, x, y), nested.context(0))
    return algorithm.predict(params, fit.state, np.ascontiguousarray(new))


def theirs(make, x, y, new, *, task):
    fitted = make().fit(x, y)
    return fitted.predict(new) if task is Task.REGRESSION else fitted.predict_proba(new)


def behind(load, one, other):
    """By how many standard errors the first loses more than the second, for each measure.

    Folds share rows: Nadeau & Bengio (2003), Mach. Learn. 52:239.
    """
    x, y = load(return_X_y=True)
    task = Task.REGRESSION if load is DIABETES else Task.CLASSIFICATION
    kind = model_selection.KFold if load is DIABETES else model_selection.StratifiedKFold
    parts = [part for turn in range(TURNS) for part in kind(FOLDS, shuffle=True, random_state=turn).split(x, y)]
    lead = np.array(
        [
            np.subtract(*(losses(y[new], result(x[old], y[old], x[new], task=task)) for result in (one, other)))
            for old, new in parts
        ]
    )
    spread = lead.std(axis=0, ddof=1) * math.sqrt(1 / len(parts) + 1 / (FOLDS - 1))
    return lead.mean(axis=0) / np.where(spread > 0, spread, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "spec", "peer"),
    [
        (WINE, {"name": "decision_tree", **TREE}, partial(tree.DecisionTreeClassifier, **TREE, random_state=0)),
        (CANCER, {"name": "decision_tree", **TREE}, partial(tree.DecisionTreeClassifier, **TREE, random_state=0)),
        (DIABETES, {"name": "decision_tree", **TREE}, partial(tree.DecisionTreeRegressor, **TREE, random_state=0)),
        (
            WINE,
            {"name": "random_forest", "n_estimators": 50, "max_features": 4, "importance": False},
            partial(ensemble.RandomForestClassifier, 50, max_features=4, random_state=0),
        ),
        (
            DIABETES,
            {"name": "random_forest", "n_estimators": 50, "max_features": 4, "importance": False},
            partial(ensemble.RandomForestRegressor, 50, max_features=4, random_state=0),
        ),
        (
            DIABETES,
            {"name": "bagging", "estimator": {"name": "decision_tree", **TREE}},
            partial(ensemble.BaggingRegressor, LIGHT, 25, random_state=0),
        ),
        (
            CANCER,
            {
                "name": "random_subspace",
                "estimator": {"name": "decision_tree", "prior_weight": 1, **TREE},
                "n_estimators": 10,
            },
            partial(ensemble.BaggingClassifier, PEER, 10, bootstrap=False, max_features=0.5, random_state=0),
        ),
        (
            DIABETES,
            {
                "name": "stacking",
                "estimators": [{"name": "decision_tree", **TREE}, {"name": "decision_tree", **LARGE}],
            },
            partial(ensemble.StackingRegressor, STACK, POSITIVE, cv=5),
        ),
        (WINE, {"name": "adaboost", "n_estimators": 25}, partial(ensemble.AdaBoostClassifier, n_estimators=25)),
        (
            CANCER,
            {"name": "gradient_boosting", "n_estimators": 50, "l2": 0.0},
            partial(ensemble.HistGradientBoostingClassifier, max_iter=50, early_stopping=False),
        ),
        (
            DIABETES,
            {"name": "gradient_boosting", "n_estimators": 50, "l2": 0.0},
            partial(ensemble.HistGradientBoostingRegressor, max_iter=50, early_stopping=False),
        ),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else getattr(value, "__name__", ""),
)
def test_as_good_as_the_peer(load, spec, peer):
    assert (behind(load, partial(ours, spec), partial(theirs, peer)) < 1).all()


@pytest.mark.parametrize("load", [WINE, CANCER])
def test_calibrated_votes_are_likelier_than_shares(load):
    """Where trees have seen the same, and name the same class."""
    forest = {"name": "random_forest", "n_estimators": 50, "importance": False}
    lead = behind(load, partial(ours, forest | {"probability": "calibrated"}), partial(ours, forest))
    assert lead[0] < -1
    assert lead[1] == 0


def test_what_is_worse_is_found_out():
    slow = partial(ours, {"name": "gradient_boosting", "n_estimators": 50, "learning_rate": 0.02})
    deep = partial(theirs, partial(ensemble.RandomForestClassifier, 50, random_state=0))
    assert behind(WINE, slow, deep)[0] > 1
