"""All penalties of a ridge from one decomposition, and what is expected of each on rows not seen.

References: Golub, Heath & Wahba (1979), Technometrics 21:215 (generalised cross-validation); Hastie, Tibshirani &
Friedman (2009), The Elements of Statistical Learning, 3.4 and 7.10 (the one-standard-error rule).
"""

from typing import NamedTuple, Self

import numpy as np
import scipy

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.numerics.linear_algebra.solve import centred

STEPS, MIN_PENALTY_SHARE, MAX_PENALTY_SHARE = 50, 1e-8, 10.0
"""Penalties on the path, and its ends as shares of the largest squared singular value."""


class Spectrum(NamedTuple):
    """The singular value decomposition USVᵀ of the inputs a (n, d), centred and weighted, with the targets b (n, k)."""

    values: Vector
    """(r,)."""
    right: Matrix
    """Vᵀ (r, d)."""
    product: Matrix
    """Uᵀb (r, k)."""
    rest: float
    """The sum of squares of b that no coefficients reach."""
    mean: Vector
    middle: Vector
    rows: int
    free: bool
    """True if there is an intercept besides."""

    @classmethod
    def of(cls, x: Matrix, y: Matrix, weights: Vector, *, intercept: bool) -> Self:
        d, root = x.shape[1], np.sqrt(weights)[:, None]
        mean, middle = np.zeros(d), np.zeros(y.shape[1])
        if intercept:
            (x, mean), (y, middle) = centred(x, weights), centred(y, weights)
        both = np.column_stack([x, y]) * root
        if len(x) > sum(both.shape[1:]):
            both = scipy.linalg.qr(both, mode="r")[0][: both.shape[1]]  # the same products, fewer rows
        u, values, right = scipy.linalg.svd(both[:, :d], full_matrices=False)
        product = u.T @ both[:, d:]
        residual_squares = float((both[:, d:] ** 2).sum() - (product**2).sum())
        return cls(values, right, product, max(residual_squares, 0.0), mean, middle, len(root), intercept)

    def grid(self) -> Vector:
        """Penalties in descending order."""
        top = float(self.values.max(initial=0.0)) ** 2 or 1.0
        return top * np.geomspace(MAX_PENALTY_SHARE, MIN_PENALTY_SHARE, STEPS)

    def shrunk(self, penalties: Vector) -> Matrix:
        """(m, r): the share of each direction that each penalty leaves."""
        square = self.values**2
        return np.asarray(square / (square + penalties[:, None]))

    def coefs(self, penalties: Vector) -> Matrix:
        """(m, d, k)."""
        gain = self.values / (self.values**2 + penalties[:, None])
        return np.asarray(np.einsum("rd,mr,rk->mdk", self.right, gain, self.product, optimize=True))

    def degrees(self, penalties: Vector) -> Vector:
        """(m,) effective degrees of freedom: what counts as fitted parameters."""
        return np.asarray(self.shrunk(penalties).sum(axis=1) + self.free)

    def generalised(self, penalties: Vector) -> Vector:
        """(m,) mean squared error expected of new rows, from those at hand; infinite without freedom left."""
        missed = (1 - self.shrunk(penalties)) ** 2 @ (self.product**2).sum(axis=1) + self.rest
        left = 1 - self.degrees(penalties) / self.rows
        return np.asarray(np.where(left > 0, missed / self.rows / np.where(left > 0, left, 1.0) ** 2, np.inf))


class Errors(NamedTuple):
    mean: Vector
    """(m,) mean squared errors."""
    spread: Vector
    """(m,) their standard errors; zero where they are not known."""


def cross_validate(data: Data, penalties: Vector, folds: Labels, *, intercept: bool) -> Errors:
    """folds: (n,) which part each row is in.

    A penalty counts against a sum over rows: on part of them it shrinks with their weight.
    """
    losses = []
    for fold in range(int(folds.max()) + 1):
        training, left = data.take(folds != fold), data.take(folds == fold)
        spectrum = Spectrum.of(training.x, training.signs, training.weights, intercept=intercept)
        coefs = spectrum.coefs(penalties * training.weights.sum() / data.weights.sum())
        wrong = (left.signs - spectrum.middle)[:, None, :] - np.einsum("nd,mdk->nmk", left.x - spectrum.mean, coefs)
        losses.append(np.average((wrong**2).sum(axis=2), axis=0, weights=left.weights))
    return Errors(np.mean(losses, axis=0), np.std(losses, axis=0, ddof=1) / np.sqrt(len(losses)))
