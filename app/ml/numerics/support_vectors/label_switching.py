r"""Transductive learning of two classes: labels of the rows without one are chosen together with the boundary.

Minimises over w, b and the labels yᵤ = ±1 of the unlabelled rows, of which a given number is positive,

    ½‖w‖² + Σ_L Cᵢ max(0, 1 − yᵢ f(xᵢ)) + s Σ_U C(yᵤ) max(0, 1 − yᵤ f(xᵤ))

with f(x) = w·φ(x) + b. Given values of the unlabelled rows label the highest of them as positive. For each weight s in
turn, which grows up to 1, the machine of all rows is found. Then every positive and every negative row whose values
stand in the wrong order switch labels, which lowers the sum for the same f; the machine of the new labels lowers it
further; and so on until all stand in order. The sum falls at every switch, and so no labels come twice.

References: Joachims (1999), ICML: 200; Sindhwani & Keerthi (2006), SIGIR: 477.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.support_vectors.kernel_rows import KernelRows
from app.ml.numerics.support_vectors.smo import Settings, Solution
from app.ml.numerics.support_vectors.two_classes import TwoClasses, separated

SWITCHES = 100
"""Switches of labels with one weight at most."""


class HalfLabelled(NamedTuple):
    """Rows of two classes, of which the first l have labels."""

    rows: KernelRows
    """n = l + m rows."""
    signs: Vector
    """(l,) -1 or 1."""
    costs: Vector
    """(l,) C of each labelled row."""
    costs_of: tuple[float, float]
    """C of an unlabelled row with the label -1, and with 1."""
    positives: int
    """Unlabelled rows with the label 1."""

    @property
    def unlabelled(self) -> int:
        """The number m of rows without a label."""
        return len(self.rows.diagonal) - self.signs.size

    def alone(self, settings: Settings) -> "Switched":
        """The machine of the labelled rows; the others have the label -1 and no weight."""
        return self.solve(-np.ones(self.unlabelled), 0.0, np.zeros(self.signs.size + self.unlabelled), settings)

    def solve(self, labels: Vector, weight: float, start: Vector, settings: Settings) -> "Switched":
        """The machine of these labels (m,). start: (n,) coefficients, of sum 0."""
        signs = np.concatenate([self.signs, labels])
        costs = np.concatenate([self.costs, weight * np.where(labels < 0, *self.costs_of)])
        solution = separated(TwoClasses(self.rows, signs, costs), settings, start)
        plane = signs - solution.residual
        hinge = np.maximum(0.0, 1 - signs * (plane + solution.intercept))
        return Switched(solution, signs, self.signs.size, weight, 0, float(0.5 * solution.coef @ plane + costs @ hinge))


class Switched(NamedTuple):
    """The machine of some labels of the unlabelled rows."""

    solution: Solution
    signs: Vector
    """(n,) -1 or 1."""
    first: int
    """l, the place of the first unlabelled row."""
    weight: float
    """s."""
    rows: int
    """Rows that have switched labels since the machine before."""
    objective: float
    """The sum that is minimised."""

    @property
    def labels(self) -> Vector:
        """(m,) of the unlabelled rows."""
        return self.signs[self.first :]

    @property
    def values(self) -> Vector:
        """(m,) decision values of the unlabelled rows."""
        values: Vector = (self.signs - self.solution.residual + self.solution.intercept)[self.first :]
        return values


def switched(
    rows: HalfLabelled, alone: Switched, values: Vector, weights: Vector, settings: Settings
) -> Iterator[Switched]:
    """The machines of all rows, each of the best labels so far.

    alone: that of the labelled rows. values: (m,) by which rows are labelled at first. weights: s of each turn,
    ascending.
    """
    labels, start = np.full(values.size, -1.0), alone.solution.coef
    labels[np.argsort(-values, kind="stable")[: rows.positives]] = 1.0
    for weight in weights:
        step = rows.solve(labels, weight, start, settings)
        yield step
        for _ in range(SWITCHES):
            after = _after_switch(rows, step, settings)
            if after is None:
                break
            step = after
            yield step
        labels, start = step.labels, step.solution.coef


def _after_switch(rows: HalfLabelled, last: Switched, settings: Settings) -> Switched | None:
    """The machine after rows in the wrong order have switched labels; None: there are none, or the gain is rounding."""
    up, down = _in_wrong_order(last)
    if not up.size:
        return None
    labels, start, first = last.labels.copy(), last.solution.coef.copy(), last.first
    labels[up], labels[down] = 1.0, -1.0
    start[first + up], start[first + down] = start[first + down], start[first + up]
    after = rows.solve(labels, last.weight, start, settings)
    return after._replace(rows=2 * up.size) if after.objective < last.objective else None


def _in_wrong_order(last: Switched) -> tuple[Labels, Labels]:
    """Negative rows that stand above positive ones, and these, as many."""
    values = last.values
    negative, positive = np.flatnonzero(last.labels < 0), np.flatnonzero(last.labels > 0)
    up = negative[np.argsort(-values[negative], kind="stable")]
    down = positive[np.argsort(values[positive], kind="stable")]
    size = min(up.size, down.size)
    wrong = values[up[:size]] > values[down[:size]]
    return up[:size][wrong], down[:size][wrong]
