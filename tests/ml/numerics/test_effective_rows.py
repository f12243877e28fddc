"""The effective number of rows, wherever the product names it, is Kish's."""

import numpy as np
import pytest

from app.ml.algorithms import bayesian_locally_weighted as bayesian
from app.ml.algorithms import locally_weighted as local
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.effective_rows import effective_rows
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.resampling import Rows

RNG = np.random.default_rng(0)
X, Y, WEIGHTS = RNG.normal(size=(30, 2)), RNG.normal(size=30), RNG.uniform(0.5, 2, 30)


def kish(weights):
    return weights.sum() ** 2 / (weights**2).sum()


@pytest.mark.parametrize(
    ("weights", "rows"), [(np.full(7, 0.1), 7), ([3, 1, 0], 1.6), ([1e-200, 1e-200], 2), ([0.0, 0], 0)]
)
def test_rows_of_equal_weight_that_would_tell_as_much(weights, rows):
    assert float(effective_rows(np.array(weights, float))) == pytest.approx(rows)


@pytest.mark.parametrize("algorithm", [local, bayesian])
def test_planes_name_that_of_their_weights(algorithm):
    data = Data.of(Task.REGRESSION, X, Y, weights=WEIGHTS)
    params = algorithm.ALGORITHM.params(width=2.0)
    state = algorithm.fit(params, data, Context.of(0)).state
    for query, explanation in zip(X[:5] + 0.1, algorithm.explain(params, state, X[:5] + 0.1), strict=True):
        expected = kish(np.exp(-2 * ((X - query) ** 2).sum(axis=1) / 2) * state.weights)
        assert explanation["effective_rows"] == pytest.approx(expected)


def test_intervals_of_weighted_metrics_rest_on_it():
    rows = Rows(Resamples.of(30, np.random.default_rng(0)), WEIGHTS)
    assert rows.worth() == int(kish(WEIGHTS))
