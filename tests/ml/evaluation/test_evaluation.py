"""The report of a training: metrics of the right rows, gaps the right way round, means over folds."""

import re
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import r2_score

from app.base.errors import InvalidData
from app.ml import evaluation
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Algorithm, Context, Data, Fit, FittedLearner, Params, Task
from app.ml.evaluation.evaluation import evaluate
from app.ml.evaluation.metrics_across_folds import across_folds
from app.ml.evaluation.predictions import Predictions, predictions
from app.ml.evaluation.train_test_gaps import gaps
from app.ml.statistics.metric_value import MEASURES, bootstrapped, counted, proportion


def learned(task, predict, **more):
    """A model whose prediction is stated, so that its metrics can be counted by hand."""
    algorithm = Algorithm(
        tasks={task},
        params=Params,
        state=tuple,
        fit=lambda *_: Fit(()),
        predict=lambda _params, _state, x: predict(x),
        **more,
    )
    return FittedLearner(algorithm, Params(), ())


def rng():
    return np.random.default_rng(0)


def evaluated(model, data, train, classes, rng):
    return evaluate(data, predictions(model, data, train), classes, rng)


def metrics_of(evaluation):
    return {(metric.name, metric.label): metric for metric in evaluation.metrics}


COLUMN = np.array([[0.0], [1.0], [2.0], [5.0]])


def test_regression():
    data = Data.of(Task.REGRESSION, COLUMN, [0, 2, 2, 6])
    result = metrics_of(evaluated(learned(Task.REGRESSION, lambda x: x[:, 0]), data, data, (), rng()))
    assert result["mae", None].value == 0.5
    assert set(result) == {("rmse", None), ("mae", None), ("r2", None)}


def test_classification_keeps_the_labels():
    data = Data.of(Task.CLASSIFICATION, COLUMN, [0, 0, 1, 1])
    model = learned(Task.CLASSIFICATION, lambda x: np.stack([x[:, 0] < 1, x[:, 0] >= 1], axis=1) * 1.0)
    result = evaluated(model, data, data, (False, True), rng())
    assert result.confusion_matrix.counts == [[1, 1], [0, 2]]
    assert result.confusion_matrix.classes == [False, True]
    assert metrics_of(result)["recall", "False"].value == 0.5
    assert [curve.name for curve in result.curves] == ["roc", "precision_recall"]


def test_three_classes_have_a_curve_each():
    data = Data.of(Task.CLASSIFICATION, COLUMN, [0, 1, 2, 1])
    result = evaluated(learned(Task.CLASSIFICATION, lambda x: np.full((len(x), 3), 1 / 3)), data, data, "xyz", rng())
    names = [f"{kind} {label}" for label in "xyz" for kind in ("roc", "precision_recall")]
    assert [curve.name for curve in result.curves] == names
    assert metrics_of(result)["roc_auc", None].value == pytest.approx(0.5)


def test_clusters_are_measured_from_the_training_centres():
    train = Data.of(Task.CLUSTERING, COLUMN, weights=[1, 3, 1, 1])
    test = Data.of(Task.CLUSTERING, [[0.0], [4.0]])
    model = learned(Task.CLUSTERING, lambda x: (x[:, 0] > 3).astype(int))
    result = metrics_of(evaluated(model, test, train, (), rng()))
    assert result["mean_inertia", None].value == pytest.approx((1.0**2 + 1.0**2) / 2)  # centres 1 and 5


def test_a_cluster_without_training_rows_is_at_the_mean():
    train = Data.of(Task.CLUSTERING, [[1.0], [3.0]])
    test = Data.of(Task.CLUSTERING, [[9.0]])
    model = learned(Task.CLUSTERING, lambda x: (x[:, 0] > 5).astype(int))
    assert metrics_of(evaluated(model, test, train, (), rng()))["inertia", None].value == 49.0


def test_projection_and_density():
    data = Data.of(Task.PROJECTION, np.column_stack([COLUMN, COLUMN % 2]))
    model = learned(
        Task.PROJECTION, lambda x: x[:, :1], inverse=lambda _params, _state, z: np.column_stack([z, np.zeros(len(z))])
    )
    result = metrics_of(evaluated(model, data, data, (), rng()))
    assert result["reconstruction_error", None].value == 0.5
    kept = metrics_of(evaluated(learned(Task.PROJECTION, lambda x: x), data, data, (), rng()))
    assert {name: one.value for (name, _), one in kept.items()} == {"trustworthiness": 1, "continuity": 1, "stress": 0}
    density = Data.of(Task.DENSITY, COLUMN)
    result = metrics_of(evaluated(learned(Task.DENSITY, lambda x: -x[:, 0]), density, density, (), rng()))
    assert result["log_density", None].value == -2.0


def test_no_rows_say_nothing():
    data = Data.of(Task.REGRESSION, COLUMN, [0, 1, 2, 3])
    none = data.take(np.zeros(4, bool))
    assert evaluated(learned(Task.REGRESSION, lambda x: x[:, 0]), none, data, (), rng()).metrics == []
    with pytest.raises(InvalidData):
        Data.of(Task.REGRESSION, COLUMN[:0], [])


def test_wild_predictions_are_undefined_not_an_error():
    data = Data.of(Task.REGRESSION, COLUMN, [0, 1, 2, 3])
    result = metrics_of(evaluated(learned(Task.REGRESSION, lambda x: x[:, 0] * 1e200), data, data, (), rng()))
    assert result["rmse", None].value == pytest.approx(1e200 * np.sqrt((COLUMN**2).mean()))
    assert result["r2", None].value is None
    result = metrics_of(evaluated(learned(Task.REGRESSION, lambda x: x[:, 0] + np.inf), data, data, (), rng()))
    assert {metric.value for metric in result.values()} == {None}


def test_the_seed_decides():
    data = Data.of(Task.REGRESSION, COLUMN, [0, 2, 2, 6])
    model = learned(Task.REGRESSION, lambda x: x[:, 0])
    one, same = (evaluated(model, data, data, (), rng()) for _ in range(2))
    assert one.metrics == same.metrics


def test_gaps_are_positive_when_the_test_is_worse():
    """B3.12, for scores and for errors alike."""
    train = [proportion("accuracy", 10, 10), bootstrapped("rmse", 1.0, [], 10), counted("size", 3, 10, "0")]
    test = [proportion("accuracy", 7, 10), bootstrapped("rmse", 1.5, [], 10), counted("size", 1, 10, "0")]
    result = {gap.name: (gap.train, gap.test, gap.gap) for gap in gaps(train, test)}
    assert result == {"accuracy": (1.0, 0.7, pytest.approx(0.3)), "rmse": (1.0, 1.5, 0.5)}


def test_a_gap_to_nothing_is_nothing():
    result = gaps([bootstrapped("r2", np.nan, [], 3)], [bootstrapped("r2", 0.5, [], 3), bootstrapped("mae", 1, [], 3)])
    assert [(gap.name, gap.train, gap.gap) for gap in result] == [("r2", None, None), ("mae", None, None)]


def test_mean_over_folds_has_students_interval():
    """B5.12"""
    shares = [8, 9, 7, 8, 10]
    folds = [[proportion("accuracy", share, 10), proportion("recall", share, 10, "a")] for share in shares]
    folds[0].append(proportion("precision", 0, 0))
    result = {(metric.name, metric.label): metric for metric in across_folds(folds)}
    assert set(result) == {("accuracy", None), ("recall", "a")}
    theirs = stats.t.interval(0.95, 4, 0.84, stats.sem(np.array(shares) / 10))
    accuracy = result["accuracy", None]
    assert (accuracy.value, accuracy.n) == (pytest.approx(0.84), 5)
    assert (accuracy.lower, accuracy.upper) == (pytest.approx(theirs[0]), pytest.approx(theirs[1]))
    assert "approximate" in accuracy.interval


def test_every_measure_knows_its_better_side():
    assert all(measure.better in {-1, 1} and measure.lowest < measure.highest for measure in MEASURES.values())


def without_intercept(x, y, name="linear", **params):
    algorithm = find(name).algorithm
    given = algorithm.params(fit_intercept=False, **params)
    data = Data.of(Task.REGRESSION, x, y)
    return FittedLearner(algorithm, given, algorithm.fit(given, data, Context.of(0)).state), data


def test_r2_without_an_intercept_is_named_and_that_of_nist():
    """NoInt1 of the Statistical Reference Datasets: certified R² .999365492298663; about the mean it is another."""
    x = np.arange(60.0, 71.0)[:, None]
    model, data = without_intercept(x, np.arange(130.0, 141.0))
    metrics = {metric.name: metric for metric in evaluated(model, data, data, (), rng()).metrics}
    assert metrics["r2_uncentred"].value == pytest.approx(0.999365492298663, rel=1e-13)
    assert "without an intercept" in metrics["r2_uncentred"].note
    assert metrics["r2"].value == pytest.approx(r2_score(data.y, model.predict(x)), rel=1e-10)
    assert "about the mean of the evaluated rows" in metrics["r2"].note
    assert metrics["r2_uncentred"].lower <= metrics["r2_uncentred"].value <= metrics["r2_uncentred"].upper


def test_r2_with_an_intercept_is_the_only_one():
    algorithm, data = find("linear").algorithm, Data.of(Task.REGRESSION, COLUMN, [1.0, 2.0, 4.0, 5.0])
    model = FittedLearner(algorithm, algorithm.params(), algorithm.fit(algorithm.params(), data, Context.of(0)).state)
    assert {metric.name for metric in evaluated(model, data, data, (), rng()).metrics} == {"rmse", "mae", "r2"}


def test_r2_of_targets_that_are_all_zero_is_undefined():
    model, data = without_intercept(COLUMN, np.zeros(4), "ridge")
    assert {f.name: f.value for f in evaluated(model, data, data, (), rng()).metrics}["r2_uncentred"] is None


def test_evaluation_knows_no_training_set():
    """It is given data and predictions: what made them, and what else the training holds, stays with the training."""
    root = Path(evaluation.__file__).parent
    found = {name for path in root.glob("*.py") for name in re.findall(r"\bTrainingSet\b|\bFitted\b", path.read_text())}
    assert found == set()
    assert list(signature(evaluate).parameters) == [
        *("data", "predicted", "classes", "rng", "groups", "examples", "bins", "constant")
    ]


def test_predictions_that_nobody_fitted_are_evaluated():
    data = Data.of(Task.REGRESSION, COLUMN, [0, 2, 2, 6])
    found = evaluate(data, Predictions(np.array([0.0, 2.0, 2.0, 5.0])), (), None)
    assert metrics_of(found)["mae", None].value == 0.25
    assert found.residuals.tolist() == [0, 0, 0, 1]
