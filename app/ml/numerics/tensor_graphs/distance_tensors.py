"""Distances of rows to stored points as tensors: column by column, so that equal rows are at distance 0."""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.tensor_graph import Tensor


def squared_distances_to(points: Matrix, x: Tensor) -> Tensor:
    """(n, m) squared Euclidean distances to points (m, d). No products: ‖x‖² − 2xs + ‖s‖² loses half the digits."""
    return _over_columns(points, x, lambda difference: difference * difference, "Add")


def nearest_place(points: Matrix, x: Tensor) -> Tensor:
    """(n, 1) whole numbers: the nearest of the points (m, d), the first of equally near ones."""
    return squared_distances_to(points, x).first_smallest()


def minkowski_distances_to(points: Matrix, x: Tensor, p: float) -> Tensor:
    """(n, m) distances (Σ|difference|^p)^(1/p) to points (m, d)."""
    if p == 2:
        return squared_distances_to(points, x).apply("Sqrt")
    if p == 1:
        return _over_columns(points, x, lambda difference: difference.apply("Abs"), "Add")
    if math.isinf(p):
        return _over_columns(points, x, lambda difference: difference.apply("Abs"), "Max")
    return _over_columns(points, x, lambda d: d.apply("Abs").combine("Pow", p), "Add").combine("Pow", 1 / p)


def _over_columns(points: Matrix, x: Tensor, function: Callable[[Tensor], Tensor], operator: str) -> Tensor:
    total: Tensor | None = None
    for column in range(points.shape[1]):
        part = function(x[[column]] - np.ascontiguousarray(points[:, column])[None])
        total = part if total is None else total.combine(operator, part)
    return x.repeated(np.zeros(len(points))) if total is None else total


def standardised_columns(x: Tensor, offset: Vector, scale: Vector, farthest: float) -> Tensor:
    """(x − offset)/scale, cut off at ±farthest; missing numbers stay missing. scale: infinite makes a column 0."""
    u = (x - offset[None]) / scale[None]
    return held_within(u, farthest)


def held_within(x: Tensor, farthest: float) -> Tensor:
    """Numbers cut off at ±farthest; missing ones stay missing."""
    high = x.graph.constant(farthest)
    return _where(x > farthest, high, _where(x < -farthest, -high, x))


def _where(truths: Tensor, first: Tensor, other: Tensor) -> Tensor:
    return first.where(truths, other)


def columns_of(places: NDArray[np.integer], x: Tensor) -> Tensor:
    """These columns; x itself where they are all of them in order."""
    return x if places.size == x.width and (places == np.arange(x.width)).all() else x[places]


class HasCentres(Protocol):
    @property
    def centres(self) -> Matrix: ...


def nearest_centre(_: object, state: HasCentres, x: Tensor) -> Tensor:
    """(n, 1) whole numbers: the cluster with the nearest centre."""
    return nearest_place(state.centres, x)
