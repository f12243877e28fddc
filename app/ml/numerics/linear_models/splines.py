"""Penalised splines of many columns at once, each as smooth as restricted maximum likelihood finds it.

A column of more than two values has a natural cubic spline: heights at knots, between them cubic, beyond them straight.
Knots are weighted quantiles, closer together at both ends. Heights η are penalised by ‖D₂η‖² + ε‖D₁η‖², the squares of
their second and, a little, of their first differences, so that a curve no row needs is nil; beside it stands a straight
line. A column of two values has a line alone. With T that turns the penalty into ‖u‖², η = T·u, all is one
ridge regression of centred columns

    min Σᵢ wᵢ (yᵢ - ȳ - Σ_g Z_g u_g)² + Σ_g λ_g ‖u_g‖²,    λ_g = σ²/τ_g²,

whose groups g are each curve, all lines of numbers, and all lines of two-valued columns. τ_g² = ‖u_g‖²/ν_g and
σ² = RSS/(Σw - 1 - Σν), with the degrees of freedom ν_g = Σ (1 - λ_g [C⁻¹]ₖₖ), are found in turn until no ν moves
(Schall 1991, Biometrika 78:719; Wood & Fasiolo 2017, Biometrics 73:1071).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.row_blocks import blocks

MOST_KNOTS, FEWEST_KNOTS = 16, 5
"""Numbers of knots of a curve; where columns are too many for the fewest, they have lines."""
MAX_SPLINE_COLUMNS = 1000
"""Columns of the ridge regression that curves may take, all together, and at most as many as rows: the time of a step
grows as their cube."""
ROWS_A_KNOT = 3.0
FIRST = 0.02
"""ε, the weight of first differences."""
MIN_PENALTY, MAX_PENALTY = 1e-9, 1e9
"""Range of λ, in units of the mean square of a column."""
MOST_STEPS = 200
STILL = 1e-3
"""Degrees of freedom by which no group may move in the last step."""


class Curves(NamedTuple):
    """Spline bases of d columns."""

    knots: Matrix
    """(d, m) ascending; NaN behind the last, and everywhere where there is no curve."""
    heights: Matrix
    """(d, m) of the curves at the knots, mean zero over the training rows."""
    slopes: Vector
    """(d,) of the lines."""
    centres: Vector
    """(d,) where the lines are nil."""
    degrees: Vector
    """(d,) degrees of freedom of the curves."""

    def of(self, x: Matrix) -> Matrix:
        """(n, d) what each column adds."""
        added: Matrix = (x - self.centres) * self.slopes
        for j in np.flatnonzero(~np.isnan(self.knots[:, :1]).all(axis=1)).tolist():
            knots = _known(self.knots[j])
            heights = self.heights[j, : knots.size]
            if heights.any():
                added[:, j] += _spline(x[:, j], knots, heights)
        return added


NO_CURVES = Curves(*np.zeros((2, 0, 0)), *np.zeros((3, 0)))


def curve_columns(rows: float, curves: float) -> float:
    """About how many columns of the regression so many curves take."""
    most = _most_knots(rows, curves)
    return curves * (most - 2) if most >= FEWEST_KNOTS else 0.0


def _most_knots(rows: float, curves: float) -> int:
    """Largest number of knots of one of so many curves."""
    return int(min(MOST_KNOTS, rows / ROWS_A_KNOT, min(MAX_SPLINE_COLUMNS, rows) / max(1, curves) + 1))


class Smooth(NamedTuple):
    curves: Curves
    penalties: Vector
    """(g,) λ of the lines of numbers, of the two-valued columns, then of every curve in turn."""
    steps: int
    converged: bool


def fit_curves(x: Matrix, y: Vector, weights: Vector) -> Smooth:
    """x: (n, d). y: (n,) of weighted mean zero."""
    design = _Design.of(x, weights)
    gram, moment = design.products(x, y, weights)
    scale = float(np.trace(gram)) / max(1, len(gram)) or 1.0
    total, size = float(weights @ y**2), float(weights.sum())
    groups, count = design.groups, int(design.groups.max(initial=1)) + 1
    penalties, before = np.full(count, 0.03 * scale), np.full(count, np.inf)
    u = np.zeros(moment.size)
    for step in range(1, MOST_STEPS + 1):
        factor = scipy.linalg.cholesky(gram + np.diag(penalties[groups]), lower=True)
        u = scipy.linalg.cho_solve((factor, True), moment)
        variances = (scipy.linalg.solve_triangular(factor, np.eye(u.size), lower=True) ** 2).sum(axis=0)
        degrees = np.bincount(groups, 1 - penalties[groups] * variances, count).astype(np.float64)
        if np.abs(degrees - before).max() < STILL or not total:
            return Smooth(design.curves(u, degrees), penalties, step, converged=True)
        before = degrees
        left = max(total - 2 * float(u @ moment) + float(u @ gram @ u), 1e-12 * total)
        noise = left / max(size - 1 - degrees.sum(), 0.1 * size)
        squares = np.bincount(groups, u**2, count)
        penalties = noise * degrees / np.maximum(squares, 1e-300)
        penalties = np.clip(penalties, MIN_PENALTY * scale, MAX_PENALTY * scale)
    return Smooth(design.curves(u, degrees), penalties, MOST_STEPS, converged=False)


class _Design(NamedTuple):
    centres: Vector
    """(d,) weighted means."""
    units: Vector
    """(d,) by which lines are divided; 0: no line, of a constant."""
    knots: list[Vector]
    """(d,) of nothing where there is no curve."""
    turns: list[Matrix]
    """(d,) T of each curve, (m, m - 1)."""
    means: list[Vector]
    """(d,) of the columns of each curve, (m - 1,)."""
    groups: Labels
    """(p,) of each column of the regression."""

    @classmethod
    def of(cls, x: Matrix, weights: Vector) -> "_Design":
        d, total = x.shape[1], float(weights.sum())
        centres = weights @ x / total
        spread = np.sqrt(weights @ (x - centres) ** 2 / total)
        two = np.array([_at_most_two(column) for column in x.T], np.bool_)
        units = np.where(spread > 1e-12 * np.maximum(1e-300, np.abs(centres)), np.where(two, 1.0, spread), 0.0)
        most = _most_knots(total, int((~two).sum()))
        knots = [np.zeros(0) if two[j] else _knots(x[:, j], weights, most) for j in range(d)]
        turns = [_turn(column_knots.size) for column_knots in knots]
        means = [
            weights @ (_basis(x[:, j], column_knots) @ turn) / total if column_knots.size else np.zeros(0)
            for j, (column_knots, turn) in enumerate(zip(knots, turns, strict=True))
        ]
        curves = [np.full(mean.size, 2 + place) for place, mean in enumerate(mean for mean in means if mean.size)]
        return cls(centres, units, knots, turns, means, np.concatenate([two.astype(np.intp), *curves]).astype(np.intp))

    def products(self, x: Matrix, y: Vector, weights: Vector) -> tuple[Matrix, Vector]:
        """ZᵀWZ and ZᵀWy, rows a block at a time."""
        gram, moment = np.zeros((self.groups.size,) * 2), np.zeros(self.groups.size)
        for block in blocks(len(x), self.groups.size):
            z = np.column_stack([*self._parts(x[block])])
            heavy = z * weights[block, None]
            gram += z.T @ heavy
            moment += heavy.T @ y[block]
        return gram, moment

    def _parts(self, x: Matrix) -> Iterator[Matrix]:
        yield (x - self.centres) * self._per_unit
        for j, (knots, turn, mean) in enumerate(zip(self.knots, self.turns, self.means, strict=True)):
            if knots.size:
                yield _basis(x[:, j], knots) @ turn - mean

    @property
    def _per_unit(self) -> Vector:
        return np.divide(1.0, self.units, out=np.zeros_like(self.units), where=self.units > 0)

    def curves(self, u: Vector, degrees: Vector) -> Curves:
        d = self.centres.size
        most = max((column_knots.size for column_knots in self.knots), default=0)
        knots, heights, own_degrees = np.full((d, most), np.nan), np.zeros((d, most)), np.zeros(d)
        place, group = d, 2
        for j, (column_knots, turn, mean) in enumerate(zip(self.knots, self.turns, self.means, strict=True)):
            if column_knots.size:
                part = u[place : place + mean.size]
                knots[j, : column_knots.size], heights[j, : column_knots.size] = column_knots, turn @ part - mean @ part
                own_degrees[j] = degrees[group]
                place, group = place + mean.size, group + 1
        return Curves(knots, heights, u[:d] * self._per_unit, self.centres, own_degrees)


def _at_most_two(column: Vector) -> bool:
    low, high = column.min(), column.max()
    return bool(((column == low) | (column == high)).all())


def _knots(column: Vector, weights: Vector, most: int) -> Vector:
    """Weighted quantiles without repetition, the extremes among them; none if they are too few for a curve."""
    if most < FEWEST_KNOTS:
        return np.zeros(0)
    order = np.argsort(column, kind="stable")
    reached = np.cumsum(weights[order])
    shares = 0.5 - 0.5 * np.cos(np.pi * np.arange(most) / (most - 1))
    places = np.searchsorted(reached, shares * reached[-1] * (1 - 1e-12))
    knots: Vector = np.unique(column[order[places]])
    wide = np.diff(knots, prepend=-np.inf) > 1e-9 * (knots[-1] - knots[0])
    return knots[wide] if wide.sum() >= FEWEST_KNOTS else np.zeros(0)


def _turn(m: int) -> Matrix:
    """T (m, m - 1): TᵀST = 1 for the penalty S of m heights, which leaves a constant alone."""
    if not m:
        return np.zeros((0, 0))
    first, second = np.diff(np.eye(m), axis=0), np.diff(np.eye(m), n=2, axis=0)
    values, vectors = np.linalg.eigh(second.T @ second + FIRST * first.T @ first)
    turn: Matrix = vectors[:, 1:] / np.sqrt(values[1:])
    return turn


def _bends(knots: Vector) -> Matrix:
    """(m, m) the second derivatives at the knots, from the heights there; nil at both ends."""
    m, steps = knots.size, np.diff(knots)
    inner, jumps = np.zeros((m - 2, m - 2)), np.zeros((m - 2, m))
    rows = np.arange(m - 2)
    inner[rows, rows] = (steps[:-1] + steps[1:]) / 3
    inner[rows[:-1], rows[1:]] = inner[rows[1:], rows[:-1]] = steps[1:-1] / 6
    jumps[rows, rows], jumps[rows, rows + 2] = 1 / steps[:-1], 1 / steps[1:]
    jumps[rows, rows + 1] = -1 / steps[:-1] - 1 / steps[1:]
    return np.vstack([np.zeros(m), np.linalg.solve(inner, jumps), np.zeros(m)])


def _basis(column: Vector, knots: Vector) -> Matrix:
    """(n, m) by which heights are multiplied."""
    return _spline(column, knots, np.eye(knots.size))


class NaturalSpline(NamedTuple):
    """The natural cubic spline through heights (m, k) at knots (m,), straight beyond them."""

    steps: Vector
    """(m - 1,) between knots."""
    bends: Matrix
    """(m, k) second derivatives at the knots."""
    slope_left: Vector
    """(k,) below the first knot."""
    slope_right: Vector


def natural_spline(knots: Vector, heights: Matrix | Vector) -> NaturalSpline:
    """heights: (m, k) or (m,), of which k is 1 and has no axis."""
    bends, steps = _bends(knots) @ heights, np.diff(knots)
    left, right = (heights[1] - heights[0]) / steps[0], (heights[-1] - heights[-2]) / steps[-1]
    return NaturalSpline(steps, bends, left - steps[0] / 6 * bends[1], right + steps[-1] / 6 * bends[-2])


def _spline(column: Vector, knots: Vector, heights: Matrix | Vector) -> Matrix:
    """(n,) or (n, k) the natural cubic spline through heights (m,) or (m, k) at the knots, straight beyond them."""
    several = heights.reshape(knots.size, -1)
    spline = natural_spline(knots, several)
    within = np.clip(column, knots[0], knots[-1])
    j = np.clip(np.searchsorted(knots, within, side="right") - 1, 0, knots.size - 2)
    step = spline.steps[j, None]
    upper = (within[:, None] - knots[j, None]) / step
    lower = 1 - upper
    value = lower * several[j] + upper * several[j + 1]
    value += ((lower**3 - lower) * spline.bends[j] + (upper**3 - upper) * spline.bends[j + 1]) * step**2 / 6
    beyond = (column - within)[:, None]
    value += np.where(beyond < 0, beyond * spline.slope_left, beyond * spline.slope_right)
    return value.reshape(len(column), *heights.shape[1:])


def _known(row: Vector) -> Vector:
    return row[~np.isnan(row)]
