"""Metrics by name: each is a Minkowski distance between points that rows are mapped to."""

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.neighbours import metric_space
from app.ml.numerics.neighbours.metric_space import MetricSpace

Metric: TypeAlias = Literal[
    "euclidean",
    "manhattan",
    "chebyshev",
    "minkowski",
    "cosine",
    "range_euclidean",
    "range_manhattan",
    "seuclidean",
    "mahalanobis",
]
DESCRIPTION = (
    "Measure of the distance of rows, in the prepared columns. `euclidean`, `manhattan`, `chebyshev` "
    "and `minkowski`: by the differences of the columns; `range_euclidean`, `range_manhattan`: with each divided "
    "by the range of its column in the training rows; `seuclidean`: by its standard deviation; `mahalanobis`: by "
    "the covariance of the training rows. `cosine`: 1 − cos of the angle at the origin, which of numbers is their "
    "mean with scaling `standard` (the default), their least value with `minmax`, and zero with `none`."
)
POWERS = {"manhattan": 1.0, "range_manhattan": 1.0, "chebyshev": math.inf}
"""Power of the differences; 2 or the parameter `p` for the others."""


class NamedMetric(NamedTuple):
    """A metric of this name for rows like the training rows."""

    name: Metric
    p: float
    """Power of the differences between points."""
    space: MetricSpace | None = None
    """Space of a metric that depends on the training rows."""

    @classmethod
    def of(cls, name: Metric, p: float, space: MetricSpace | None) -> "NamedMetric":
        """p: power of the differences, for minkowski."""
        return cls(name, p if name == "minkowski" else POWERS.get(name, 2.0), space)

    @classmethod
    def learned(cls, name: Metric, p: float, x: Matrix, weights: Vector) -> "NamedMetric":
        """Metric that depends on these training rows (n, d) of weights (n,)."""
        return cls.of(name, p, metric_space.learned(name, x, weights))

    def points(self, x: Matrix) -> Matrix:
        """(n, r) points of rows (n, d)."""
        if self.name == "cosine":
            return metric_space.directions(x)
        return x if self.space is None else self.space.points(x)

    def distances(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distances of rows, from the Minkowski distances of their points."""
        return distances * distances / 2 if self.name == "cosine" else distances  # |u − v|² = 2 − 2·cos
