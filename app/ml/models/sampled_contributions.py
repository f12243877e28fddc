"""Estimated Shapley values for any model: antithetic permutations of the columns, with standard errors.

A column that is absent has the value of a training row. Columns take the values of the row one after the other, in a
drawn order and in its reverse, once for each training row that the model keeps; what each changes is its part, so that
the parts add up exactly. The mean of an order and its reverse is exact where no more than two columns interact.

Reference: Mitchell, Cooper, Frank & Holmes (2022), Sampling permutations for Shapley value estimation, JMLR 23:43.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.models.model import Model

MAX_PASSES = 4
"""Orders of the columns for each training row, at most, each with its reverse."""
CELLS = 2**20
"""Numbers of the rows that are predicted together, about."""
PRECISE = 0.02
"""Standard error, as a share of the sizes of all contributions of a row, that needs no further pass."""


class Estimated(NamedTuple):
    """Contributions of p columns to k responses of n rows."""

    base: Vector
    """(k,) mean response of the training rows that are kept."""
    raw: Matrix
    """(n, k)"""
    values: NDArray[np.float64]
    """(n, k, p)"""
    standard_errors: NDArray[np.float64]
    """(n, k, p)"""


def estimate(model: Model, rows: Matrix, raw: Matrix) -> Estimated:
    """Contributions for a raw matrix (n, p); rows: (m, p) training rows."""
    base, ends = _responses(model, rows), _responses(model, raw)
    start = _Start(model, rows, base, [_orders(len(rows), raw.shape[1], number) for number in range(MAX_PASSES)])
    parts = [_row(start, row, end) for row, end in zip(raw, ends, strict=True)]
    return Estimated(base.mean(axis=0), ends, np.array([mean for mean, _ in parts]), np.array([e for _, e in parts]))


def evaluations(rows: int, columns: int) -> int:
    """Predictions that a row takes at least."""
    return 2 * rows * max(1, columns - 1)


class _Start(NamedTuple):
    """Training rows, and the orders in which columns take the values of a row."""

    model: Model
    rows: Matrix
    """(m, p) training rows."""
    base: Matrix
    """(m, k) their responses."""
    orders: list[NDArray[np.intp]]
    """(m, 2, p) of each pass."""


def _responses(model: Model, raw: Matrix) -> Matrix:
    """(n, k) numbers, or probabilities: of two classes that of the second."""
    predictions = np.asarray(model.algorithm.predict(model.params, model.state, model.preparation.matrix(raw)))
    if predictions.ndim == 1:
        return predictions[:, None]
    return predictions[:, 1:] if predictions.shape[1] == 2 else predictions


def _orders(rows: int, columns: int, number: int) -> NDArray[np.intp]:
    """(rows, 2, columns) an order of the columns for each training row, and its reverse: the same for every row."""
    rng = np.random.Generator(np.random.PCG64([number, columns]))
    orders = rng.permuted(np.tile(np.arange(columns), (rows, 1)), axis=1)
    return np.stack([orders, orders[:, ::-1]], axis=1)


def _row(start: _Start, row: Vector, end: Vector) -> tuple[Matrix, Matrix]:
    """(k, p) the contributions to one row, and their standard errors."""
    step = max(1, CELLS // (2 * row.size**2))
    parts: list[NDArray[np.float64]] = []
    for orders in start.orders:
        for first in range(0, len(orders), step):
            some = slice(first, first + step)
            rows, base = start.rows[some], start.base[some]
            parts.append(_changes(start._replace(rows=rows, base=base, orders=[orders[some]]), row, end))
        samples = np.concatenate(parts)
        mean, deviation = samples.mean(axis=0), samples.std(axis=0, ddof=min(1, len(samples) - 1))
        errors = deviation / np.sqrt(len(samples))
        if (errors <= PRECISE * np.abs(mean).sum(axis=1, keepdims=True)).all():
            break
    return mean, errors


def _changes(start: _Start, row: Vector, end: Vector) -> NDArray[np.float64]:
    """(m, k, p) what each column changes, as a mean of an order and its reverse, from each training row."""
    (m, p), k = start.rows.shape, end.size
    ranks = start.orders[0].argsort(axis=2)
    taken = ranks[:, :, None, :] < np.arange(1, p)[:, None]
    mixed = np.where(taken, row, start.rows[:, None, None, :]).reshape(-1, p)
    responses = np.empty((m, 2, p + 1, k))
    responses[:, :, 0], responses[:, :, p] = start.base[:, None], end
    if p > 1:
        responses[:, :, 1:p] = _responses(start.model, mixed).reshape(m, 2, p - 1, k)
    steps = np.take_along_axis(np.diff(responses, axis=2), ranks[..., None], axis=2)
    return np.ascontiguousarray(steps.mean(axis=1).swapaxes(1, 2))
