"""Labels of rows in turn, each the cheapest by its squared distances and the pairs that it would violate.

Pairs are a symmetric sparse matrix by rows: above 0 the penalty of a pair that is apart, below 0 that of one together.
"""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel


@inner
def add_penalties(row: int, group: int, groups: Labels, starts: Labels, others: Labels, penalties: Vector,
                  labels: Labels, costs: Vector) -> None:  # fmt: skip
    """To the costs (k,) of each label for a row, those of its pairs with labelled rows outside its group."""
    for pair in range(starts[row], starts[row + 1]):
        other, penalty = others[pair], penalties[pair]
        if labels[other] < 0 or (group >= 0 and groups[other] == group):
            continue
        if penalty < 0:
            costs[labels[other]] -= penalty
        else:
            for label in range(costs.size):
                if label != labels[other]:
                    costs[label] += penalty


@inner
def cheapest(costs: Vector, current: int) -> int:
    """The label of the lowest cost; the current one where no other is lower."""
    best = current
    for label in range(costs.size):
        if best < 0 or costs[label] < costs[best]:
            best = label
    return best


@kernel(
    "i8(f8[:,::1], i8[::1], i8[::1], i8[::1], f8[::1], i8[::1])",
    writes=["labels"],
)
def assign_rows(costs: Matrix, order: Labels, starts: Labels, others: Labels, penalties: Vector,
                labels: Labels) -> int:  # fmt: skip
    """Rows in this order, each to its cheapest label; those without a label (-1) count for no other. How many moved.

    costs: (m, k) weighted squared distance of each row to each centre.
    """
    moved, costs_of_labels = 0, np.empty(costs.shape[1])
    for row in order:
        costs_of_labels[:] = costs[row]
        add_penalties(row, -1, labels, starts, others, penalties, labels, costs_of_labels)
        label = cheapest(costs_of_labels, labels[row])
        if label != labels[row]:
            labels[row] = label
            moved += 1
    return moved


@kernel(
    "i8(f8[:,::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], i8[::1])",
    writes=["labels"],
)
def assign_groups(costs: Matrix, order: Labels, groups: Labels, members: Labels, ends: Labels, starts: Labels,
                  others: Labels, penalties: Vector, labels: Labels) -> int:  # fmt: skip
    """Groups of rows that must be together, in this order, each as a whole to its cheapest label. How many moved.

    A group whose rows have different labels stays. groups: (m,) group of each row. members: rows by group. ends: end of
    each group among them.
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
            add_penalties(row, group, groups, starts, others, penalties, labels, costs_of_labels)
        label = cheapest(costs_of_labels, current)
        if whole and label != current:
            for member in range(begin, ends[group]):
                labels[members[member]] = label
            moved += 1
    return moved
