"""Sums of products of inputs and target, of parts of the rows, from which those of any union of parts follow.

They are taken about an origin near the means, so that centring them loses no digits; by blocks that stay in cache.
Source: Chan, Golub & LeVeque (1983), Amer. Statist. 37:242.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self, cast

import numpy as np

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.contract.sparse_rows import SparseRows, sparse
from app.ml.numerics.linear_algebra.solve import EPS
from app.ml.numerics.linear_models.lasso_path import Moments

BLOCK = 1024
"""Rows worked on at a time."""
MIN_FAR_RATIO = 1e3
"""Squares of an origin over those about it from which a column is far away: three digits."""


class Point(NamedTuple):
    inputs: Vector
    """(d,)."""
    target: float


def mean_point(data: Data) -> Point:
    weight = data.weights.sum()
    return Point(data.weights @ data.x / weight, float(data.weights @ data.y / weight))


class Sums(NamedTuple):
    """Weighted sums of aᵢ = xᵢ − origin and bᵢ = yᵢ − origin of the target."""

    gram: Matrix
    """(d, d) Σ wᵢaᵢaᵢᵀ."""
    product: Vector
    """(d,) Σ wᵢaᵢbᵢ."""
    square: float
    """Σ wᵢbᵢ²."""
    inputs: Vector
    """(d,) Σ wᵢaᵢ."""
    target: float
    """Σ wᵢbᵢ."""
    weight: float

    @classmethod
    def of(cls, data: Data, origin: Point, rows: Labels | None = None) -> Self:
        """Sums of all rows, or of these."""
        if sparse(data.x) is not None:
            part = data if rows is None else data.take(rows)
            return cls._of_sparse(cast("SparseRows", part.x), part, origin)
        d, n = data.x.shape[1], len(data.x) if rows is None else len(rows)
        gram, product, inputs, square, target, weight = np.zeros((d, d)), np.zeros(d), np.zeros(d), 0.0, 0.0, 0.0
        for start in range(0, n, BLOCK):
            some = slice(start, start + BLOCK) if rows is None else rows[start : start + BLOCK]
            w, a, b = data.weights[some], data.x[some] - origin.inputs, data.y[some] - origin.target
            inputs += w @ a
            target += float(w @ b)
            weight += float(w.sum())
            if not (w == 1).all():
                root = np.sqrt(w)
                a *= root[:, None]
                b = b * root
            gram += a.T @ a
            product += b @ a
            square += float(b @ b)
        return cls(gram, product, square, inputs, target, weight)

    @classmethod
    def _of_sparse(cls, x: SparseRows, data: Data, origin: Point) -> Self:
        """The same of sparse rows, which stay so: the origin is taken off the sums, or off columns far away."""
        w, b, start = data.weights, data.y - origin.target, origin.inputs
        scaled = x.csr * np.sqrt(w)[:, None]
        whole, weight, target = w @ x, float(w.sum()), float(w @ b)
        crossed = np.outer(whole, start)
        gram = (scaled.T @ scaled).toarray() - crossed - crossed.T + weight * np.outer(start, start)
        product, inputs = x.T @ (w * b) - target * start, whole - weight * start
        if (far := np.flatnonzero(weight * start**2 > MIN_FAR_RATIO * np.maximum(gram.diagonal(), 0.0))).size:
            shifted = x.csr[:, far].toarray() - start[far]
            pull = shifted * w[:, None]
            product[far], inputs[far] = pull.T @ b, pull.sum(axis=0)
            gram[far] = (x.T @ pull).T - np.outer(inputs[far], start)
            gram[:, far] = gram[far].T
            gram[np.ix_(far, far)] = shifted.T @ pull
        return cls(gram, product, float(w @ (b * b)), inputs, target, weight)

    @classmethod
    def union(cls, parts: Sequence[Self]) -> Self:
        """Sums of rows in any of these, all about one origin."""
        return cls(*(sum(column[1:], column[0]) for column in zip(*parts, strict=True)))

    def centred(self, origin: Point) -> tuple[Moments, Point]:
        """The moments about the means, and these, for sums about `origin`.

        A column whose deviation may be rounding is constant: its moments are exactly zero.
        """
        means, level = self.inputs / self.weight, self.target / self.weight
        middle = Point(origin.inputs + means, origin.target + level)
        gram = self.gram - np.outer(self.inputs, means)
        product = self.product - self.inputs * level
        constant = gram.diagonal() <= self.weight * (32 * EPS * np.abs(middle.inputs)) ** 2
        gram[constant] = gram[:, constant] = product[constant] = 0.0
        return Moments(gram, product, max(self.square - self.target * level, 0.0)), middle

    def moments(self) -> Moments:
        """About the origin, as they are."""
        return Moments(self.gram, self.product, self.square)

    def with_constant(self) -> Moments:
        """The moments with a column of ones after the inputs."""
        gram = np.block([[self.gram, self.inputs[:, None]], [self.inputs, np.array(self.weight)]])
        return Moments(gram, np.append(self.product, self.target), self.square)


def mean_losses(data: Data, rows: Labels, coefs: Matrix, intercepts: Vector) -> Vector:
    """(m,) mean squared error of each of m linear fits on these rows. coefs: (m, d)."""
    total = np.zeros(len(coefs))
    for start in range(0, len(rows), BLOCK):
        some = rows[start : start + BLOCK]
        gaps = data.y[some, None] - data.x[some] @ coefs.T - intercepts
        total += data.weights[some] @ (gaps * gaps)
    return np.asarray(total / data.weights[rows].sum())
