"""Rows change clusters one by one where the means that follow them make it worth while."""

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.clustering.compiled.bounds import move
from app.ml.numerics.jit import inner, kernel
from app.ml.numerics.neighbours.compiled.distances import square

GAIN = 1e-9
"""Share by which a change must be better: rounding would toss rows for ever."""


@kernel(
    "i8(f8[:,::1], f8[::1], i8[::1], f8[:,::1], f8[::1], i8[::1], f8[:,::1])",
    writes=["labels", "sums", "masses", "sizes", "centres"],
)
def exchange(
    x: Matrix, weights: Vector, labels: Labels, sums: Matrix, masses: Vector, sizes: Labels, centres: Matrix
) -> int:
    """Move each row to the cluster where the inertia is lowest, centres with it; returns how many moved.

    Equal rows that follow each other move together. A cluster keeps its last rows.
    """
    moved, i = 0, 0
    while i < x.shape[0]:
        stop, label, weight = i + 1, labels[i], weights[i]
        while stop < x.shape[0] and labels[stop] == label and square(x[stop], x[i]) == 0:
            weight += weights[stop]
            stop += 1
        if sizes[label] > stop - i:
            saved = masses[label] / (masses[label] - weight) * square(x[i], centres[label])
            new = cheapest(x[i], weight, label, masses, centres, saved * (1 - GAIN))
            if new != label:
                for row in range(i, stop):
                    labels[row] = new
                    move(x[row], weights[row], label, new, sums, masses, sizes)
                centres[label] = sums[label] / masses[label]
                centres[new] = sums[new] / masses[new]
                moved += 1
        i = stop
    return moved


@inner
def cheapest(row: Vector, weight: float, label: int, masses: Vector, centres: Matrix, most: float) -> int:
    """The cluster to which a row adds least, if that is less than `most`; else its own."""
    best, place = most, label
    for c in range(masses.size):
        if c != label:
            added = masses[c] / (masses[c] + weight) * square(row, centres[c])
            if added < best:
                best, place = added, c
    return place
