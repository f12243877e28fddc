"""Constant predictions beside a model, against scikit-learn's dummies and the compared metrics themselves."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, root_mean_squared_error

from app.ml.evaluation.baselines import warnings
from app.ml.evaluation.constant_predictions import ConstantClass, ConstantNumber
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.resampling import Rows

CLASSES = ("no", "yes", "perhaps")


def rows(n, seed=0):
    return Rows(Resamples.of(n, np.random.default_rng(seed)))


@pytest.fixture
def labels():
    """Classes of training rows and of test rows, and probabilities of a model that knows something."""
    rng = np.random.default_rng(5)
    train, test = rng.choice(3, 400, p=[0.6, 0.3, 0.1]), rng.choice(3, 300, p=[0.6, 0.3, 0.1])
    scores = rng.normal(size=(300, 3)) + 1.5 * np.eye(3)[test]
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return train, test, chances


def test_constants_of_classes_are_those_of_dummy_classifiers(labels):
    train, test, chances = labels
    accuracy, loss = ConstantClass.of(train, 3).compare(test, chances.argmax(axis=1), chances, rows(300), CLASSES)
    nothing = np.zeros((400, 1))
    most = DummyClassifier(strategy="most_frequent").fit(nothing, train).predict(np.zeros((300, 1)))
    prior = DummyClassifier(strategy="prior").fit(nothing, train).predict_proba(np.zeros((300, 1)))
    assert accuracy.prediction == "no"
    assert loss.prediction is None
    assert accuracy.constant.value == pytest.approx(accuracy_score(test, most))
    assert loss.constant.value == pytest.approx(log_loss(test, prior))
    model = accuracy_score(test, chances.argmax(axis=1)), log_loss(test, chances)
    differences = [metric.difference.value for metric in (accuracy, loss)]
    assert differences == pytest.approx([model[0] - accuracy.constant.value, model[1] - loss.constant.value])
    assert accuracy.surpassed is True
    assert loss.surpassed is True
    assert list(warnings([accuracy, loss])) == []


def test_constants_of_numbers_are_those_of_dummy_regressors():
    rng = np.random.default_rng(7)
    train, truth = rng.exponential(size=500), rng.exponential(size=200)
    predicted = truth + rng.normal(scale=0.1, size=200)
    squared, absolute = ConstantNumber.of(train).compare(truth, predicted, rows(200))
    for comparison, strategy, metric in (
        (squared, "mean", root_mean_squared_error),
        (absolute, "median", mean_absolute_error),
    ):
        dummy = DummyRegressor(strategy=strategy).fit(np.zeros((500, 1)), train).predict(np.zeros((200, 1)))
        assert comparison.prediction == pytest.approx(dummy[0])
        assert comparison.constant.value == pytest.approx(metric(truth, dummy))
        assert comparison.difference.value == pytest.approx(metric(truth, predicted) - metric(truth, dummy))
        assert comparison.surpassed is True


def test_a_model_that_predicts_the_constant_is_warned_about(labels):
    train, test, _ = labels
    constant = ConstantClass.of(train, 3)
    chances = np.tile(constant.shares, (300, 1))
    accuracy, loss = constant.compare(test, chances.argmax(axis=1), chances, rows(300), CLASSES)
    assert accuracy.difference.value == loss.difference.value == 0
    assert accuracy.surpassed is None
    first, second = warnings([accuracy, loss])
    assert (
        first == f"The accuracy on the test rows is that of predicting 'no' for every row: {accuracy.constant.display}."
    )
    assert "that of predicting the shares of the classes" in second


def test_noise_is_not_distinguished_from_the_constant_and_harm_is_named():
    rng = np.random.default_rng(11)
    train, truth = rng.normal(size=300), rng.normal(size=300)
    constant = ConstantNumber.of(train)
    close = constant.compare(truth, constant.mean + 0.05 * rng.normal(size=300), rows(300))[0]
    assert close.surpassed is None
    (sentence,) = warnings([close])
    assert "not distinguishable from" in sentence
    bad = constant.compare(truth, 3 * rng.normal(size=300), rows(300))[0]
    assert bad.surpassed is False
    (sentence,) = warnings([bad])
    assert "worse than" in sentence


def test_a_difference_of_noise_leaves_out_zero_about_one_time_in_twenty():
    """Both predictions are as good as each other: the paired interval has to hold 0."""
    left_out = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=120)
        predicted = np.where(rng.random(120) < 0.5, 0.4, -0.4)
        constant = ConstantNumber(float(np.sqrt(0.16)), 0.0)
        comparison = constant.compare(truth, predicted, Rows(Resamples.of(120, rng)))[0]
        left_out += comparison.surpassed is not None
    assert left_out <= 14
