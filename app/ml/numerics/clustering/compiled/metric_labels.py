"""Labels of rows in turn, each the cheapest where the penalty of a violated pair depends on the labels of its rows."""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.clustering.compiled.penalised_labels import cheapest
from app.ml.numerics.jit import inner, kernel


@inner
def add_distances(row: int, group: int, groups: Labels, starts: Labels, others: Labels, places: Labels,
                  weights: Vector, near: Matrix, reach: Vector, labels: Labels, costs: Vector) -> None:  # fmt: skip
    """To the costs (k,) of each label for a row, those of its pairs with labelled rows outside its group."""
    for pair in range(starts[row], starts[row + 1]):
        other, place = others[pair], places[pair]
        theirs = labels[other]
        if theirs < 0 or groups[other] == group:
            continue
        weight = weights[place]
        if weight < 0:
            costs[theirs] -= weight * max(0.0, reach[theirs] - near[place, theirs])
        else:
            for label in range(costs.size):
                if label != theirs:
                    costs[label] += weight * (near[place, label] + near[place, theirs]) / 2


@kernel(
    "i8(f8[:,::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], f8[:,::1], f8[::1],"
    " i8[::1])",
    writes=["labels"],
)
def assign_groups_by_metric(costs: Matrix, order: Labels, groups: Labels, members: Labels, ends: Labels,
                            starts: Labels, others: Labels, places: Labels, weights: Vector, near: Matrix,
                            reach: Vector, labels: Labels) -> int:  # fmt: skip
    """Groups of rows in this order, each as a whole to its cheapest label; one of different labels stays. How many
    moved.

    costs: (m, k) of each row and label without its pairs. groups: (m,) group of each row. members: rows by group. ends:
    end of each group among them. starts, others, places: the pairs of each row, with the other row and the place of the
    pair. weights: of pairs, below 0 of those that cannot be together. near: squared distance of each pair in the metric
    of each label. reach: (k,) squared distance that no pair exceeds.
    """
    moved, costs_of_labels = 0, np.empty(costs.shape[1])
    for group in order:
        begin = ends[group - 1] if group else 0
        current, whole = labels[members[begin]], True
        costs_of_labels[:] = 0.0
        for member in range(begin, ends[group]):
            row = members[member]
            whole = whole and labels[row] == current
            costs_of_labels += costs[row]
            add_distances(row, group, groups, starts, others, places, weights, near, reach, labels, costs_of_labels)
        label = cheapest(costs_of_labels, current)
        if whole and label != current:
            for member in range(begin, ends[group]):
                labels[members[member]] = label
            moved += 1
    return moved
