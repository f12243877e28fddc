"""Absolute error of a regression as a function of its prediction: a piecewise linear function, fitted by iteratively
reweighted least squares.

An error whose spread is σ(prediction) has weight 1/σ², so that small errors shape the function where errors are small;
one beyond `OUTLYING`·σ counts as that, so that a few do not.

Reference: Carroll & Ruppert (1988), Transformation and Weighting in Regression, chapter 3.
"""

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector

KNOTS = {60: 2, 200: 3, 1000: 5}
"""Knots for fewer rows than the key; `MOST_KNOTS` for more."""
MOST_KNOTS = 9
OUTLYING = 4.0
MIN_SPREAD = 0.05
"""Smallest spread, as a share of the mean error: widths differ by a bounded factor."""
ROUNDS = 10
NONE = np.zeros((2, 0))
"""The spread does not depend on the prediction."""


def error_spread(predicted: Vector, errors: Vector) -> Matrix:
    """(2, k) predictions, ascending, and the mean absolute error there; without knots where the rows show none.

    errors: (n,) absolute. Beyond the outer knots the spread is that of the knot.
    """
    there = np.isfinite(predicted) & np.isfinite(errors)
    predicted, errors = predicted[there], errors[there]
    size = errors.mean() if errors.size else 0.0
    count = next((knots for rows, knots in KNOTS.items() if errors.size < rows), MOST_KNOTS)
    knots = np.unique(np.quantile(predicted, np.linspace(0, 1, count))) if errors.size else np.zeros(0)
    if knots.size < 2 or not MIN_SPREAD * size > 0 or not np.isfinite(size) or not np.isfinite(np.ptp(knots)):
        return NONE
    return np.stack([knots, size * _fitted(_hats(predicted, knots), errors / size)])


def error_of_predictions(spread: Matrix, predicted: Vector) -> Vector:
    """The spread at these predictions (n,); 1 without knots."""
    return np.interp(predicted, *spread) if spread.shape[1] else np.ones(len(predicted))


def _hats(x: Vector, knots: Vector) -> Matrix:
    """(n, k) 1 at its own knot, 0 at the others, linear between."""
    return np.stack([np.interp(x, knots, row) for row in np.eye(knots.size)], axis=1)


def _fitted(hats: Matrix, errors: Vector) -> Vector:
    """(k,) the function at the knots, for errors of mean 1. One row of weight holds it near 1 where there are few."""
    heights = np.ones(hats.shape[1])
    for _ in range(ROUNDS):
        spread = hats @ heights
        weighted = hats / spread[:, None] ** 2
        held = np.diag(1 / heights**2)
        right = weighted.T @ np.minimum(errors, OUTLYING * spread) + held.sum(axis=1)
        heights = np.maximum(np.linalg.solve(weighted.T @ hats + held, right), MIN_SPREAD)
    return heights
