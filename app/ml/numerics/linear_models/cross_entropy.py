"""Cross-entropy of a linear softmax, with its derivatives, by blocks of rows that stay in cache."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from app.errors import InvalidData
from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.sparse_rows import dense, mapped, sparse
from app.ml.numerics import row_blocks
from app.ml.numerics.linear_algebra.solve import EPS, centred
from app.ml.numerics.linear_models.softmax import likelihood, probabilities

CELLS = 2**17
"""Numbers of `x` worked on at a time: they stay in cache for the way there and the way back."""


class Linear(NamedTuple):
    coef: Matrix
    """(d, s)."""
    intercept: Vector
    """(s,)."""


@dataclass(frozen=True)
class CrossEntropy:
    """Mean loss per unit of weight plus ½λ‖coef‖²/Σw, over a point (m,) with m = (d + 1)·s.

    In coordinates of its own: each column is centred and divided by √(variance + λ/Σw), and there is a last one of
    ones. So curvatures are about 1 or less whatever the units of the inputs, and a gradient is a pure number.
    The columns stay as they are; what centring and scaling do to sums over rows is done to the sums. So sparse rows
    stay sparse; the Hessian, for which there are few columns, is made of dense blocks of them.
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
        """penalty: λ > 0. targets: (n, 1) with 1 for the second class, or one-hot (n, s)."""
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
        return cls(x, np.asfortranarray(targets), share, np.append(ridge / unit / unit, 0.0), offset, mean, unit)

    def every(self, step: int) -> "CrossEntropy":
        """The cross-entropy of every `step`-th row, in the same coordinates."""
        share = self.weights[::step]
        return replace(self, x=self.x[::step], targets=self.targets[::step], weights=share / share.sum())

    @property
    def start(self) -> Vector:
        """No influence of the inputs, and the observed share of each class."""
        share = self.weights @ self.targets
        rest = self.weights @ (1 - self.targets)
        odds = np.log(share) - (np.log(rest) if len(share) == 1 else np.log(share).mean())
        point = np.zeros((self.x.shape[1] + 1, len(share)))
        point[-1] = odds
        return point.ravel()

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
        value, slopes, total = 0.5 * float((shrunk * b).sum()), np.zeros_like(coef), np.zeros_like(constant)
        for rows in self.blocks() if sparse(self.x) is None else [slice(None)]:
            x, targets, weights = self.x[rows], self.targets[rows], self.weights[rows]
            losses, p = likelihood(_product(x, coef) + constant, targets)
            pull = weights[:, None] * (p - targets)
            value += float(weights @ losses)
            slopes += _product(x.T, pull)
            total += pull.sum(axis=0)
        slopes = (slopes - np.outer(self.offset, total)) / self.unit[:, None]
        return value, (np.vstack([slopes, total]) + shrunk).ravel()

    def hessian(self, point: Vector) -> Matrix:
        """(m, m), positive definite.

        The same constant added to all scores changes nothing when s > 1. Along those directions the mean curvature
        of all others is added; the gradient has no part in them, so no Newton step is changed by it.
        """
        coef, constant = self.plain(self.unpacked(point))
        d, s = len(coef), len(constant)
        if s == 1:
            return np.asarray(self.each_score(point)[0] + np.diag(self.penalty), np.float64)
        pairs = np.zeros((s * (d + 1), s * (d + 1)))
        for rows in self.blocks():
            x, p = dense(self.x[rows]), probabilities(_product(self.x[rows], coef) + constant)
            _add_pairs(pairs, x, p * np.sqrt(self.weights[rows])[:, None])
        crossed = pairs.reshape(s, d + 1, s, d + 1)
        blocks = np.zeros((d + 1, s, d + 1, s))
        for i, own in enumerate(self.each_score(point)):
            blocks[:, i, :, i] = own
            for j in range(i):
                gram = crossed[i, :, j]
                blocks[:, i, :, j] = blocks[:, j, :, i] = -self.about_means(gram[:-1, :-1], gram[-1, :-1], gram[-1, -1])
        own = np.arange(d + 1)
        for i in range(s):
            blocks[own, i, own, i] += self.penalty
        blocks[own, :, own, :] += np.einsum("isis->", blocks) / ((d + 1) * s * s)
        return blocks.reshape((d + 1) * s, (d + 1) * s)

    def each_score(self, point: Vector) -> NDArray[np.float64]:
        """(s, d + 1, d + 1): the curvature in the coefficients of one score, all others fixed, without the penalty."""
        coef, constant = self.plain(self.unpacked(point))
        d, s = coef.shape
        products, sums, mass = np.zeros((s, d, d)), np.zeros((s, d)), np.zeros(s)
        buffer = np.empty((self._step, d))
        for rows in self.blocks():
            x, p = dense(self.x[rows]), probabilities(_product(self.x[rows], coef) + constant)
            spread = np.sqrt(self.weights[rows, None] * p * (1 - p))
            for i in range(s):
                scaled = np.multiply(x, spread[:, i, None], out=buffer[: len(x)])
                products[i] += scaled.T @ scaled
                sums[i] += spread[:, i] @ scaled
                mass[i] += spread[:, i] @ spread[:, i]
        return np.stack([self.about_means(*one) for one in zip(products, sums, mass, strict=True)])

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
        scale = np.sqrt(hessian.diagonal())
        if not scale.all():
            return np.zeros((0, 0, 0))
        triangle, failed = scipy.linalg.lapack.dpotrf(hessian / scale / scale[:, None])
        if failed or triangle.diagonal().min() ** 2 <= len(scale) * EPS:
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

    def blocks(self) -> Iterator[slice]:
        return (slice(start, start + self._step) for start in range(0, len(self.x), self._step))

    @property
    def _step(self) -> int:
        n, d = self.x.shape
        return int(min(n, max(1, CELLS // max(1, d))))

    def unpacked(self, point: Vector) -> Matrix:
        return point.reshape(self.x.shape[1] + 1, -1)


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
    for rows in row_blocks.blocks(len(x), d):
        part = x[rows]
        mean += share[rows] @ part
        squares += share[rows] @ (part * part)
    return mean, squares
