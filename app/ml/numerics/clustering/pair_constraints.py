"""k-means whose rows heed pairs: some must be in one cluster, others cannot.

Reference: Basu, Banerjee & Mooney (2004), SDM: 333.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.contract.relations import Edges
from app.ml.numerics.clustering.compiled.penalised_labels import assign_groups, assign_rows
from app.ml.numerics.clustering.lloyd import means
from app.ml.numerics.neighbours.distances import nearest, norms, squared_distances

MOST_SWEEPS = 100
"""Sweeps over the rows for one assignment; nearly always a few are enough."""


def given_edges(data: Data) -> Edges:
    """The pairs that are given as relations of the rows; none where there are no relations."""
    nothing = np.zeros(0, np.intp)
    edges = None if data.relations is None else data.relations.edges
    return Edges(nothing, nothing, np.zeros(0)) if edges is None else edges


def together(edges: Edges, n: int) -> Labels:
    """(n,) number of the group of rows that must be together, directly or by others."""
    must = edges.values > 0
    graph = scipy.sparse.coo_array((edges.values[must], (edges.first[must], edges.second[must])), (n, n))
    return np.asarray(scipy.sparse.csgraph.connected_components(graph, directed=False)[1], np.intp)


@dataclass(frozen=True)
class Pairs:
    """Penalties of pairs, of the rows that are in one."""

    rows: Labels
    """(m,) places of the rows that are in a pair, ascending."""
    edges: Edges
    """By their places among these; above 0 the penalty of a pair that is apart, below 0 that of one together."""
    groups: Labels
    """(m,) number of the group of rows that must be together."""

    @classmethod
    def of(cls, edges: Edges, n: int) -> "Pairs":
        rows = np.unique(np.concatenate([edges.first, edges.second]))
        within = edges.within(rows, n)
        return cls(rows, within, together(within, rows.size))

    @cached_property
    def linked(self) -> tuple[Labels, Labels, Vector]:
        """The symmetric sparse matrix of penalties (m, m) by rows: starts, columns and values."""
        first, second, values, _ = self.edges
        both = np.concatenate([first, second]), np.concatenate([second, first])
        matrix = scipy.sparse.csr_array((np.tile(values, 2), both), shape=(self.rows.size, self.rows.size))
        return matrix.indptr.astype(np.intp), matrix.indices.astype(np.intp), matrix.data

    @cached_property
    def members(self) -> Labels:
        """(m,) places by group."""
        return np.argsort(self.groups, kind="stable")

    @cached_property
    def ends(self) -> Labels:
        """End of each group among the members."""
        return np.cumsum(np.bincount(self.groups))

    def violated(self, labels: Labels) -> Labels:
        """Places of the violated edges. labels: (n,) of all rows."""
        pair_labels = labels[self.rows]
        same = pair_labels[self.edges.first] == pair_labels[self.edges.second]
        return np.flatnonzero(np.where(self.edges.values > 0, ~same, same))

    def penalty(self, labels: Labels) -> float:
        return float(np.abs(self.edges.values[self.violated(labels)]).sum())


class Problem(NamedTuple):
    x: Matrix
    """(n, d)"""
    weights: Vector
    """(n,)"""
    pairs: Pairs

    def objective(self, centres: Matrix, labels: Labels) -> float:
        """Weighted squared distances of the rows from their centres, and the penalties of violated pairs."""
        return float(self.weights @ norms(self.x - centres[labels])) + self.pairs.penalty(labels)


class Run(NamedTuple):
    centres: Matrix
    labels: Labels
    """(n,)"""
    objective: list[float]
    """Weighted squared distances and penalties, from the first assignment on; never rises."""
    converged: bool


def constrained_lloyd(problem: Problem, centres: Matrix, max_iter: int, rng: np.random.Generator) -> Run:
    """From the given centres (k, d) until no row changes sides, or `max_iter` moves of the centres.

    A row without pairs belongs to its nearest centre. Groups that must be together are assigned as a whole, in a random
    order, where distances and the pairs that they violate cost least, and then so are single rows. A centre that loses
    all its rows stays where it is.
    """
    labels = _assigned(problem, centres, np.full(len(problem.x), -1), rng)
    run = Run(centres, labels, [problem.objective(centres, labels)], converged=False)
    while not run.converged and len(run.objective) <= max_iter:
        centres = _moved(problem, run)
        labels = _assigned(problem, centres, run.labels, rng)
        value, last = problem.objective(centres, labels), run.objective[-1]
        settled = bool(np.array_equal(labels, run.labels)) or value >= last
        run = Run(centres, labels, [*run.objective, min(value, last)], settled)
    return run


def _moved(problem: Problem, run: Run) -> Matrix:
    """Each centre at the mean of its rows."""
    x, weights = problem.x, problem.weights
    filled = np.bincount(run.labels, minlength=len(run.centres)) > 0
    centres = run.centres.copy()
    centres[filled] = means(x, weights, (np.cumsum(filled) - 1)[run.labels], int(filled.sum()))
    return centres


def _assigned(problem: Problem, centres: Matrix, labels: Labels, rng: np.random.Generator) -> Labels:
    """labels: (n,) before; -1: none yet."""
    x, weights, pairs = problem
    row_labels = nearest(x, centres)[0]
    if not pairs.rows.size:
        return row_labels
    costs = np.ascontiguousarray(weights[pairs.rows, None] * squared_distances(x[pairs.rows], centres))
    pair_labels, linked = labels[pairs.rows], pairs.linked
    for _ in range(MOST_SWEEPS):
        turns = rng.permutation(len(pairs.ends))
        moves = assign_groups(costs, turns, pairs.groups, pairs.members, pairs.ends, *linked, pair_labels)
        moves += assign_rows(costs, rng.permutation(len(pair_labels)), *linked, pair_labels)
        if not moves:
            break
    row_labels[pairs.rows] = pair_labels
    return row_labels


def first_centres(problem: Problem, k: int, rng: np.random.Generator) -> Matrix:
    """Means of groups that must be together, the heaviest first and each next one far from those before; then rows as
    k-means++ draws them. Fewer than k where there are no more distinct rows.
    """
    x, weights, pairs = problem
    pair_weights = weights[pairs.rows]
    large = np.flatnonzero(np.bincount(pairs.groups) > 1)
    mass = np.bincount(pairs.groups, pair_weights)[large]
    sums = np.stack([np.bincount(pairs.groups, pair_weights * column)[large] for column in x[pairs.rows].T], axis=1)
    middles, distances = sums / mass[:, None], np.ones(large.size)
    chosen: list[Vector] = []
    while len(chosen) < k and (mass * distances).any():
        chosen.append(middles[int((mass * distances).argmax())])
        distances = nearest(middles, np.array(chosen))[1]
    squares = nearest(x, np.array(chosen))[1] if chosen else np.ones(len(x))
    while len(chosen) < k and (weights * squares).any():
        chosen.append(x[int(rng.choice(len(x), p=weights * squares / (weights @ squares)))])
        squares = np.minimum(squares if len(chosen) > 1 else np.inf, norms(x - chosen[-1]))
    return np.array(chosen)
