"""Lloyd's algorithm for rows that memory does not hold: a move of the centres takes one pass over the rows.

Nothing is kept of a row from one pass to the next, so that memory does not grow with the rows. The centres are those of
`app.ml.numerics.clustering.lloyd` from the same start, but for rounding.

Reference: Lloyd (1982), IEEE Trans. Inf. Theory 28:129.
"""

from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Progress, StreamedRows, Vector
from app.ml.numerics.clustering.bounds import Clusters
from app.ml.numerics.clustering.distortion import Distortion
from app.ml.numerics.neighbours.distances import nearest


class StreamedRun(NamedTuple):
    centres: Matrix
    inertia: list[float]
    """Weighted sum of the squared distances, from the first centres on; never rises."""
    converged: bool


class Assigned(NamedTuple):
    """All rows with their nearest centres, summed by centre."""

    clusters: Clusters
    inertias: Vector
    """(k,) weighted sum of squared distances to the centre."""
    farthest: Vector
    """(k,) largest squared distance to the centre; 0 without rows."""

    @classmethod
    def of(cls, rows: StreamedRows, centres: Matrix) -> Self:
        k, d = centres.shape
        assigned = cls(Clusters(np.zeros((k, d)), np.zeros(k), np.zeros(k, np.intp)), np.zeros(k), np.zeros(k))
        for x, weights in rows:
            labels, squares = nearest(x, centres)
            assigned.add(Clusters.of(x, weights, labels, k))
            assigned.inertias[:] += np.bincount(labels, weights * squares, k)
            np.maximum.at(assigned.farthest, labels, squares)
        return assigned

    def add(self, part: Clusters) -> None:
        """Sums of a block: sums of sums keep more digits than one long sum."""
        self.clusters.sums[:] += part.sums
        self.clusters.masses[:] += part.masses
        self.clusters.sizes[:] += part.sizes

    @property
    def inertia(self) -> float:
        return float(self.inertias.sum())


def streamed_lloyd(rows: StreamedRows, centres: Matrix, max_iter: int, progress: Progress) -> StreamedRun:
    """From the given centres (k, d) until they stay, or `max_iter` moves.

    A centre without rows takes over the row farthest from its own centre, or is dropped if there is none.
    """
    assigned = Assigned.of(rows, centres)
    curve = [assigned.inertia]
    while len(curve) <= max_iter:
        moved = _moved(rows, assigned, centres)
        if np.array_equal(moved, centres):
            return StreamedRun(centres, curve, converged=True)
        after = Assigned.of(rows, moved)
        if len(moved) == len(centres) and not after.inertia < curve[-1]:  # a tie that rounding would toss for ever
            return StreamedRun(centres, curve, converged=True)
        centres, assigned = moved, after
        curve.append(min(after.inertia, curve[-1]))
        progress(1 - 1 / len(curve), inertia=curve[-1])
    return StreamedRun(centres, curve, converged=False)


def streamed_distortion(rows: StreamedRows, centres: Matrix) -> Distortion:
    """Distortions of the clusters; diameters, for which rows are compared with each other, are NaN."""
    (sums, masses, sizes), inertias, farthest = Assigned.of(rows, centres)
    gaps = sums - masses[:, None] * centres
    pairwise = np.maximum(masses * inertias - np.einsum("ij,ij->i", gaps, gaps), 0.0)
    return Distortion(sizes, inertias, pairwise, np.sqrt(farthest), np.where(sizes > 1, np.nan, 0.0))


def _moved(rows: StreamedRows, assigned: Assigned, centres: Matrix) -> Matrix:
    """Means of the rows of each centre, after centres without rows have taken over one each."""
    sums, masses, sizes = assigned.clusters
    if sizes.all():
        return np.asarray(sums / masses[:, None])
    costly = _costliest(rows, centres)
    for label in np.flatnonzero(sizes == 0).tolist():
        place = next((i for i, label in enumerate(costly.labels) if sizes[label] > 1 and costly.costs[i] > 0), None)
        if place is None:
            break
        donor, weight, row = costly.labels[place], costly.weights[place], costly.x[place]
        sums[donor], masses[donor], sizes[donor] = sums[donor] - weight * row, masses[donor] - weight, sizes[donor] - 1
        sums[label], masses[label], sizes[label] = weight * row, weight, 1
        costly.costs[place] = 0.0
    filled = sizes > 0
    return np.asarray(sums[filled] / masses[filled, None])


class _Costly(NamedTuple):
    """Rows and their weighted squared distances."""

    x: Matrix
    weights: Vector
    labels: Labels
    costs: Vector

    def first(self, count: int) -> Self:
        """The costliest, in descending order; of equals the first."""
        order = np.argsort(-self.costs, kind="stable")[:count]
        return type(self)(self.x[order], self.weights[order], self.labels[order], self.costs[order])

    def joined(self, more: Self) -> Self:
        x, weights, labels, costs = (np.concatenate(both) for both in zip(self, more, strict=True))
        return type(self)(x, weights, labels, costs)


def _costliest(rows: StreamedRows, centres: Matrix) -> _Costly:
    """Rows with the largest costs: one for each centre, or all."""
    k, d = centres.shape
    costly = _Costly(np.zeros((0, d)), np.zeros(0), np.zeros(0, np.intp), np.zeros(0))
    for x, weights in rows:
        labels, squares = nearest(x, centres)
        costly = costly.joined(_Costly(x, weights, labels, weights * squares).first(k)).first(k)
    return costly
