"""A support vector machine for two classes: soft or hard margin, and the sigmoid of its decision values."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from app.base.errors import InvalidData
from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.class_probabilities.sigmoid import sigmoid
from app.ml.numerics.sampling.folds import dealt
from app.ml.numerics.support_vectors.kernel_rows import KernelRows
from app.ml.numerics.support_vectors.linear_machine import minimum
from app.ml.numerics.support_vectors.smo import Problem, Settings, Solution, solve

MIN_MARGIN_SHARE = 1e-4
"""Margin that a hard margin has at least, as a share of the largest length of a row in the space of features."""
INSEPARABLE = (
    "No boundary of this kernel separates the classes with a margin: a hard margin does not exist. Give `C` a number, "
    "or choose another kernel."
)


class TwoClasses(NamedTuple):
    """Rows of two classes."""

    rows: KernelRows
    signs: Vector
    """(n,) -1 or 1."""
    costs: Vector
    """(n,) C of each row; infinite for a hard margin."""

    def take(self, places: Labels) -> "TwoClasses":
        return TwoClasses(self.rows.take(places), self.signs[places], self.costs[places])


def separated(rows: TwoClasses, settings: Settings, start: Vector | None = None) -> Solution:
    """The decision function with the least ½‖w‖² + Σ Cᵢ max(0, 1 − yᵢ f(xᵢ)).

    start: (n,) coefficients within their bounds, of sum 0; None: zeros. Raises InvalidData for a hard margin that does
    not exist.
    """
    signs, n = rows.signs, rows.signs.size
    if (signs == signs[0]).all():
        return Solution(np.zeros(n), signs - signs[0], float(signs[0]), 0.0, 0.0, 0, True)
    lower = np.where(signs < 0, -rows.costs, 0.0)
    upper = np.where(signs > 0, rows.costs, 0.0)
    problem = Problem(signs, lower, upper, np.zeros(n) if start is None else start)
    if np.isfinite(rows.costs).all():
        return minimum(rows.rows, problem, settings)
    radius = math.sqrt(max(float(rows.rows.diagonal.max()), 0.0))

    def inseparable(solution: Solution) -> bool:
        # weights of a feasible β bound the margin from above by ‖w‖/Σ|β|
        return length(signs, solution) <= MIN_MARGIN_SHARE * radius * float(np.abs(solution.coef).sum())

    solution = solve(rows.rows, problem, settings, inseparable)
    if inseparable(solution) or not math.isfinite(solution.gap):
        raise InvalidData(INSEPARABLE)
    return solution


def length(linear: Vector, solution: Solution) -> float:
    """‖w‖."""
    return math.sqrt(max(float(solution.coef @ (linear - solution.residual)), 0.0))


def cross_fitted(rows: TwoClasses, settings: Settings, folds: int, rng: np.random.Generator) -> Vector:
    """(n,) decision values of rows, each by a machine of the other folds' rows."""
    signs = rows.signs
    fold = dealt(signs.size, folds, rng, (signs > 0).astype(np.intp))
    values = np.empty(signs.size)
    for held, training in _parts(fold, folds):
        solution = separated(rows.take(training), settings)
        vectors = np.flatnonzero(solution.coef)
        values[held] = solution.intercept
        if vectors.size:
            values[held] += rows.rows.products(held, training[vectors], solution.coef[vectors])
    return values


def _parts(fold: Labels, folds: int) -> Iterator[tuple[Labels, Labels]]:
    for part in range(folds):
        held, training = np.flatnonzero(fold == part), np.flatnonzero(fold != part)
        if held.size and training.size:
            yield held, training
        elif held.size:  # one row alone
            yield held, held


def sigmoid_of(values: Vector, rows: TwoClasses, weights: Vector) -> Vector:
    """(2,) slope and intercept of Platt's sigmoid of decision values (n,)."""
    return sigmoid(values, np.where(rows.signs > 0, 1.0, 0.0), weights)
