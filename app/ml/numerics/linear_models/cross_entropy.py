"""Cross-entropy of a linear softmax, with its derivatives, by blocks of rows that stay in cache."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.sparse_rows import dense, mapped, sparse
from app.ml.numerics import row_blocks
from app.ml.numerics.linear_algebra.solve import EPS, centred
from app.ml.numerics.linear_models.compiled import row_sums
from app.ml.numerics.linear_models.softmax import likelihood, probabilities

CELLS = 2**18
"""Numbers of `x` worked on at a time: they stay in cache for the way there and the way back."""
MANY_CELLS = 2**21
"""From here on a Hessian is made of 32-bit products, whose sums over blocks have 64 bits."""
CONSTANT = 64 * EPS
"""Deviation of a column, as a share of its mean, that is rounding; its root, of squares less the square of the mean."""
MODERATE = 1e10
"""Units of columns up to this and down to its inverse, the squares of which 32 bits hold."""
WELL_CONDITIONED = 0.01
"""Smallest squared pivot, of directions scaled to curvature 1, at which 32-bit products leave five digits."""


class Linear(NamedTuple):
    coef: Matrix
    """(d, s)."""
    intercept: Vector
    """(s,)."""


@dataclass(frozen=True)
class CrossEntropy:
    """Mean loss per unit of weight plus ½λ‖coef‖²/Σw, over a point (m,) with m = (d + 1)·s.

    In coordinates of its own: each column is centred and divided by √(variance + λ/Σw), or by 1 where that is 0, and
    there is a last one of ones. Curvatures are about 1 or less whatever the units, and a gradient is a pure number. The
    columns stay as they are; what centring and scaling do to sums over rows is done to the sums. So sparse rows stay
    sparse; a Hessian, of few columns, is made of dense blocks.
    """

    x: Matrix
    """(n, d)."""
    targets: Matrix
    """(n, s)."""
    weights: Vector
    """(n,), summing to 1."""
    penalty: Vector
    """(d + 1,), zero for the ones."""
    offset: Vector
    """(d,) weighted means of `x`, no larger than its deviations."""
    mean: Vector
    """(d,) of the inputs as they came."""
    unit: Vector

    @classmethod
    def of(cls, x: Matrix, targets: Matrix, weights: Vector, penalty: float) -> Self:
        """penalty: λ ≥ 0. targets: (n, 1) with 1 for the second class, or one-hot (n, s)."""
        share = weights / weights.sum()
        with np.errstate(over="ignore"):
            mean, squares = _moments(x, share)
        if not np.isfinite(squares).all():
            raise InvalidData("Columns have values whose squares are too large for a number: scale them.")
        offset, variance = mean, squares - mean**2
        if sparse(x) is not None:
            variance = np.maximum(variance, 0.0)  # rounding of a constant column
        elif (mean**2 > variance).any():  # far from zero centring afterwards would cost digits
            x, mean = centred(x, weights)
            offset, variance = np.zeros(x.shape[1]), _moments(x, share)[1]
        ridge = penalty / weights.sum()
        unit = np.sqrt(variance + ridge)
        rounding = np.abs(mean) * (CONSTANT if sparse(x) is None else np.sqrt(CONSTANT))
        constant = (penalty == 0) & (unit <= rounding)  # its coefficient is 0, as with any penalty
        unit = np.where(constant, 1.0, unit)
        shrunk = np.where(constant, 1.0, ridge / unit**2)
        return cls(x, np.asfortranarray(targets), share, np.append(shrunk, 0.0), offset, mean, unit)

    def every(self, step: int) -> "CrossEntropy":
        """The cross-entropy of every `step`-th row, in the same coordinates."""
        share, x = self.weights[::step], self.x[::step]
        x = np.ascontiguousarray(x) if isinstance(x, np.ndarray) else x
        return replace(self, x=x, targets=np.asfortranarray(self.targets[::step]), weights=share / share.sum())

    @property
    def start(self) -> Vector:
        """No influence of the inputs, and the observed share of each class."""
        share = self.weights @ self.targets
        complement = self.weights @ (1 - self.targets)
        odds = np.log(share) - (np.log(complement) if len(share) == 1 else np.log(share).mean())
        return np.vstack([np.zeros((self.x.shape[1], len(share))), odds]).ravel()

    def linear(self, point: Vector) -> Linear:
        """The same in the coordinates of the data."""
        b = self.unpacked(point)
        coef = b[:-1] / self.unit[:, None]
        return Linear(coef, b[-1] - self.mean @ coef)

    def point(self, coef: Matrix, intercept: Vector) -> Vector:
        """The inverse of `linear`."""
        return np.vstack([coef * self.unit[:, None], intercept + self.mean @ coef]).ravel()

    def __call__(self, point: Vector) -> tuple[float, Vector]:
        """Value and gradient (m,)."""
        b = self.unpacked(point)
        coef, constant = self.plain(b)
        shrunk = self.penalty[:, None] * b
        value = 0.5 * float((shrunk * b).sum())
        part = partial(_compiled_sums if self._compiled else _sums, self, Linear(coef, constant))
        if sparse(self.x) is None:
            losses, sums = row_blocks.summed(part, len(self.x), 1)
        else:
            losses, sums = part(slice(0, len(self.x)))
        value += losses
        sums[:-1] -= np.outer(self.offset, sums[-1])
        sums[:-1] /= self.unit[:, None]
        return value, (sums + shrunk).ravel()

    def hessian(self, point: Vector) -> Matrix:
        """(m, m), positive definite. Of many rows, within 1e-7 of its largest entries where its condition allows it."""
        many = self._compiled and self.x.size >= MANY_CELLS
        if many and (np.maximum(self.unit, 1 / self.unit) < MODERATE).all():
            quick = self._single_precision_hessian(point)
            triangle = _triangle(quick)
            if triangle is not None and triangle.diagonal().min() ** 2 >= WELL_CONDITIONED:
                return quick
        return self.double_precision_hessian(point)

    def _single_precision_hessian(self, point: Vector) -> Matrix:
        """The Hessian for two classes, from products in 32 bits of rows that are read once."""
        coef, constant = self.plain(self.unpacked(point))
        d, first_coef = len(coef), np.ascontiguousarray(coef[:, 0])

        def part(section: slice) -> tuple[Matrix, Vector, float]:
            products, sums, mass = np.zeros((d, d)), np.zeros(d), 0.0
            for rows in self.blocks(section):
                x = self.x[rows]
                spread, scaled = np.empty(len(x)), np.empty(x.shape, np.float32)
                row_sums.spread_rows(x, self.weights[rows], first_coef, constant.item(), spread, scaled)
                products += scaled.T @ scaled
                sums += spread.astype(np.float32) @ scaled
                mass += float(spread @ spread)
            return products, sums, mass

        products, sums, mass = row_blocks.summed(part, len(self.x), d)
        return self.about_means(products, sums, mass) + np.diag(self.penalty)

    def double_precision_hessian(self, point: Vector) -> Matrix:
        """(m, m), positive definite but for rounding.

        The same constant added to all scores changes nothing when s > 1. Along those directions the mean curvature
        of all others is added; the gradient has no part in them, so no Newton step is changed by it.
        """
        coef, constant = self.plain(self.unpacked(point))
        d, s = len(coef), len(constant)
        if s == 1:
            return np.asarray(self.each_score(point)[0] + np.diag(self.penalty), np.float64)

        def part(section: slice) -> tuple[Matrix]:
            pairs = np.zeros((s * (d + 1), s * (d + 1)))
            for rows in self.blocks(section):
                x, p = dense(self.x[rows]), probabilities(_product(self.x[rows], coef) + constant)
                _add_pairs(pairs, x, p * np.sqrt(self.weights[rows])[:, None])
            return (pairs,)

        (pairs,) = row_blocks.summed(part, len(self.x), s * (d + 1))
        crossed = pairs.reshape(s, d + 1, s, d + 1)
        blocks = np.zeros((d + 1, s, d + 1, s))
        for i, block_hessian in enumerate(self.each_score(point)):
            blocks[:, i, :, i] = block_hessian
            for j in range(i):
                gram = crossed[i, :, j]
                blocks[:, i, :, j] = blocks[:, j, :, i] = -self.about_means(gram[:-1, :-1], gram[-1, :-1], gram[-1, -1])
        block_hessian = np.arange(d + 1)
        for i in range(s):
            blocks[block_hessian, i, block_hessian, i] += self.penalty
        blocks[block_hessian, :, block_hessian, :] += np.einsum("isis->", blocks) / ((d + 1) * s * s)
        return blocks.reshape((d + 1) * s, (d + 1) * s)

    def each_score(self, point: Vector) -> NDArray[np.float64]:
        """(s, d + 1, d + 1): the curvature in the coefficients of one score, all others fixed, without the penalty."""
        coef, constant = self.plain(self.unpacked(point))
        d, s = coef.shape

        def part(section: slice) -> tuple[NDArray[np.float64], Matrix, Vector]:
            products, sums, mass = np.zeros((s, d, d)), np.zeros((s, d)), np.zeros(s)
            for rows in self.blocks(section):
                x, p = dense(self.x[rows]), probabilities(_product(self.x[rows], coef) + constant)
                spread = np.sqrt(self.weights[rows, None] * p * (1 - p))
                for i in range(s):
                    scaled = x * spread[:, i, None]
                    products[i] += scaled.T @ scaled
                    sums[i] += spread[:, i] @ scaled
                    mass[i] += spread[:, i] @ spread[:, i]
            return products, sums, mass

        parts = row_blocks.summed(part, len(self.x), s * (d + 1))
        return np.stack([self.about_means(*terms) for terms in zip(*parts, strict=True)])

    def errors(self, point: Vector, weight: float) -> NDArray[np.float64]:
        """F (d + 1, s, m): FFᵀ is the inverse Hessian of the whole loss, of rows with this sum of weights.

        In the coordinates of the data: coefficients, then the intercept. It is the covariance of a maximum
        likelihood estimate, and of a Gaussian near the highest point of a posterior whose prior is the penalty. Of
        scores that only count relative to each other, what they have in common has no error. Empty where a
        direction has no curvature left but rounding: columns that depend on each other beside a penalty far smaller
        than their variance, or probabilities so near 0 and 1.
        """
        d, s = self.x.shape[1], self.targets.shape[1]
        hessian = self.hessian(point) * weight
        scale, triangle = np.sqrt(hessian.diagonal()), _triangle(hessian)
        if triangle is None or triangle.diagonal().min() ** 2 <= len(scale) * EPS:
            return np.zeros((0, 0, 0))
        root = scipy.linalg.solve_triangular(triangle, np.eye(len(scale))) / scale[:, None]
        factor = root.reshape(d + 1, s, -1)
        if s > 1:
            factor = factor - factor.mean(axis=1, keepdims=True)
        coef = factor[:-1] / self.unit[:, None, None]
        constant = factor[-1] - np.tensordot(self.mean, coef, 1)
        return np.ascontiguousarray(np.concatenate([coef, constant[None]]))

    def about_means(self, products: Matrix, sums: Vector, mass: float) -> Matrix:
        """(d + 1, d + 1): in own coordinates, ones last, from weighted sums of the columns as they are."""
        move = np.outer(self.offset, sums)
        gram = np.empty((len(sums) + 1, len(sums) + 1))
        gram[:-1, :-1] = products - move - move.T + mass * np.outer(self.offset, self.offset)
        gram[-1, :-1] = gram[:-1, -1] = sums - mass * self.offset
        gram[-1, -1] = mass
        unit = np.append(self.unit, 1.0)
        return np.asarray(gram / unit / unit[:, None])

    def plain(self, b: Matrix) -> Linear:
        """The scores as a linear form of `x`."""
        coef = b[:-1] / self.unit[:, None]
        return Linear(coef, b[-1] - self.offset @ coef)

    def blocks(self, section: slice) -> Iterator[slice]:
        step = max(1, CELLS // max(1, self.x.shape[1]))
        return (slice(start, min(start + step, section.stop)) for start in range(section.start, section.stop, step))

    def unpacked(self, point: Vector) -> Matrix:
        return point.reshape(self.x.shape[1] + 1, -1)

    @property
    def _compiled(self) -> bool:
        """True if compiled loops serve: for one score, and where they take longer than their loading."""
        return self.targets.shape[1] == 1 and _readable(self.x) and self.x.size >= CELLS


def _sums(loss: CrossEntropy, scores: Linear, section: slice) -> tuple[float, Matrix]:
    """The losses of all rows of a section, and their slopes by the coefficients of `x`, those of the ones last."""
    value, sums = 0.0, np.zeros((loss.x.shape[1] + 1, len(scores.intercept)))
    for rows in loss.blocks(section) if sparse(loss.x) is None else [section]:
        x, weights = loss.x[rows], loss.weights[rows]
        losses, pull = likelihood(_product(x, scores.coef) + scores.intercept, loss.targets[rows])
        pull *= weights[:, None]
        sums[:-1] += _product(x.T, pull)
        sums[-1] += pull.sum(axis=0)
        value += float(weights @ losses)
    return value, sums


def _compiled_sums(loss: CrossEntropy, scores: Linear, section: slice) -> tuple[float, Matrix]:
    """`_sums` of a single score, reading each row once."""
    coef, constant = np.ascontiguousarray(scores.coef[:, 0]), scores.intercept.item()
    x, weights, sums = loss.x[section], loss.weights[section], np.zeros(loss.x.shape[1] + 1)
    small = np.empty(len(x))
    value = row_sums.log_odds_sums(x, loss.targets[section, 0], weights, coef, constant, sums, small)
    return value + float(weights @ np.log1p(small, out=small)), sums[:, None]


def _triangle(hessian: Matrix) -> Matrix | None:
    """The Cholesky factor with all directions scaled to curvature 1; None if one has no curvature."""
    scale = np.sqrt(hessian.diagonal())
    if not scale.all():
        return None
    triangle, failed = scipy.linalg.lapack.dpotrf(hessian / scale / scale[:, None])
    return None if failed else np.asarray(triangle)


def _readable(x: Matrix) -> bool:
    """True if compiled loops can read the rows: they follow each other in memory."""
    return isinstance(x, np.ndarray) and x.flags.c_contiguous


def _product(a: Matrix, b: Matrix) -> Matrix:
    """The product; of a single column as one with a vector, which is quicker."""
    return np.asarray((a @ b[:, 0])[:, None] if b.shape[1] == 1 else a @ b, np.float64)


def _add_pairs(pairs: Matrix, x: Matrix, p: Matrix) -> None:
    """Adds Σ pᵢpⱼxxᵀ over rows for all i and j at once, x ending with a one: one large product is quicker than many."""
    step = max(1, 4 * CELLS // len(pairs))
    ones = np.column_stack([x, np.ones(len(x))])
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        each = (p[rows, :, None] * ones[rows, None, :]).reshape(-1, len(pairs))
        pairs += each.T @ each


def _moments(x: Matrix, share: Vector) -> tuple[Vector, Vector]:
    """(d,) weighted means, and those of the squares."""
    if sparse(x) is not None:
        return share @ x, share @ mapped(x, np.square)
    d = x.shape[1]
    mean, squares = np.zeros(d), np.zeros(d)
    if _readable(x) and x.size >= CELLS:
        row_sums.moments(x, share, mean, squares)
        return mean, squares
    for rows in row_blocks.blocks(len(x), d):
        part = x[rows]
        mean += share[rows] @ part
        squares += share[rows] @ (part * part)
    return mean, squares
