"""A space of variables with limits: numbers between bounds, whole numbers, categories, and linear constraints.

A point is a vector of d numbers; of a category it holds the code. Constraints limit weighted sums of numbers, where
equal limits are an equality. Lengths are measured in widths of the variables, so that no result depends on a unit.
"""

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector

Truths = NDArray[np.bool_]
TOLERANCE = 1e-9
"""Share of the largest sum that its terms can have, by which a point may miss a limit."""
MIN_FLOAT = float(np.finfo(float).tiny)


class Limits(NamedTuple):
    """least ≤ weights x ≤ greatest."""

    weights: Matrix
    """(m, d) 0 for categories."""
    least: Vector
    """(m,), −∞ where there is none."""
    greatest: Vector

    @classmethod
    def none(cls, d: int) -> "Limits":
        return cls(np.empty((0, d)), np.empty(0), np.empty(0))


class DesignSpace:
    """Immutable."""

    def __init__(self, lower: Vector, upper: Vector, whole: Truths, category: Truths, limits: Limits) -> None:
        """lower, upper: (d,), 0 and the largest code for categories. whole: of whole numbers."""
        self.lower, self.upper = lower, upper
        self.whole, self.category, self.limits = whole, category, limits
        self.width = upper - lower
        """(d,)."""
        self.free = ~whole & ~category & (self.width > 0)
        """(d,) variables that move by any amount."""
        largest = np.abs(limits.weights) @ np.maximum(np.abs(lower), np.abs(upper))
        self.tolerance = np.maximum(TOLERANCE * np.where(largest > 0, largest, 1.0), MIN_FLOAT)
        """(m,)."""

    @property
    def d(self) -> int:
        return len(self.lower)

    @cached_property
    def equal(self) -> Truths:
        """(m,) constraints that are equalities."""
        equal: Truths = self.limits.least == self.limits.greatest
        return equal

    @cached_property
    def kept(self) -> Matrix:
        """(r, d) orthonormal directions in widths that change an equality: a move is orthogonal to them."""
        weights = (self.limits.weights * self.width)[self.equal][:, self.free]
        basis = np.zeros((0, self.d))
        if weights.size:
            _, sizes, rows = np.linalg.svd(weights, full_matrices=False)
            rank = int((sizes > max(weights.shape) * np.finfo(float).eps * sizes[0]).sum())
            basis = np.zeros((rank, self.d))
            basis[:, self.free] = rows[:rank]
        return basis

    def misses(self, x: Matrix) -> Vector:
        """(n,) the largest miss of a constraint or bound, in tolerances; at most 1 where a point is feasible."""
        sums = x @ self.limits.weights.T
        unit = np.maximum(TOLERANCE * np.where(self.width > 0, self.width, 1.0), MIN_FLOAT)
        with np.errstate(over="ignore"):
            low = (self.limits.least - sums) / self.tolerance
            high = (sums - self.limits.greatest) / self.tolerance
            outside = np.maximum((self.lower - x) / unit, (x - self.upper) / unit)
        missed: Vector = np.concatenate([low, high, outside], axis=1).max(axis=1, initial=0.0)
        return missed

    def steps(self, x: Matrix, directions: Matrix, lengths: Vector) -> Matrix:
        """(n, d) the points x + t directions with t the length (n,), or as far as bounds and constraints let it go."""
        change = directions @ self.limits.weights.T
        sums = x @ self.limits.weights.T
        room = [self._room(self.lower - x, self.upper - x, directions)]
        if not self.equal.all():
            some = ~self.equal
            low, high = (self.limits.least - sums)[:, some], (self.limits.greatest - sums)[:, some]
            room.append(self._room(low, high, change[:, some]))
        most = np.minimum(lengths, np.min(room, axis=0))
        moved: Matrix = np.clip(x + np.maximum(most, 0.0)[:, None] * directions, self.lower, self.upper)
        return moved

    @staticmethod
    def _room(low: Matrix, high: Matrix, change: Matrix) -> Vector:
        """(n,) the largest t with low ≤ t change ≤ high."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            reach = np.where(change > 0, high / change, np.where(change < 0, low / change, math.inf))
        room: Vector = np.nan_to_num(reach, nan=0.0, posinf=math.inf).min(axis=1, initial=math.inf)
        return room

    def inner_point(self) -> Vector | None:
        """A point (d,) well inside all limits, its categories 0; None if no point satisfies them.

        A mixed linear programme finds the whole numbers, and keeps the point as far from each limit as it can.
        """
        d, scale = self.d, np.where(self.free, self.width, 1.0)
        weights = self.limits.weights * scale
        norm = np.linalg.norm(weights, axis=1)
        weights, norm = weights / np.where(norm > 0, norm, 1.0)[:, None], np.where(norm > 0, norm, 1.0)
        lowest = self.limits.weights @ self.lower
        least, greatest = (self.limits.least - lowest) / norm, (self.limits.greatest - lowest) / norm
        away = np.where(self.equal, 0.0, 1.0)
        ends = np.where(self.category, 0.0, self.width / scale)
        rows = np.vstack([weights, weights, np.eye(d), np.eye(d)])
        inside = np.concatenate([-away, away, -1.0 * self.free, 1.0 * self.free])
        none = np.full(d + len(norm), math.inf)
        low = np.concatenate([least, -none[: len(norm)], np.zeros(d), -none[:d]])
        high = np.concatenate([none[: len(norm)], greatest, none[:d], ends])
        result = scipy.optimize.milp(
            np.append(np.zeros(d), -1.0),
            integrality=np.append(self.whole, False),
            bounds=scipy.optimize.Bounds(np.zeros(d + 1), np.append(ends, 1.0)),
            constraints=scipy.optimize.LinearConstraint(np.column_stack([rows, inside]), low, high),
        )
        if result.x is None:
            return None
        point = self.lower + np.clip(result.x[:d], 0, ends) * scale
        point = np.where(self.whole, np.rint(point), point)
        return point if self.misses(point[None])[0] <= 1e3 else None  # the programme's own tolerance
