"""Weighted means of classes, and the scatter of the rows about them: by column, whole, or all classes in one.

Rows are centred on the mean of their class before anything is squared, by blocks that stay in cache. What a column
that is constant within a class leaves is rounding, far below `FLOOR` of any variance that counts.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.numerics.linear_algebra.solve import EPS

BLOCK = 1024
"""Rows worked on at a time."""


class ClassMeans(NamedTuple):
    mass: Vector
    """(k,) sums of the row weights."""
    means: Matrix
    """(k, d); of a class without rows, those of all."""
    centre: Vector
    """(d,) of all rows."""
    between: Vector
    """(d,) variance of the means, each counted by its mass."""
    noise: Vector
    """(d,): a standard deviation of this size may be rounding."""


def class_means(data: Data) -> ClassMeans:
    counted = data.targets if (data.weights == 1).all() else data.targets * data.weights[:, None]
    mass = counted.sum(axis=0)
    sums = counted.T @ data.x
    centre = sums.sum(axis=0) / mass.sum()
    means = np.where(mass[:, None] > 0, sums / np.where(mass > 0, mass, 1.0)[:, None], centre)
    between = mass @ (means - centre) ** 2 / mass.sum()
    return ClassMeans(mass, means, centre, between, 4 * EPS * np.sqrt(len(data.x)) * np.abs(centre))


def column_scatters(data: Data, means: Matrix) -> Matrix:
    """(k, d): for each class the weighted sum of squares of each column about its mean."""
    scatters = np.zeros_like(means)
    for c, rows in _of_classes(data):
        gaps = data.x[rows] - means[c]
        scatters[c] += data.weights[rows] @ (gaps * gaps)
    return scatters


def class_scatters(data: Data, means: Matrix) -> NDArray[np.float64]:
    """(k, d, d): for each class the weighted sum of (x − mean)(x − mean)ᵀ."""
    scatters = np.zeros((*means.shape, means.shape[1]))
    for c, rows in _of_classes(data):
        gaps = (data.x[rows] - means[c]) * np.sqrt(data.weights[rows])[:, None]
        scatters[c] += gaps.T @ gaps
    return scatters


def pooled_scatter(data: Data, means: Matrix) -> Matrix:
    """(d, d): the sum of the scatters of all classes."""
    scatter = np.zeros((means.shape[1], means.shape[1]))
    codes, alike = data.codes, bool((data.weights == 1).all())
    for start in range(0, len(data.x), BLOCK):
        rows = slice(start, start + BLOCK)
        gaps = data.x[rows] - means[codes[rows]]
        if not alike:
            gaps *= np.sqrt(data.weights[rows])[:, None]
        scatter += gaps.T @ gaps
    return scatter


def _of_classes(data: Data) -> Iterator[tuple[int, Labels]]:
    """Classes with blocks of their rows."""
    order = np.argsort(data.codes, kind="stable")
    ends = np.cumsum(np.bincount(data.codes, minlength=data.targets.shape[1]))
    for c, (begin, end) in enumerate(zip(np.append(0, ends[:-1]), ends, strict=True)):
        for start in range(begin, end, BLOCK):
            yield c, order[start : min(start + BLOCK, end)]
