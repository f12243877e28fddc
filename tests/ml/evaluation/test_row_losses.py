"""Losses of rows whose means are metrics, beside scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics as peer

from app.ml.evaluation.row_losses import OF_CLASSES, OF_NUMBERS, metric_of, row_losses, worse_by


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_metrics_of_numbers(name):
    rng = np.random.default_rng(0)
    truth, predicted = rng.normal(size=60), rng.normal(size=60)
    expected = {
        "rmse": np.sqrt(peer.mean_squared_error(truth, predicted)),
        "mae": peer.mean_absolute_error(truth, predicted),
        "r2": peer.r2_score(truth, predicted),
    }[name]
    assert metric_of(name, row_losses(name, truth, predicted)) == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("name", OF_CLASSES)
def test_metrics_of_classes(name, classes):
    rng = np.random.default_rng(1)
    truth = np.r_[np.arange(classes), rng.integers(0, classes, 90)]
    predicted = rng.dirichlet(np.ones(classes), truth.size).round(1) + 0.01
    predicted /= predicted.sum(axis=1, keepdims=True)
    assigned = predicted.argmax(axis=1)
    expected = {
        "log_loss": lambda: peer.log_loss(truth, predicted),
        "brier": lambda: ((predicted - np.eye(classes)[truth]) ** 2).sum(axis=1).mean(),
        "accuracy": lambda: peer.accuracy_score(truth, assigned),
        "balanced_accuracy": lambda: peer.balanced_accuracy_score(truth, assigned),
        "roc_auc": lambda: peer.roc_auc_score(truth, predicted if classes > 2 else predicted[:, 1], multi_class="ovr"),
    }[name]()
    assert metric_of(name, row_losses(name, truth, predicted)) == pytest.approx(expected)


def test_auc_of_one_class_is_undefined():
    assert np.isnan(row_losses("roc_auc", np.zeros(5), np.full((5, 2), 0.5))).all()


def test_worse_is_positive_whatever_the_direction():
    assert worse_by("accuracy", np.array([0.8]), np.array([0.9]))[0] > 0
    assert worse_by("rmse", np.array([2.0]), np.array([1.0]))[0] > 0
