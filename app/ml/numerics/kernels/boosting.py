"""One tree of a sum of trees: leaf by leaf, the split that gains most first, on histograms of gradients.

A row's gradient and curvature are told as whole numbers in one word, `gradient << bits | curvature`, so that a
histogram takes one addition a cell, exactly, and that of one child is the difference between its parent's and its
sibling's. The codes of a row lie together, eight columns a word.

References: Ke et al. (2017), LightGBM, NeurIPS; Shi et al. (2022), Quantized training of GBDT, NeurIPS.
"""

import numpy as np

from app.ml.numerics.compiled import inner, kernel, seldom
from app.ml.numerics.kernels.boosting_splits import CELLS, LEFT, NEITHER, RIGHT, best_split
from app.ml.numerics.kernels.growth import middle

CHUNK = 256
"""Rows whose codes are gathered at a time: waiting for one row's memory overlaps with waiting for the others'."""
FREE, IN_USE = -1, -2
"""Instead of the leaf that owns a place in the pool."""


@kernel("Tuple((f8, f8))(f8[::1], f8[:], f8[::1], b1, f8[::1], f4[:,::1])", writes=["told"])
def tell(at, target, weight, numbers, units, told):
    """Gradient and curvature of each row, times `units` (2,), into `told` (n, 2), and the largest of both.

    at: (n,) the sum so far for numbers, else the probability of what `target` (n,) says: squared or logistic loss.
    Where `told` has one column, (n, 1), it takes the gradient alone, and all weights are taken for 1.
    """
    steepest, most, alike = 0.0, 0.0, told.shape[1] == 1
    for i in range(at.size):
        heavy = 1.0 if alike else weight[i]
        gradient = (at[i] - target[i]) * heavy * units[0]
        bent = heavy * units[1] * (1.0 if numbers else at[i] * (1 - at[i]))
        told[i, 0] = gradient
        if not alike:
            told[i, 1] = bent
        steepest, most = max(steepest, abs(gradient)), max(most, bent)
    return steepest, most


@inner
def curvature(told, numbers, i):
    """Of row i. If only gradients are told it is 1 for numbers, and p (1 - p) of probabilities: told is p or p - 1."""
    if told.shape[1] > 1:
        return np.float64(told[i, np.uintp(1)])
    if numbers:
        return 1.0
    share = abs(np.float64(told[i, np.uintp(0)]))
    return share * (1 - share)


@inner
def add(words, rows, slopes, scales, gathered, held, histogram):
    """These rows, CHUNK at most, into the histogram."""
    told, numbers = slopes
    bits, gradients, curvatures = scales
    width, one = words.shape[1], np.float64(1)
    for c in range(rows.size):
        p = np.uintp(c)
        i = np.uintp(rows[p])
        steep, bent = np.float64(told[i, np.uintp(0)]), curvature(told, numbers, i)
        held[p] = (np.int64(np.rint(steep * gradients)) << bits) + np.int64(max(np.rint(bent * curvatures), one))
        for w in range(width):
            gathered[p, np.uintp(w)] = words[i, np.uintp(w)]
    for w in range(width):
        o = np.uintp(w * 8 * CELLS)
        for c in range(rows.size):
            word, code = held[np.uintp(c)], gathered[np.uintp(c), np.uintp(w)]
            histogram[o + (code & np.uintp(255))] += word
            histogram[o + np.uintp(256) + ((code >> np.uintp(8)) & np.uintp(255))] += word
            histogram[o + np.uintp(512) + ((code >> np.uintp(16)) & np.uintp(255))] += word
            histogram[o + np.uintp(768) + ((code >> np.uintp(24)) & np.uintp(255))] += word
            histogram[o + np.uintp(1024) + ((code >> np.uintp(32)) & np.uintp(255))] += word
            histogram[o + np.uintp(1280) + ((code >> np.uintp(40)) & np.uintp(255))] += word
            histogram[o + np.uintp(1536) + ((code >> np.uintp(48)) & np.uintp(255))] += word
            histogram[o + np.uintp(1792) + (code >> np.uintp(56))] += word


@inner
def empty(histogram):
    for cell in range(histogram.size):
        histogram[np.uintp(cell)] = 0


@seldom
def tally(words, rows, slopes, scales, gathered, held, histogram):
    """The histogram (columns × CELLS) of these rows."""
    empty(histogram)
    for first in range(0, rows.size, CHUNK):
        add(words, rows[first : first + CHUNK], slopes, scales, gathered, held, histogram)


@seldom
def part_rows(rows, words, codes, j, sides, spare, counts, slopes, scales, gathered, held, histogram):
    """Bring the rows of codes whose side (CELLS,) is LEFT to the front, stably: how many.

    counts: the side, LEFT or RIGHT, whose histogram is wanted: its rows are at hand now.
    """
    kept, moved, column = np.uintp(0), np.uintp(0), np.uintp(j)
    if counts != NEITHER:
        empty(histogram)
    for first in range(0, rows.size, CHUNK):
        stay, go = kept, moved
        for p in range(first, min(first + CHUNK, rows.size)):
            i = rows[np.uintp(p)]
            right = np.uintp(sides[np.uintp(codes[np.uintp(i), column])])
            spare[moved] = i
            rows[kept] = i
            moved += right
            kept += np.uintp(1) - right
        if counts == LEFT:
            add(words, rows[stay:kept], slopes, scales, gathered, held, histogram)
        elif counts == RIGHT:
            add(words, spare[go:moved], slopes, scales, gathered, held, histogram)
    for p in range(moved):
        rows[kept + np.uintp(p)] = spare[np.uintp(p)]
    return np.int64(kept)


@inner
def leading(gain, leaves):
    """The leaf whose split gains most; the first of a tie."""
    best = 0
    for leaf in range(1, leaves):
        if gain[leaf] > gain[best]:
            best = leaf
    return best


@inner
def subtract(whole, part):
    for cell in range(whole.size):
        whole[np.uintp(cell)] -= part[np.uintp(cell)]


@inner
def vacated(owner, place, begin, end):
    """A place in the pool that no leaf owns, or that of the leaf with the fewest rows, which loses its histogram."""
    poorest, fewest = -1, 0
    for at in range(owner.size):
        leaf = owner[at]
        if leaf == FREE:
            return at
        if leaf != IN_USE and (poorest < 0 or end[leaf] - begin[leaf] < fewest):
            poorest, fewest = at, end[leaf] - begin[leaf]
    place[owner[poorest]] = -1
    owner[poorest] = FREE
    return poorest


@kernel(
    "i8(u8[:,::1], u1[:,::1], i8[::1], i8[::1], f8[::1], f8[::1], i8[::1], i4[::1], i4[::1], f4[:,::1], b1, i8[:,::1],"
    "i8, f8, f8, f8, f8, f8, f8, f8, f8, f8, f8, i8, i8, f8[::1],"
    "i4[::1], f8[::1], i4[::1], i1[::1], f8[::1], f8[::1], f8[::1], u1[:,::1])",
    writes=[
        "rows",
        "spare",
        "pool",
        "raw",
        "column",
        "threshold",
        "left",
        "missing",
        "share",
        "value",
        "gain",
        "sides",
    ],
)
def boost(
    words,
    codes,
    bins,
    start,
    low,
    high,
    levels,
    rows,
    spare,
    told,
    numbers,
    pool,
    bits,
    gradients,
    curvatures,
    l2,
    least_rows,
    least_curvature,
    rate,
    unit,
    smoothing,
    extra,
    rare,
    max_leaves,
    max_depth,
    raw,
    column,
    threshold,
    left,
    missing,
    share,
    value,
    gain,
    sides,
):
    """Grow one tree, add its answers to `raw` (n,) of the rows it grew from, and return how many nodes it has.

    words and codes: the same (n, columns), as words and as bytes. told: (n, 2) gradient and curvature, of which the
    histograms tell steps of 1/`gradients` and 1/`curvatures`. unit: of the gradients over that of the curvatures.
    smoothing, extra, rare: of categories, the curvature added to each to put them in order, that added to leaves that
    a question about them parts, and the rows one must have to be named. sides: (nodes, CELLS) where each code goes.
    pool: (2 or more, cells) scratch for histograms; both children of a leaf that keeps none are counted.
    """
    width = words.shape[1]
    gathered, held = np.empty((CHUNK, width), np.uint64), np.empty(CHUNK, np.int64)
    sums, gains, penalty = np.empty(CELLS, np.int64), np.empty(CELLS), np.full(max_leaves, l2)
    begin, end, depth = np.empty(max_leaves, np.int64), np.empty(max_leaves, np.int64), np.empty(max_leaves, np.int64)
    node, plan = np.empty(max_leaves, np.int64), np.empty((max_leaves, 4), np.int64)
    lead, place, owner = np.zeros(max_leaves), np.full(max_leaves, -1), np.full(pool.shape[0], FREE)
    scales, limits = (bits, gradients, curvatures), (l2, least_rows, least_curvature)
    grouping, slopes = (smoothing, extra, rare), (told, numbers)
    begin[0], end[0], depth[0], node[0], leaves, nodes = 0, rows.size, 0, 0, 1, 1
    column[0], gain[0], missing[0], threshold[0], share[0], value[0] = -1, 0.0, -1, 0.0, 1.0, 0.0
    one, other, parent, at = 0, -1, -1, 0  # new leaves, where the histogram was from which they come, where that of one
    tally(words, rows, slopes, scales, gathered, held, pool[0])
    while True:
        for leaf in (one, other):
            if leaf == other:
                if other < 0:
                    continue
                if parent >= 0:
                    subtract(pool[parent], pool[at])
                    at = parent
                else:
                    at = vacated(owner, place, begin, end)
                    tally(words, rows[begin[leaf] : end[leaf]], slopes, scales, gathered, held, pool[at])
            size = end[leaf] - begin[leaf]
            lead[leaf], place[leaf], owner[at] = 0.0, -1, FREE
            if size >= 2 * least_rows and depth[leaf] < max_depth:
                lead[leaf], plan[leaf, 0], plan[leaf, 1], plan[leaf, 2], plan[leaf, 3] = best_split(
                    pool[at], bins, levels, size, scales, limits, grouping, sums, gains, sides[node[leaf]]
                )
            if lead[leaf] > 0:
                place[leaf], owner[at] = at, leaf
        older = leading(lead, leaves)
        if lead[older] <= 0:
            break
        j, last, way, fewer = plan[older, 0], plan[older, 1], plan[older, 2], plan[older, 3]
        younger, lo, hi = leaves, begin[older], end[older]
        leaves += 1
        one, other = (older, younger) if fewer == LEFT else (younger, older)
        if leaves == max_leaves:
            fewer = NEITHER
        else:
            parent = place[older]
            if parent >= 0:
                owner[parent] = IN_USE
            at = vacated(owner, place, begin, end)
            owner[at] = IN_USE
        cut = lo + part_rows(
            rows[lo:hi],
            words,
            codes,
            j,
            sides[node[older]],
            spare,
            fewer,
            slopes,
            scales,
            gathered,
            held,
            pool[at],
        )
        asks = node[older]
        column[asks], left[asks], missing[asks], gain[asks] = j, nodes, way, lead[older]
        share[asks] = (cut - lo) / (hi - lo)
        if not levels[j]:
            threshold[asks] = np.inf if last + 1 >= bins[j] else middle(high[start[j] + last], low[start[j] + last + 1])
        begin[younger], end[younger], end[older] = cut, hi, cut
        penalty[older] = penalty[younger] = l2 + (extra if levels[j] else 0.0)
        depth[older] += 1
        depth[younger] = depth[older]
        node[older], node[younger] = nodes, nodes + 1
        for fresh in range(nodes, nodes + 2):
            column[fresh], gain[fresh], missing[fresh] = -1, 0.0, -1
            threshold[fresh], share[fresh], value[fresh] = 0.0, 1.0, 0.0
        nodes += 2
        if leaves == max_leaves:
            break
    for leaf in range(leaves):
        g, h = 0.0, 0.0
        for i in rows[begin[leaf] : end[leaf]]:
            g += np.float64(told[i, 0])
            h += curvature(told, numbers, i)
        answer = -rate * unit * g / (max(h, least_curvature) + penalty[leaf])  # of rows that all are certain h is 0
        value[node[leaf]] = answer
        left[node[leaf]] = node[leaf]
        for i in rows[begin[leaf] : end[leaf]]:
            raw[i] += answer
    return nodes
