"""Order statistics of more values than memory should hold, exactly.

A float64 read as an integer, with the sign folded, sorts as the number does. So an interval that
holds the wanted rank can be cut into bins of keys, counted in one pass over the values, and
narrowed to the bin the rank fell into, until what is inside fits.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Values = Callable[[], Iterator[NDArray[np.float64]]]
"""Passes over the values of one column, as often as needed, in chunks, without missing ones."""
Keys = NDArray[np.uint64]

HELD = 1 << 22
"""Values sorted in memory at a time (32 MiB)."""
BINS = 1 << 12
_SIGN = np.uint64(1 << 63)


def quantiles(values: Values, count: int, shares: Sequence[float], *, held: int = HELD) -> list[float]:
    """The linear rule (Hyndman & Fan 1996, type 7): position (n - 1)·p, interpolated between neighbours."""
    places = [(count - 1) * share for share in shares]
    ranks = sorted({rank for place in places for rank in (int(place), min(int(place) + 1, count - 1))})
    values_by_rank = order_statistics(values, count, ranks, held=held)
    return [_between(values_by_rank[int(p)], values_by_rank[min(int(p) + 1, count - 1)], p - int(p)) for p in places]


def quantiles_of_sorted(ordered: NDArray[np.float64], shares: Sequence[float]) -> list[float]:
    """The same of values in ascending order."""
    last = len(ordered) - 1
    places = [last * share for share in shares]
    return [_between(float(ordered[int(p)]), float(ordered[min(int(p) + 1, last)]), p - int(p)) for p in places]


def _between(lower: float, upper: float, share: float) -> float:
    return lower if lower == upper else (1.0 - share) * lower + share * upper


def order_statistics(values: Values, count: int, ranks: Sequence[int], *, held: int = HELD) -> dict[int, float]:
    """The values at `ranks` (from 0) of `count` sorted values."""
    return {} if not ranks else _within(values, 0, 2**64, below=0, inside=count, ranks=ranks, held=held)


def _within(
    values: Values, low: int, high: int, *, below: int, inside: int, ranks: Sequence[int], held: int
) -> dict[int, float]:
    """For keys in [low, high): `inside` values are there, `below` values come before."""
    if high - low == 1:
        return dict.fromkeys(ranks, _value(low))
    if inside <= held:
        keys = np.sort(np.concatenate(list(_keys(values, low, high))))
        return {rank: _value(int(keys[rank - below])) for rank in ranks}
    width = -(-(high - low) // BINS)
    counts = np.zeros(BINS, np.int64)
    for keys in _keys(values, low, high):
        counts += np.bincount(((keys - np.uint64(low)) // np.uint64(width)).astype(np.intp), minlength=BINS)
    edges = [below, *(below + np.cumsum(counts)).tolist()]
    values_by_rank: dict[int, float] = {}
    for number, (first, last) in enumerate(pairwise(edges)):
        here = [rank for rank in ranks if first <= rank < last]
        if here:
            start = low + number * width
            end = min(start + width, high)
            values_by_rank |= _within(values, start, end, below=first, inside=last - first, ranks=here, held=held)
    return values_by_rank


def _keys(values: Values, low: int, high: int) -> Iterator[Keys]:
    for chunk in values():
        keys = _key(chunk)
        yield keys[(keys >= np.uint64(low)) & (keys <= np.uint64(high - 1))]


def _key(values: NDArray[np.float64]) -> Keys:
    bits = values.view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _value(key: int) -> float:
    bits = key ^ (1 << 63) if key >> 63 else ~key & (2**64 - 1)
    return float(np.array(bits, np.uint64).view(np.float64)) + 0.0  # -0.0 is 0.0
