"""Maps of class probabilities against scikit-learn's calibrators on the same scores, and where nothing is to learn."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from app.ml.numerics.class_probabilities.calibrator import MIN_PROBABILITY, Calibrator, calibrated, log_odds
from app.ml.numerics.class_probabilities.sigmoid import sigmoid, smoothed


class LogOdds(GaussianNB):
    """Scores that our sigmoids see, in place of those that scikit-learn would take."""

    def decision_function(self, x):
        scores = log_odds(self.predict_proba(x))
        return scores[:, 1] if scores.shape[1] == 2 else scores


def classes(k, rows=600, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % k
    x = rng.normal(size=(rows, 4)) + np.repeat(y[:, None], 4, axis=1) + rng.normal(size=(rows, 1))
    return x, y


@pytest.mark.filterwarnings("ignore:Since FrozenEstimator")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    ("method", "estimator", "tolerance"), [("sigmoid", LogOdds, 1e-4), ("isotonic", GaussianNB, 1e-12)]
)
def test_probabilities_are_those_of_scikit_learn(method, estimator, tolerance, k, weighted):
    x, y = classes(k)
    drawn = np.random.default_rng(3).gamma(1.0, size=200)
    weights = drawn / drawn.mean() if weighted else None
    base = estimator().fit(x[:200], y[:200])
    peer = CalibratedClassifierCV(FrozenEstimator(base), method=method).fit(
        x[200:400], y[200:400], sample_weight=weights
    )
    ours = Calibrator.of(method, base.predict_proba(x[200:400]), y[200:400], weights)
    found = calibrated(ours, base.predict_proba(x[400:]))
    np.testing.assert_allclose(found, peer.predict_proba(x[400:]), atol=tolerance)


def test_no_point_near_the_sigmoid_has_a_lower_cross_entropy():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=400) * 3
    of_class = (rng.random(400) < 1 / (1 + np.exp(-scores / 2 - 1))) * 1.0

    def loss(slope, intercept):
        z = slope * scores + intercept
        return (np.logaddexp(0, z) - smoothed(of_class, np.ones(400)) * z).mean()

    slope, intercept = sigmoid(scores, of_class, np.ones(400))
    assert all(loss(slope + a, intercept + b) > loss(slope, intercept) for a, b in rng.normal(0, 1e-3, (50, 2)))


def test_separated_scores_and_equal_scores_have_a_finite_sigmoid():
    apart = np.repeat([0.0, 1.0], 20)
    slope, intercept = sigmoid(np.where(apart > 0, 5.0, -5.0), apart, np.ones(40))
    assert 1 / (1 + np.exp(-5 * slope - intercept)) == pytest.approx(21 / 22, rel=1e-6)
    slope, intercept = sigmoid(np.full(40, 0.3), apart, np.ones(40))
    assert (slope, intercept) == (0.0, pytest.approx(0.0))


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_a_map_keeps_the_order_of_rows(method):
    rng = np.random.default_rng(2)
    p = rng.random(500)
    y = (rng.random(500) < p) * 1
    maps = Calibrator.of(method, np.column_stack([1 - p, p]), y)
    grid = np.sort(np.concatenate([[0.0, MIN_PROBABILITY, 1 - MIN_PROBABILITY, 1.0], rng.random(1000)]))
    after = calibrated(maps, np.column_stack([1 - grid, grid]))
    assert (np.diff(after[:, 1]) >= 0).all()
    assert ((after >= 0) & (after <= 1)).all()
    np.testing.assert_allclose(after.sum(axis=1), 1, rtol=1e-15)


def test_rows_to_which_every_map_gives_zero_keep_their_probabilities():
    """Isotonic maps that are zero below the middle, of three classes with a third each."""
    knots = np.tile([[0.0, 0.0], [0.5, 0.0], [0.6, 1.0]], (3, 1))
    maps = Calibrator(np.zeros((0, 2)), knots, np.array([3, 6, 9]))
    before = np.array([[0.3, 0.3, 0.4], [0.1, 0.1, 0.8]])
    np.testing.assert_array_equal(calibrated(maps, before), [[0.3, 0.3, 0.4], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("k", [2, 5, 12])
def test_a_row_has_the_same_bits_in_any_company(method, k):
    rng = np.random.default_rng(k)
    p = rng.dirichlet(np.ones(k), 300)
    maps = Calibrator.of(method, p, p.argmax(axis=1))
    alone = np.vstack([calibrated(maps, row[None]) for row in p])
    np.testing.assert_array_equal(calibrated(maps, p), alone)
    assert maps.is_sound(k)
    assert not maps.is_sound(k + 1 if k > 2 else 4)


@pytest.mark.parametrize(
    "changes",
    [
        {"ends": np.array([3])},
        {"ends": np.array([2], np.int32)},
        {"knots": np.array([[0.5, 0.2], [0.4, 0.3]])},
        {"knots": np.array([[0.1, 0.4], [0.4, 0.3]])},
        {"knots": np.array([[0.1, 0.4], [0.4, np.nan]])},
        {"coef": np.array([[1.0, 0.0]])},
        {"coef": np.array([[np.inf, 0.0]]), "knots": np.zeros((0, 2)), "ends": np.zeros(0, np.intp)},
    ],
)
def test_what_is_no_map_is_found(changes):
    sound = Calibrator(np.zeros((0, 2)), np.array([[0.1, 0.2], [0.4, 0.3]]), np.array([2]))
    assert sound.is_sound(2)
    assert not sound._replace(**changes).is_sound(2)
