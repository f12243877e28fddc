"""The best split of one tree node by one column: the inner loops of the kernel that grows trees.

A node's rows come as entries in order of their code (bin, rank or level of the column's value); sums over them have
one number a class, or for numbers the weight and the weighted distance from the node's mean. Every criterion is a
*quality* of such sums: the gain of a split is the quality of its branches less that of the rows that it divides.

References: Quinlan (1986), Machine Learning 1:81 (entropy); Breiman et al. (1984), CART (Gini, variance; theorem 4.5).
"""

import math

import numpy as np

from app.ml.numerics.jit import inner, seldom
from app.ml.numerics.sampling.compiled.draws import below

GINI, ENTROPY, VARIANCE, NEWTON = range(4)
"""The last: the variance of g/h with weights h = |g| (1 - |g|), of slopes g of a logistic loss."""
FEW_LEVELS = 10
"""Up to so many categories all 2^(levels-1) - 1 subsets are tried when there are more than two classes."""


@inner
def weigh(sums, criterion):
    """Weight of the rows with these sums."""
    if criterion == VARIANCE:
        return sums[0]
    total = 0.0
    for share in sums:
        total += share
    return total


@inner
def quality(sums, criterion):
    """Minus impurity × weight, up to a term that adds over rows: Σ c²/W, Σ c log₂(c/W), S²/W."""
    weight = weigh(sums, criterion)
    if weight <= 0:
        return 0.0
    if criterion == VARIANCE:
        return sums[1] * sums[1] / weight
    total = 0.0
    if criterion == GINI:
        for share in sums:
            total += share * share
        return total / weight
    for share in sums:
        if share > 0:
            total += share * math.log2(share / weight)
    return total


@inner
def gained(left, right, seen, before, criterion):
    """Gain of the split of `seen` into `left` and the rest; `right` becomes the rest."""
    for s in range(left.size):
        right[s] = seen[s] - left[s]
    return quality(left, criterion) + quality(right, criterion) - before


@inner
def clear(sums):
    for s in range(sums.size):
        sums[s] = 0.0


@inner
def include(sums, more):
    for s in range(sums.size):
        sums[s] += more[s]


@inner
def add(sums, i, y, weight, criterion):
    """Entry i into the sums. y: its class, or of numbers its weighted distance from the mean."""
    if criterion == VARIANCE:
        sums[0] += weight[i]
        sums[1] += y[i]
    else:
        sums[np.intp(y[i])] += weight[i]


@inner
def of_two(first, second, criterion):
    """Quality, of two sums."""
    weight = first if criterion == VARIANCE else first + second
    if weight <= 0:  # by rounding, of weights that differ by more than the digits of a number
        return 0.0
    return (second * second if criterion == VARIANCE else first * first + second * second) / weight


@inner
def cut_of_two(code, place, y, weight, first, second, before, least, criterion, slack):
    """The same with two sums, which stay in registers."""
    best, last, following = -np.inf, -1, -1
    a, b, gone, total = 0.0, 0.0, 0.0, first if criterion == VARIANCE else first + second
    here = np.int64(code[place[0]])
    for t in range(place.size - 1):
        i = place[t]
        gone += weight[i]
        if criterion == VARIANCE:
            a += weight[i]
            b += y[i]
        elif y[i]:
            b += weight[i]
        else:
            a += weight[i]
        there = np.int64(code[place[t + 1]])
        if here != there and gone >= least:
            if total - gone < least:
                break
            gain = of_two(a, b, criterion) + of_two(first - a, second - b, criterion) - before
            if gain > best + slack:
                best, last, following = gain, here, there
        here = there
    return best, last, following


@inner
def best_cut(code, place, y, weight, seen, before, least, criterion, slack, left, right):
    """The best threshold between the entries `place`: its gain, and the codes on either side of it."""
    if seen.size == 2 and criterion != ENTROPY:
        return cut_of_two(code, place, y, weight, seen[0], seen[1], before, least, criterion, slack)
    best, last, following = -np.inf, -1, -1
    total, gone = weigh(seen, criterion), 0.0
    clear(left)
    for t in range(place.size - 1):
        i = place[t]
        add(left, i, y, weight, criterion)
        gone += weight[i]
        here, there = np.int64(code[i]), np.int64(code[place[t + 1]])
        if here == there or gone < least:
            continue
        if total - gone < least:
            break
        gain = gained(left, right, seen, before, criterion)
        if gain > best + slack:
            best, last, following = gain, here, there
    return best, last, following


@inner
def cell_of_two(held, cells, first, second, before, least, criterion, slack):
    """The same with two sums, which stay in registers."""
    best, last, following = -np.inf, -1, -1
    a, b, total, here = 0.0, 0.0, first if criterion == VARIANCE else first + second, cells[0]
    for there in cells[1:]:
        a += held[here, 0]
        b += held[here, 1]
        gone = a if criterion == VARIANCE else a + b
        if gone >= least:
            if total - gone < least:
                break
            gain = of_two(a, b, criterion) + of_two(first - a, second - b, criterion) - before
            if gain > best + slack:
                best, last, following = gain, here, there
        here = there
    return best, last, following


@inner
def best_cell(held, cells, seen, before, least, criterion, slack, left, right):
    """The best threshold between the codes `cells`, whose sums are rows of `held`: its gain and the codes beside it."""
    if seen.size == 2 and criterion != ENTROPY:
        return cell_of_two(held, cells, seen[0], seen[1], before, least, criterion, slack)
    best, last, following, total = -np.inf, -1, -1, weigh(seen, criterion)
    clear(left)
    for t in range(cells.size - 1):
        include(left, held[cells[t]])
        gone = weigh(left, criterion)
        if gone < least:
            continue
        if total - gone < least:
            break
        gain = gained(left, right, seen, before, criterion)
        if gain > best + slack:
            best, last, following = gain, cells[t], cells[t + 1]
    return best, last, following


@seldom
def best_subset(table, present, seen, before, least, criterion, slack, left, right, pick, share):
    """The best subset of the levels `present`, whose sums are rows of `table`: its gain; `pick` marks its members.

    Of numbers and of two classes it is a cut of the levels in order of their mean. Of more classes all subsets of few
    levels are tried, and of many levels the cuts of one order per class, by its share.
    """
    several = criterion != VARIANCE and seen.size > 2
    if several and present.size <= FEW_LEVELS:
        return _any_subset(table, present, seen, before, least, criterion, slack, left, right, pick)
    best, total = -np.inf, weigh(seen, criterion)
    for first in range(seen.size if several else 1):
        for level in present:
            share[level] = table[level, first if several else 1] / weigh(table[level], criterion)
        sort_by(present, share)
        clear(left)
        for j in range(present.size - 1):
            include(left, table[present[j]])
            if min(weigh(left, criterion), total - weigh(left, criterion)) < least:
                continue
            gain = gained(left, right, seen, before, criterion)
            if gain > best + slack:
                best = gain
                for t in range(present.size):
                    pick[present[t]] = t <= j
    return best


@inner
def sort_by(present, share):
    """Levels in order of their share; of equal ones the lower first."""
    for p in range(1, present.size):
        level, place = present[p], p
        while place > 0 and (
            share[present[place - 1]] > share[level]
            or (share[present[place - 1]] == share[level] and present[place - 1] > level)
        ):
            present[place] = present[place - 1]
            place -= 1
        present[place] = level


@seldom
def _any_subset(table, present, seen, before, least, criterion, slack, left, right, pick):
    best, chosen = -np.inf, 0
    for mask in range(1, 1 << (present.size - 1)):  # without the last level: half of all subsets
        clear(left)
        for j in range(present.size):
            if mask >> j & 1:
                include(left, table[present[j]])
        if min(weigh(left, criterion), weigh(seen, criterion) - weigh(left, criterion)) < least:
            continue
        gain = gained(left, right, seen, before, criterion)
        if gain > best + slack:
            best, chosen = gain, mask
    for j in range(present.size):
        pick[present[j]] = chosen >> j & 1
    return best


@seldom
def random_subset(table, present, seen, before, least, criterion, left, right, pick, state):
    """The gain of a subset drawn from the levels `present`, neither none nor all of them (Breiman 2001)."""
    if present.size < 2:
        return -np.inf
    inside = 0
    while inside == 0 or inside == present.size:
        inside = 0
        for level in present:
            pick[level] = below(2, state) == 1
            inside += pick[level]
    clear(left)
    for level in present:
        if pick[level]:
            include(left, table[level])
    if min(weigh(left, criterion), weigh(seen, criterion) - weigh(left, criterion)) < least:
        return -np.inf
    return gained(left, right, seen, before, criterion)


@seldom
def name_lighter(table, present, criterion, pick):
    """Let `pick` name the side that weighs less, or of two equal ones that of the lowest level.

    A level that the node has never seen is not named, and so goes with most.
    """
    lead, lowest = 0.0, present[0]
    for level in present:
        lowest = min(lowest, level)
        lead += weigh(table[level], criterion) if pick[level] else -weigh(table[level], criterion)
    if lead > 0 or (lead == 0 and not pick[lowest]):
        for level in present:
            pick[level] = not pick[level]
