"""Intervals of 95 % hold the truth 95 times in a hundred: 1,000 simulated samples for each number.

0.93 to 0.97 is nominal within three standard deviations of 1,000 trials. Every truth is known in closed form.
"""

import numpy as np
import pytest
from scipy import integrate, special, stats

from app.ml.evaluation import metrics
from app.ml.numerics.linear_algebra.least_squares import least_squares
from app.ml.numerics.linear_models.coefficient_errors import Inference
from app.ml.statistics.intervals import RESAMPLES, Resamples, accelerated, percentile
from app.ml.statistics.metric_value import fold_mean
from tests.benchmarks import interval_coverage

SAMPLES = 1000
ROWS = [*interval_coverage.ROWS]
GRID = [*interval_coverage.ERRORS, *interval_coverage.PRIORS]


def rng(seed=0):
    return np.random.default_rng(seed)


def coverage(truths, samples):
    """The share of samples, each a list of metrics, whose interval holds the truth of that name."""
    held = dict.fromkeys(truths, 0)
    for measured in samples:
        result = {metric.name: metric for metric in measured if metric.label is None}
        for name, truth in truths.items():
            held[name] += result[name].lower <= truth <= result[name].upper
    return {name: count / SAMPLES for name, count in held.items()}


def outside(shares, low=0.93, high=0.97):
    return {name: float(share) for name, share in shares.items() if not low <= share <= high}


@pytest.mark.parametrize("n", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_regression(n):
    """Target N(0, 1), error N(0, 1/4): RMSE 1/2, MAE √(2/π)/2, R² 3/4."""
    draws, random = Resamples.of(n, rng()), rng(n)
    truth, error = random.normal(size=(SAMPLES, n)), random.normal(scale=0.5, size=(SAMPLES, n))
    samples = (metrics.regression(t, t + e, draws) for t, e in zip(truth, error, strict=True))
    shares = coverage({"rmse": 0.5, "mae": 0.5 * np.sqrt(2 / np.pi), "r2": 0.75}, samples)
    assert outside(shares, high=0.985) == {}  # few rows may have heavy tails, for which the upper end allows


@pytest.mark.parametrize("law", ["normal", "skewed"])
@pytest.mark.parametrize("kind", ROWS)
def test_regression_of_other_laws(law, kind):
    """A slice of the grid of the benchmark: 40 rows, with weights, in groups of ten."""
    shares = interval_coverage.coverage(law, kind, 40, 100)
    assert {name: share for name, share in shares.items() if share[0] < 0.86 or share[1]} == {}


@pytest.mark.slow
@pytest.mark.parametrize("law", GRID)
@pytest.mark.parametrize("kind", ROWS)
def test_the_grid(law, kind):
    """100 rows: at least 0.87 of 120 samples, which is three standard deviations below 0.94, for every metric."""
    shares = interval_coverage.coverage(law, kind, 100, 120)
    assert {name: share for name, share in shares.items() if share[0] < 0.87} == {}


def test_the_bootstrap_holds_less():
    """Why RMSE has an interval of its own: percentiles of 20 rows, and those moved for skewness and few rows."""
    draws, error = Resamples.of(20, rng()), rng(1).normal(size=(SAMPLES, 20))
    roots = [np.sqrt(draws.sums(e * e) / draws.size()) for e in error]
    plain = [percentile(root[:RESAMPLES]) for root in roots]
    moved = [
        accelerated(np.sqrt((e * e).mean()), root[:RESAMPLES], root[RESAMPLES:])
        for e, root in zip(error, roots, strict=True)
    ]
    assert np.mean([low <= 1 <= high for low, high in plain]) < 0.89
    assert np.mean([low <= 1 <= high for low, high in moved]) < 0.935


def logit_normal(value):
    """The mean of a function of p = 1/(1 + exp(-x)) for x of N(0, 9/4)."""
    density = stats.norm(scale=1.5).pdf
    return integrate.quad(lambda x: density(x) * value(special.expit(x), special.expit(-x)), -40, 40)[0]


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 200])
def test_classification(n):
    """Calibrated probabilities. The exact interval of accuracy may hold more, never less."""
    share = logit_normal(np.maximum)
    truths = {
        "log_loss": logit_normal(lambda p, q: special.entr(p) + special.entr(q)),
        "brier": logit_normal(lambda p, q: p * q),
        "roc_auc": logit_auc(),
        "mcc": 2 * share - 1,
        **dict.fromkeys(("accuracy", "balanced_accuracy", "precision", "recall", "f1"), share),  # the classes are alike
    }
    draws, random = Resamples.of(n, rng()), rng(n)
    p = special.expit(random.normal(scale=1.5, size=(SAMPLES, n)))
    codes = (random.random((SAMPLES, n)) < p).astype(np.intp)
    both = np.stack([1 - p, p], axis=2)
    shares = coverage(truths, (metrics.classification(c, q, "ab", draws) for c, q in zip(codes, both, strict=True)))
    assert 0.945 <= shares.pop("accuracy") <= 0.985
    assert outside(shares, low=0.925, high=0.98) == {}  # the exact interval of a share is no narrower than it has to be


def logit_auc():
    """P(score of a positive > score of a negative), by the densities of both."""
    x = np.linspace(-12, 12, 4001)
    positive, negative = stats.norm(scale=1.5).pdf(x) * special.expit([x, -x])
    below = integrate.cumulative_simpson(negative, x=x, initial=0)
    return float(integrate.simpson(positive * below, x=x) / (positive.sum() * negative.sum() * (x[1] - x[0]) ** 2))


DESIGN = np.column_stack([np.linspace(-1, 2, 30), np.sin(np.arange(30.0))])
TRUE = np.array([2.0, -1.0])


def fits(weights, sigma):
    """One fit for each of 1,000 noisy targets of the same inputs; noise of standard deviation 0.7/√weight."""
    noise = rng(5).normal(scale=0.7, size=(30, SAMPLES)) / np.sqrt(weights)[:, None]
    found, factor = least_squares(DESIGN, (DESIGN @ TRUE + 3.0)[:, None] + noise, weights, True)
    for coef, intercept, square in zip(found.coef.T, found.intercept, found.square, strict=True):
        total, logs = float(weights.sum()), float(np.log(weights).sum())
        yield Inference(coef, float(intercept), factor, found.mean, total, logs, float(square), 30, sigma)


@pytest.mark.parametrize("sigma", [None, 0.7], ids=["noise estimated", "noise known"])
def test_linear(sigma):
    """Coefficients, intercept, and the mean prediction at inputs inside and outside the data."""
    at = np.array([[0.0, 0.0], [1.0, -0.5], [6.0, 2.0]])
    truths = np.concatenate([TRUE, [3.0], at @ TRUE + 3.0])
    held = np.zeros(len(truths))
    for fit in fits(rng(2).uniform(0.2, 3, 30), sigma):
        result = fit.summary()
        errors = np.append(result["standard_errors"], result["intercept_standard_error"])
        spread = (special.ndtri(0.975) if sigma else special.stdtrit(fit.freedom, 0.975)) * errors
        middle = np.concatenate([fit.coef, [fit.intercept], at @ fit.coef + fit.intercept])
        reach = np.concatenate([spread, fit.reach(at - fit.mean, 0.95)])
        held += np.abs(middle - truths) <= reach
    assert outside(dict(enumerate(held / SAMPLES))) == {}


def test_mean_over_folds():
    """Five folds of a linear fit, which moves little between folds: what it estimates is its own expectation."""
    y = (DESIGN @ TRUE)[:, None] + rng(8).normal(size=(30, SAMPLES))
    scores = []
    for fold in np.array_split(rng(1).permutation(30), 5):
        rest = np.setdiff1d(np.arange(30), fold)
        found, _ = least_squares(DESIGN[rest], y[rest], np.ones(len(rest)), True)
        scores.append((np.abs(y[fold] - DESIGN[fold] @ found.coef - found.intercept)).mean(axis=0))
    truth = np.mean(scores)
    result = [fold_mean("mae", np.array(each)) for each in zip(*scores, strict=True)]
    assert outside({"mae": np.mean([metric.lower <= truth <= metric.upper for metric in result])}) == {}
