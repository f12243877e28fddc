"""The best question of a tree node, over its columns. Compiled into what grows trees."""

import numpy as np

from app.ml.numerics.compiled import inner, seldom
from app.ml.numerics.kernels.draws import below
from app.ml.numerics.kernels.questions import (
    VARIANCE,
    add,
    best_cut,
    best_subset,
    name_lighter,
    quality,
    random_subset,
    weigh,
)

FEW = 48
"""Up to so many rows are sorted by insertion."""
THRESHOLD, SUBSET, KNOWN = 0, 1, 2
"""What a question asks: `code <= cut`, whether the level is a member, whether the value is known."""


@inner
def entries(rows, code, bins, near, criterion, entry, held, keys):
    """A column's rows as entries (codes, kinds, weights, moments) sorted by code: how many.

    near: kind, weight and moment of each of the rows.

    Many rows of few bins are counted by bin, others sorted. `held` (bins + 1, kinds) is zero before and after.
    """
    codes, kinds, weights, moments = entry
    kind, weight, moment = near
    m, k = rows.size, held.shape[1]
    if m <= FEW or m * 16 < bins * k:
        for p in range(m):
            keys[p] = np.int64(code[rows[p]]) << 32 | p
        sort(keys, m)
        for t in range(m):
            p = keys[t] & 0xFFFFFFFF
            codes[t], kinds[t], weights[t] = keys[t] >> 32, kind[p], weight[p]
            if criterion == VARIANCE:
                moments[t] = moment[p]
        return m
    first, final = bins, 0
    for p in range(m):
        c = np.int64(code[rows[p]])
        first, final = min(first, c), max(final, c)
        if criterion == VARIANCE:
            held[c, 0] += weight[p]
            held[c, 1] += moment[p]
        else:
            held[c, kind[p]] += weight[p]
    size = 0
    for b in range(first, final + 1):
        if criterion == VARIANCE:
            if held[b, 0] > 0:
                codes[size], kinds[size], weights[size], moments[size] = b, 0, held[b, 0], held[b, 1]
                size += 1
        else:
            for s in range(k):
                if held[b, s] > 0:
                    codes[size], kinds[size], weights[size] = b, s, held[b, s]
                    size += 1
        for s in range(k):
            held[b, s] = 0.0
    return size


@inner
def sort(keys, m):
    """The first m keys in place, by insertion over shrinking gaps (Ciura 2001)."""
    for gap in (3548, 1577, 701, 301, 132, 57, 23, 10, 4, 1):
        if m <= FEW and gap > 1:
            continue
        for p in range(gap, m):
            key, place = keys[p], p
            while place >= gap and keys[place - gap] > key:
                keys[place] = keys[place - gap]
                place -= gap
            keys[place] = key


@seldom
def tabled(code, place, kind, weight, moment, criterion, levels, table, seen):
    """Sums of each level into the rows of `table`, the levels that occur into `seen`; how many do."""
    for level in range(levels):
        for s in range(table.shape[1]):
            table[level, s] = 0.0
    for i in place:
        add(table[code[i]], i, kind, weight, moment, criterion)
    size = 0
    for level in range(levels):
        if weigh(table[level], criterion) > 0:
            seen[size] = level
            size += 1
    return size


@inner
def judge(code, place, bins, levels, kind, weight, moment, total, least, slack, options, sums, levelled, pick, state):
    """The best question about one column, of entries in order of code: gain, what it asks, codes beside the cut, and
    whether missing values have a way of their own. Of a constant column nothing is asked: (-inf, -1, …).
    """
    criterion, lottery, own = options
    known, gone, left, right = sums
    table, seen, share = levelled
    m = place.size
    while m > 0 and code[place[m - 1]] == bins:
        m -= 1
    if m == 0 or (m == place.size and code[place[0]] == code[place[m - 1]]):
        return -np.inf, -1, -1, -1, False
    for s in range(total.size):
        gone[s] = 0.0
    for i in place[m:]:
        add(gone, i, kind, weight, moment, criterion)
    for s in range(total.size):
        known[s] = total[s] - gone[s]
    branch = own and m < place.size and weigh(gone, criterion) >= least
    before = quality(total, criterion) - quality(gone, criterion) if branch else quality(known, criterion)
    best, asks, last, following = -np.inf, -1, -1, -1
    if levels:
        for level in range(levels):
            pick[level] = False
        present = seen[: tabled(code, place[:m], kind, weight, moment, criterion, levels, table, seen)]
        if lottery:
            best = random_subset(table, present, known, before, least, criterion, left, right, pick, state)
        else:
            best = best_subset(table, present, known, before, least, criterion, slack, left, right, pick, share)
        if best > -np.inf:
            asks = SUBSET
            name_lighter(table, present, criterion, pick)
    else:
        best, last, following = best_cut(
            code, place[:m], kind, weight, moment, known, before, least, criterion, slack, left, right
        )
        asks = THRESHOLD if last >= 0 else -1
    if branch and weigh(known, criterion) >= least:
        aside = quality(known, criterion) - before
        if aside >= best - slack:
            best, asks = max(best, aside), KNOWN
    return best, asks, last, following, branch


@inner
def search(
    rows, codes, bins, levels, order, lo, hi, target, total, least, slack, options, tries, work, best_pick, state
):
    """The best question of a node: gain, column, what it asks, codes beside the cut, way for the missing.

    `tries`: columns drawn; constant ones do not count. All are asked, and of a tie the first wins, if it is d.
    """
    kind, weight, moment = target
    sums, levelled, pick, entry, held, keys, same, drawn, near = work
    codes_, kinds, weights, moments = entry
    best, which, asks, last, following, branch = -np.inf, -1, -1, -1, -1, False
    d, tried = codes.shape[0], 0
    for q in range(d):
        if tried == tries:
            break
        if tries < d:
            swap = q + below(d - q, state)
            drawn[q], drawn[swap] = drawn[swap], drawn[q]
        j = drawn[q]
        if order.shape[0] > 1:
            found = judge(
                codes[j],
                order[j, lo:hi],
                bins[j],
                levels[j],
                kind,
                weight,
                moment,
                total,
                least,
                slack,
                options,
                sums,
                levelled,
                pick,
                state,
            )
        else:
            size = entries(rows, codes[j], bins[j], near, options[0], entry, held, keys)
            found = judge(
                codes_,
                same[:size],
                bins[j],
                levels[j],
                kinds,
                weights,
                moments,
                total,
                least,
                slack,
                options,
                sums,
                levelled,
                pick,
                state,
            )
        tried += found[0] > -np.inf
        if found[0] > best + slack:
            best, asks, last, following, branch = found
            which = j
            if asks == SUBSET:
                for level in range(levels[j]):
                    best_pick[level] = pick[level]
    return best, which, asks, last, following, branch
