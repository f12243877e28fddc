"""Points that no other point dominates: ranks, crowding and the hypervolume of a front.

All values are maximised. A point dominates another if it is at least as good in all values and better in one; one that
misses demands by less dominates whatever misses them by more.

Source: Deb, Pratap, Agarwal & Meyarivan (2002), IEEE Trans. Evol. Comput. 6:182, sections III and VI; While, Hingston,
Barone & Huband (2006), IEEE Trans. Evol. Comput. 10:29 (slicing objectives).
"""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector


def ranks(values: Matrix, missed: Vector) -> Labels:
    """(n,) 0 for points that none dominates, 1 for those that none but these dominates, and so on.

    >>> ranks(np.array([[0.0, 2.0], [2.0, 0.0], [1.0, 1.0], [0.5, 0.5]]), np.zeros(4)).tolist()
    [0, 0, 0, 1]
    """
    no_worse = (values[:, None] >= values).all(axis=2) & (missed[:, None] == missed)
    dominates = (no_worse & ~no_worse.T) | (missed[:, None] < missed)
    left, rank_of, rank = dominates.sum(axis=0), np.full(len(values), -1), 0
    while (front := (left == 0) & (rank_of < 0)).any():
        rank_of[front] = rank
        left = left - dominates[front].sum(axis=0)
        rank += 1
    return rank_of


def crowding(values: Matrix) -> Vector:
    """(n,) distance of the neighbours of each point along the front, summed over the values; infinite at its ends."""
    crowding_of = np.zeros(len(values))
    for column in values.T:
        order = np.argsort(column, kind="stable")
        width = column[order[-1]] - column[order[0]]
        crowding_of[order[[0, -1]]] = np.inf
        if width > 0 and len(order) > 2:
            crowding_of[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / width
    return crowding_of


def thinned(values: Matrix, count: int) -> Labels:
    """Places (at most count,) of points spread over a front, ascending: the most crowded leave one after the other."""
    _, first = np.unique(values, axis=0, return_index=True)
    front = np.sort(first)
    while len(front) > count:
        front = np.delete(front, int(crowding(values[front]).argmin()))
    return front


def hypervolume(values: Matrix, reference: Vector) -> float:
    """Volume of all points between the reference (m,) and some point of values (n, m).

    >>> hypervolume(np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros(2))
    3.0
    """
    values = values[(values > reference).all(axis=1)]
    if not len(values):
        return 0.0
    if values.shape[1] == 1:
        return float(values.max() - reference[0])
    order = np.argsort(-values[:, 0], kind="stable")
    depths = np.append(values[order, 0], reference[0])
    volume = 0.0
    for place in range(len(order)):
        if depths[place] > depths[place + 1]:
            slab = values[order[: place + 1], 1:]
            volume += (depths[place] - depths[place + 1]) * hypervolume(_front(slab), reference[1:])
    return float(volume)


def _front(values: Matrix) -> Matrix:
    no_worse = (values[:, None] >= values).all(axis=2)
    dominated = (no_worse & ~no_worse.T).any(axis=0)
    return np.unique(values[~dominated], axis=0)
