"""k-means with pairs of rows and a metric for each cluster, which learns from the rows and from the pairs.

Every row has its cost by the metric A of its cluster (`metrics_by_cluster`). A violated pair that must be together
adds its weight times the mean of its squared distances in the metrics of both clusters. One that cannot be adds its
weight times what its squared distance lacks to the reach: four times that of the farthest row from the mean of all,
which no pair exceeds. In turn, labels, centres and metrics are chosen for the least sum. A metric that takes the
farthest row for given is a closed form; where another row is the farthest in it, so that the sum would rise, the step
towards it is shortened. The sum never rises.

Reference: Bilenko, Basu & Mooney (2004), Integrating constraints and metric learning in semi-supervised clustering,
ICML: 81.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.clustering.compiled.metric_labels import assign_groups_by_metric
from app.ml.numerics.clustering.lloyd import means
from app.ml.numerics.clustering.metrics_by_cluster import (
    ClusterMetrics,
    blend,
    distance_factor,
    inverse_factor,
    log_determinant,
    squared_lengths,
)
from app.ml.numerics.clustering.pair_constraints import MOST_SWEEPS, Pairs
from app.ml.numerics.row_blocks import blocks

MIN_STEP_SHARE = 2.0**-6
"""Share of the way to a new metric below which the old one stays."""


@dataclass(frozen=True)
class MetricProblem:
    """Rows about their mean, in units of the mean variance of their columns."""

    x: Matrix
    """(n, d)"""
    weights: Vector
    """(n,)"""
    pairs: Pairs
    """With signed weights, above 0 for pairs that must be together."""

    @property
    def parts(self) -> tuple[Matrix, Vector, Pairs]:
        return self.x, self.weights, self.pairs

    @cached_property
    def gaps(self) -> Matrix:
        """(m, d) differences of the rows of each pair."""
        rows, edges = self.pairs.rows, self.pairs.edges
        return self.x[rows[edges.first]] - self.x[rows[edges.second]]

    @cached_property
    def linked(self) -> tuple[Labels, Labels, Labels]:
        """Pairs by their rows: starts, the other row, and the place of the pair."""
        first, second, *_ = self.pairs.edges
        rows, other = np.concatenate([first, second]), np.concatenate([second, first])
        order = np.argsort(rows, kind="stable")
        counts = np.bincount(rows, minlength=self.pairs.rows.size)
        return np.concatenate([[0], np.cumsum(counts)]), other[order], np.tile(np.arange(first.size), 2)[order]

    def reach(self, factor: Matrix) -> tuple[float, Vector]:
        """Squared distance that no pair of rows exceeds, and the difference (d,) that has it."""
        squares = squared_lengths(self.x, factor)
        farthest = int(squares.argmax())
        return 4 * float(squares[farthest]), 2 * self.x[farthest]


class MetricRun(NamedTuple):
    centres: Matrix
    """(k, d)"""
    metrics: ClusterMetrics
    labels: Labels
    """(n,)"""
    objective: list[float]
    """One for each step, from the first assignment on; never rises."""
    converged: bool


class Held(NamedTuple):
    """Parts of the objective that depend on the metric of one cluster, while labels and centres are held."""

    weight: float
    """Sum of the weights of the rows."""
    spread: Matrix
    """(d, d), or (d, 1) for its diagonal: tr(A·spread) is the sum without the reach of violated pairs."""
    apart: float
    """Weight of the violated pairs that cannot be together."""


def metric_lloyd(
    problem: MetricProblem, centres: Matrix, metrics: ClusterMetrics, max_iter: int, rng: np.random.Generator
) -> MetricRun:
    """From these centres and metrics until no row moves and the sum falls no more, or `max_iter` steps."""
    labels = assigned(problem, centres, metrics, np.full(len(problem.x), -1), rng)
    run = MetricRun(centres, metrics, labels, [objective(problem, centres, metrics, labels)], converged=False)
    while not run.converged and len(run.objective) <= max_iter:
        centres = _moved(problem, run)
        metrics = _learned(problem, centres, run)
        labels = assigned(problem, centres, metrics, run.labels, rng)
        value, last = objective(problem, centres, metrics, labels), run.objective[-1]
        settled = last - value <= 1e-10 * max(1.0, abs(last)) and bool(np.array_equal(labels, run.labels))
        run = MetricRun(centres, metrics, labels, [*run.objective, min(value, last)], settled)
    return run


def objective(problem: MetricProblem, centres: Matrix, metrics: ClusterMetrics, labels: Labels) -> float:
    """The sum for these labels (n,)."""
    total = 0.0
    for h, held in held_parts(problem, centres, metrics.shrinkage, labels, diagonal=is_diagonal(metrics)):
        total += _value(problem, held, metrics.factors[h])
    return total


def is_diagonal(metrics: ClusterMetrics) -> bool:
    return bool(metrics.factors.shape[2] < metrics.factors.shape[1])


def held_parts(
    problem: MetricProblem, centres: Matrix, shrinkage: float, labels: Labels, *, diagonal: bool
) -> Iterator[tuple[int, Held]]:
    """For each cluster with rows or violated pairs, in order."""
    edges, rows = problem.pairs.edges, problem.pairs.rows
    first_label, other, must = labels[rows[edges.first]], labels[rows[edges.second]], edges.values > 0
    keep, d = distance_factor(shrinkage), problem.x.shape[1]
    for h in range(len(centres)):
        members = labels == h
        if not members.any():
            continue
        weights = problem.weights[members]
        parted = must & ((first_label == h) ^ (other == h))
        joined = ~must & (first_label == h) & (other == h)
        values = np.where(parted, edges.values / 2, edges.values)[parted | joined]  # those joined count below 0
        spread = _scatter(problem.x[members] - centres[h], weights, diagonal=diagonal)
        spread = keep * (spread + _scatter(problem.gaps[parted | joined], values, diagonal=diagonal))
        mass = float(weights.sum())
        spread += shrinkage * mass * (np.ones((d, 1)) if diagonal else np.eye(d))
        yield h, Held(mass, spread, keep * float(-edges.values[joined].sum()))


def _scatter(rows: Matrix, weights: Vector, *, diagonal: bool) -> Matrix:
    """(d, d) Σ v x xᵀ, or (d, 1) its diagonal."""
    if diagonal:
        return (weights @ np.square(rows))[:, None]
    return np.asarray((rows * weights[:, None]).T @ rows)


def _value(problem: MetricProblem, held: Held, factor: Matrix) -> float:
    inner = np.square(factor) * held.spread if factor.shape[1] < len(factor) else factor * (held.spread @ factor)
    away = held.apart * problem.reach(factor)[0] if held.apart else 0.0
    return float(inner.sum()) - held.weight * log_determinant(factor) + away


def _moved(problem: MetricProblem, run: MetricRun) -> Matrix:
    """Each centre at the mean of its rows; one without rows stays."""
    filled = np.bincount(run.labels, minlength=len(run.centres)) > 0
    centres = run.centres.copy()
    places = (np.cumsum(filled) - 1)[run.labels]
    centres[filled] = means(problem.x, problem.weights, places, int(filled.sum()))
    return centres


def _learned(problem: MetricProblem, centres: Matrix, run: MetricRun) -> ClusterMetrics:
    factors, shrinkage = run.metrics.factors.copy(), run.metrics.shrinkage
    if shrinkage == 1:
        return run.metrics
    for h, held in held_parts(problem, centres, shrinkage, run.labels, diagonal=is_diagonal(run.metrics)):
        factors[h] = _lower(problem, held, factors[h], shrinkage)
    return ClusterMetrics(factors, shrinkage)


def _lower(problem: MetricProblem, held: Held, factor: Matrix, shrinkage: float) -> Matrix:
    """The closed form, or as far towards it as the sum does not rise."""
    spread, diagonal = held.spread, factor.shape[1] < len(factor)
    if held.apart:
        farthest = problem.reach(factor)[1]
        spread = spread + _scatter(farthest[None], np.array([held.apart]), diagonal=diagonal)
    best = inverse_factor(spread / held.weight, shrinkage, definite=not held.apart)
    share, before = 1.0, _value(problem, held, factor)
    while share >= MIN_STEP_SHARE:
        blended = best if share == 1 else blend(factor, best, share)
        if _value(problem, held, blended) <= before:
            return blended
        share /= 2
    return factor


def assigned(
    problem: MetricProblem, centres: Matrix, metrics: ClusterMetrics, labels: Labels, rng: np.random.Generator
) -> Labels:
    """(n,) labels: rows without pairs have their cheapest one; groups that must be together, and then single rows of
    pairs, in a random order. labels: before; -1: none yet.
    """
    row_labels = cheapest_labels(problem.x, centres, metrics)
    pairs = problem.pairs
    if not pairs.rows.size:
        return row_labels
    costs = problem.weights[pairs.rows, None] * metrics.costs(problem.x[pairs.rows], centres)
    scale, pair_labels = metrics.distance_factor, labels[pairs.rows]
    near = np.array([metrics.squares(problem.gaps, h) for h in range(len(centres))]).T.copy()
    reach = np.array([problem.reach(factor)[0] for factor in metrics.factors])
    pair_arrays = *problem.linked, scale * pairs.edges.values, near, reach, pair_labels
    single = np.arange(pair_labels.size)
    for _ in range(MOST_SWEEPS):
        turns = rng.permutation(len(pairs.ends))
        moves = assign_groups_by_metric(costs, turns, pairs.groups, pairs.members, pairs.ends, *pair_arrays)
        moves += assign_groups_by_metric(
            costs, rng.permutation(pair_labels.size), single, single, single + 1, *pair_arrays
        )
        if not moves:
            break
    row_labels[pairs.rows] = pair_labels
    return row_labels


def cheapest_labels(x: Matrix, centres: Matrix, metrics: ClusterMetrics) -> Labels:
    """(n,) by the costs without pairs; the first of equals."""
    labels = np.empty(len(x), np.intp)
    for block in blocks(len(x), len(centres) + x.shape[1]):
        labels[block] = metrics.costs(x[block], centres).argmin(axis=1)
    return labels
