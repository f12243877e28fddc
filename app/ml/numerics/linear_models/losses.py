"""Losses of a linear score, and the mean loss over rows as a function of the coefficients.

With scores z (n, s) and targets t (n, s): squared ½(z − t)², absolute |z − t|, and for signs t = ±1 hinge
max(0, 1 − tz), logistic log(1 + exp(−tz)) and, over all s scores of a row together, softmax −log p.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import NamedTuple, Self, cast

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.sparse_rows import mapped, sparse
from app.ml.numerics import row_blocks
from app.ml.numerics.linear_algebra.solve import Centred, centred, positive_solver
from app.ml.numerics.linear_models.compiled.row_sums import log_odds_sums
from app.ml.numerics.linear_models.scaled_rows import ScaledRows
from app.ml.numerics.linear_models.softmax import likelihood
from app.ml.numerics.linear_models.softmax import losses as class_losses

COMPILED = 2**18
"""Numbers from which on compiled loops take longer than their loading."""


class Loss(IntEnum):
    SQUARED = 0
    ABSOLUTE = 1
    HINGE = 2
    LOGISTIC = 3
    SOFTMAX = 4

    @property
    def smooth(self) -> bool:
        return self not in {Loss.ABSOLUTE, Loss.HINGE}


def losses(kind: Loss, scores: Matrix, targets: Matrix) -> Vector:
    """Loss of each row, summed over its scores: (n,)."""
    match kind:
        case Loss.SQUARED:
            each = 0.5 * np.square(scores - targets)
        case Loss.ABSOLUTE:
            each = np.abs(scores - targets)
        case Loss.HINGE:
            each = np.maximum(1 - targets * scores, 0.0)
        case Loss.LOGISTIC:
            each = np.logaddexp(0.0, -targets * scores)
        case Loss.SOFTMAX:
            return class_losses(scores, targets > 0)
    return np.asarray(each.sum(axis=1))


def slopes(kind: Loss, scores: Matrix, targets: Matrix) -> Matrix:
    """By each score, (n, s); at a corner, that of the flat or lower side."""
    match kind:
        case Loss.SQUARED:
            return scores - targets
        case Loss.ABSOLUTE:
            return np.sign(scores - targets)
        case Loss.HINGE:
            return -targets * (targets * scores < 1)
        case Loss.LOGISTIC:
            return np.asarray(-targets * scipy.special.expit(-targets * scores))
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True) - (targets > 0))


def losses_and_slopes(kind: Loss, scores: Matrix, targets: Matrix) -> tuple[Vector, Matrix]:
    """Both at once: of probabilities they share the exponentials."""
    if kind is Loss.SOFTMAX or (kind is Loss.LOGISTIC and scores.shape[1] == 1):
        return likelihood(scores, targets > 0)
    return losses(kind, scores, targets), slopes(kind, scores, targets)


@dataclass(frozen=True)
class MeanLoss:
    """Weighted mean loss plus ½α‖β‖², over points (d + 1, s): coefficients, and the intercepts last.

    `scaled` has coordinates of its own: each column is centred and divided by √(variance + α), the target of a
    regression likewise, so that slopes and curvatures are about 1 whatever the units. `plain` has those of the data.
    """

    kind: Loss
    x: Matrix
    """(n, d + 1), the last column ones, or zeros without an intercept; `ScaledRows` of sparse rows."""
    targets: Matrix
    """(n, s)."""
    weights: Vector
    """(n,), summing to 1."""
    penalty: Matrix
    """(d + 1, 1), zero for the intercepts."""
    mean: Vector
    unit: Vector
    middle: Vector
    """(s,) of the targets."""
    spread: float

    @classmethod
    def plain(cls, kind: Loss, x: Matrix, targets: Matrix, weights: Vector, alpha: float, *, intercept: bool) -> Self:
        d, s = x.shape[1], targets.shape[1]
        none, ones = np.zeros(d), np.ones(d)
        inputs = _with_constant(x, none, ones, float(intercept))
        penalty = np.append(alpha * ones, 0.0)[:, None]
        return cls(kind, inputs, targets, weights / weights.sum(), penalty, none, ones, np.zeros(s), 1.0)

    @classmethod
    def scaled(cls, kind: Loss, x: Matrix, targets: Matrix, weights: Vector, alpha: float, *, intercept: bool) -> Self:
        share = weights / weights.sum()
        none = np.zeros(x.shape[1])
        if sparse(x) is not None:
            inputs = Centred(x, share @ x if intercept else none)  # centred in products only
            variance = np.maximum(share @ mapped(x, np.square) - inputs.mean**2, 0.0)
        else:
            inputs = centred(x, share) if intercept else Centred(x, none)
            variance = share @ np.square(inputs.x)
        aims, spread = Centred(targets, np.zeros(targets.shape[1])), 1.0
        if kind in {Loss.SQUARED, Loss.ABSOLUTE}:
            aims = centred(targets, share) if intercept else aims
            spread = float(np.abs(aims.x).max()) or 1.0
        alpha *= (
            spread if kind is Loss.ABSOLUTE else 1.0
        )  # the loss shrinks with the spread, the penalty with its square
        unit = np.sqrt(variance + alpha)
        unit[unit == 0] = 1.0
        rows = _with_constant(inputs.x, inputs.mean, unit, float(intercept))
        penalty = np.append(alpha / unit / unit, 0.0)[:, None]
        return cls(kind, rows, aims.x / spread, share, penalty, inputs.mean, unit, aims.mean, spread)

    @property
    def zero(self) -> Matrix:
        return np.zeros((self.x.shape[1], self.targets.shape[1]))

    def value(self, point: Matrix) -> float:
        return self._mean(losses(self.kind, self.x @ point, self.targets), point)

    def with_slope(self, point: Matrix) -> tuple[float, Matrix]:
        whole = slice(0, len(self.targets))
        if not isinstance(self.x, np.ndarray):
            loss, slope = self._sums(point, whole)
        else:
            compiled = self.kind is Loss.LOGISTIC and point.shape[1] == 1 and self.x.size >= COMPILED
            part = partial(self._compiled_sums if compiled else self._sums, point)
            loss, slope = row_blocks.summed(part, whole.stop, 1)
        loss += 0.5 * float((self.penalty * np.square(point)).sum())
        return loss, slope + self.penalty * point

    def _sums(self, point: Matrix, rows: slice) -> tuple[float, Matrix]:
        """The loss of these rows, and its slopes."""
        x, weights = (self.x[rows] if isinstance(self.x, np.ndarray) else self.x), self.weights[rows]
        each, slope = losses_and_slopes(self.kind, x @ point, self.targets[rows])
        return float(weights @ each), np.asarray(x.T @ (weights[:, None] * slope))

    def _compiled_sums(self, point: Matrix, rows: slice) -> tuple[float, Matrix]:
        """The same of the logistic loss, reading each row once."""
        x, weights, coef = self.x[rows], self.weights[rows], point[:, 0].copy()
        sums, small = np.zeros(len(coef) + 1), np.empty(len(x))
        loss = log_odds_sums(x, (self.targets[rows, 0] > 0).astype(np.float64), weights, coef, 0.0, sums, small)
        return loss + float(weights @ np.log1p(small, out=small)), sums[:-1, None]

    def linear(self, point: Matrix) -> tuple[Matrix, Vector]:
        """Coefficients (d, s) and intercepts (s,) in the coordinates of the data."""
        coef = self.spread * (point[:-1] / self.unit[:, None])
        return coef, self.middle + self.spread * point[-1] - self.mean @ coef

    def point(self, coef: Matrix, intercept: Vector) -> Matrix:
        """The inverse of `linear`."""
        last = (intercept - self.middle + self.mean @ coef) / self.spread
        return np.vstack([coef * self.unit[:, None] / self.spread, last])

    def _mean(self, each: Vector, point: Matrix) -> float:
        return float(self.weights @ each + 0.5 * (self.penalty * np.square(point)).sum())


class MeanSquare(NamedTuple):
    """The mean loss of a squared loss by sums over the rows, which cost digits near a perfect fit."""

    products: Matrix
    """(d + 1, d + 1) weighted, of the columns."""
    cross: Matrix
    """(d + 1, s) of columns and targets."""
    square: float
    """Weighted sum of the squared targets."""
    penalty: Matrix

    @classmethod
    def of(cls, loss: MeanLoss) -> Self:
        def part(rows: slice) -> tuple[Matrix, Matrix, float]:
            x, targets = loss.x[rows], loss.targets[rows]
            weighted = x.T * loss.weights[rows]
            return weighted @ x, weighted @ targets, float(loss.weights[rows] @ np.square(targets).sum(axis=1))

        products, cross, square = row_blocks.summed(part, len(loss.x), loss.x.shape[1])
        return cls(products, cross, square, loss.penalty)

    def value(self, point: Matrix) -> float:
        return self.with_slope(point)[0]

    def with_slope(self, point: Matrix) -> tuple[float, Matrix]:
        slope = self.products @ point + self.penalty * point - self.cross
        return 0.5 * float((point * (slope - self.cross)).sum() + self.square), slope

    def lowest_from(self, point: Matrix) -> Matrix:
        """The minimum, but for the rounding of one step there."""
        solve = positive_solver(self.products + np.diag(self.penalty[:, 0]))
        return np.asarray(point - np.column_stack([solve(slope) for slope in self.with_slope(point)[1].T]))


def _with_constant(x: Matrix, mean: Vector, unit: Vector, constant: float) -> Matrix:
    """(n, d + 1) x over the unit, and the constant. mean: less which sparse rows are taken; an array is so already."""
    if (rows := sparse(x)) is not None:
        return cast("Matrix", ScaledRows(rows, mean, unit, constant))
    return np.column_stack([x / unit, np.full(len(x), constant)])
