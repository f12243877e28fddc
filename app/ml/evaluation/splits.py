"""Seeded splits of rows into training and test rows (LION 3.2)."""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Vector
from app.ml.evaluation import group_splits
from app.ml.numerics.sampling.folds import dealt, shuffled


class Split(NamedTuple):
    """Row numbers, each array ascending, the two disjoint."""

    train: Labels
    test: Labels


def holdout(
    n: int, fraction: float, rng: np.random.Generator, codes: Labels | None = None, groups: Labels | None = None
) -> Split:
    """Set `fraction` of n rows aside, at random.

    With class codes (n,) the share is kept within every class to less than one row. Learning always
    keeps at least one row, and one of each class, so a class with a single member is never held out. At least
    one row is held out wherever that leaves these; otherwise, and for a fraction of 0, `test` is empty.
    With group codes (n,) whole groups are held out: see `app.ml.evaluation.group_splits`.
    """
    if groups is not None:
        held = group_splits.held_out(groups, fraction, rng, codes)
        return Split(np.flatnonzero(~held), np.flatnonzero(held))
    strata = np.zeros(n, np.intp) if codes is None else np.unique(codes, return_inverse=True)[1]
    sizes = np.bincount(strata)
    room = np.maximum(sizes - 1, 0)
    quotas = np.minimum(fraction * sizes, room)
    taken = _apportion(quotas, room, min(max(fraction > 0, round(quotas.sum())), int(room.sum())))
    order, rank = shuffled(strata, rng)
    chosen = rank < taken[strata[order]]
    return Split(np.sort(order[~chosen]), np.sort(order[chosen]))


def kfold(
    n: int, folds: int, rng: np.random.Generator, codes: Labels | None = None, groups: Labels | None = None
) -> list[Split]:
    """K splits that validate every row exactly once, in folds whose sizes differ by at most one.

    With class codes (n,) the counts of every class differ by at most one between folds too. There are
    never more folds than rows (K = n is leave-one-out), and none at all for fewer than two rows.
    The only member of a class is validated too, by a model that has not seen the class: an honest miss.
    With group codes (n,) folds are of whole groups, never more than there are; their sizes may differ by more.
    """
    k = min(folds, n if groups is None else np.unique(groups).size)
    if k < 2:
        return []
    fold = dealt(n, k, rng, codes) if groups is None else group_splits.dealt(groups, k, rng, codes)
    return [Split(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(k)]


def resample(n: int, rng: np.random.Generator, groups: Labels | None = None) -> Split:
    """N rows drawn with replacement, in ascending order with repetitions, and those never drawn (LION 5.3).

    With group codes (n,) groups are drawn instead, as many as there are: the number of rows then differs.
    """
    if groups is not None:
        return Split(*group_splits.drawn(groups, rng))
    drawn = np.sort(rng.integers(0, n, n))
    return Split(drawn, np.setdiff1d(np.arange(n), drawn))


def evenly(n: int, most: int) -> Labels:
    """Up to `most` of n row numbers, far from each other."""
    return np.linspace(0, n - 1, min(most, n)).astype(np.intp)


def _apportion(quotas: Vector, room: Labels, total: int) -> Labels:
    """Whole numbers near the quotas that add up to `total`, none above its room: largest remainders first."""
    taken = np.floor(quotas).astype(np.intp)
    while (short := total - int(taken.sum())) > 0:
        remainder = np.where(taken < room, quotas - taken, -np.inf)
        open_ = int((taken < room).sum())
        taken[np.argsort(-remainder, kind="stable")[: min(short, open_)]] += 1
    return taken
