"""Growing one tree, node by node, without a step of Python in between.

The rows of a node are a segment of `order`, which a question deals out to the node's ways in place. `order` is one
row of row numbers, and a column's rows are sorted or counted by code at every node; or it is one row a column, sorted
by its codes beforehand, which dealing out keeps sorted.
"""

import numpy as np

from app.ml.numerics.compiled import inner, kernel, seldom
from app.ml.numerics.kernels.questions import GINI, VARIANCE, quality, weigh
from app.ml.numerics.kernels.search import ASIDE, DE_BRUIJN, KNOWN, SUBSET, THRESHOLD, search

EPS = float(np.finfo(np.float64).eps)
TIE = 1e-11
"""Gains closer than this share of the node's impurity are equal: rounding must not choose."""
LEEWAY = 1e-9
"""Share by which rounding may take a sum of weights below what is asked for."""
GROW = (
    "Tuple((i8, b1[::1]))({}[:,::1], i8[::1], i8[::1], f8[::1], f8[::1], i8[::1], i4[:,::1], i4[::1], f8[::1], f8[::1],"
    "i8, i8, i8, i8, f8, f8, f8, i8, b1, i1[::1], u8,"
    "i4[::1], f8[::1], i4[::1], i1[::1], f8[:,::1], f8[::1], f8[::1], f8[::1])"
)
GROWN = "column", "threshold", "left", "missing", "value", "mass", "impurity", "gain"
WRITES = "order", *GROWN


@inner
def gather(rows, kind, weight, y, criterion, near, kinds, total):
    """Bring what all columns ask of the rows of a node together, in `near` (m, 2) and `kinds` (m,) as `tally` takes
    them, and sum it up; of numbers also their mean, mean square and largest size.
    """
    for s in range(total.size):
        total[s] = 0.0
    if criterion != VARIANCE:
        for p in range(rows.size):
            q = np.uintp(p)
            i = np.uintp(rows[q])
            share, one = weight[i], kind[i]
            total[one] += share
            kinds[q] = one
            near[q, 0], near[q, 1] = share, 0.0
            if total.size == 2:
                near[q, one], near[q, 1 - one] = share, 0.0
        return 0.0, 0.0, 0.0
    mean, largest = 0.0, 0.0
    for p in range(rows.size):
        q = np.uintp(p)
        i = np.uintp(rows[q])
        near[q, 0], near[q, 1] = weight[i], y[i]
        total[0] += weight[i]
        mean += weight[i] * y[i]
        largest = max(largest, abs(y[i]))
    mean /= total[0]
    square = 0.0
    for p in range(rows.size):
        q = np.uintp(p)
        apart = near[q, 1] - mean
        near[q, 1] = near[q, 0] * apart
        total[1] += near[q, 1]
        square += near[q, 1] * apart
    return mean, square, largest


@inner
def describe(rows, kind, weight, y, criterion, near, kinds, total, value):
    """Sums over the rows of a node, its `value`, weight and impurity, which is 0 if they all have one answer."""
    mean, square, largest = gather(rows, kind, weight, y, criterion, near, kinds, total)
    mass = weigh(total, criterion)
    if criterion == VARIANCE:
        value[0] = mean
        return mass, square / mass if np.sqrt(square / mass) > 4 * EPS * largest else 0.0
    different = 0
    for s in range(total.size):
        value[s] = total[s] / mass
        different += total[s] > 0
    whole = mass if criterion == GINI else 0.0
    return mass, max(whole - quality(total, criterion), 0.0) / mass if different > 1 else 0.0


@inner
def mark(rows, code, bins, gap, asks, last, members, side, ways):
    """Which way each row goes into `side`: 0 left, 1 right, 2 neither; and how many go each way. gap: where
    the missing go, neither way if nowhere.
    """
    ways[:] = 0
    for i in rows:
        c = np.int64(code[i])
        way = 0
        if c == bins:
            way = gap if gap >= 0 else ASIDE
        elif asks == THRESHOLD:
            way = 1 if c > last else 0
        elif asks == SUBSET:
            way = 0 if members[c] else 1
        side[i] = way
        ways[way] += 1


@inner
def deal(rows, side, ways, spare):
    """Bring the rows (of one segment) that go left to the front, then those that go right, then the missing, stably."""
    if ways[2] == 0:
        kept, moved = 0, 0
        for p in range(rows.size):
            i = rows[p]
            right = np.int64(side[i])
            spare[moved] = i
            rows[kept] = i
            moved += right
            kept += 1 - right
        for p in range(moved):
            rows[kept + p] = spare[p]
        return
    first, second, third = 0, ways[0], ways[0] + ways[1]
    for i in rows:
        if side[i] == 0:
            spare[first] = i
            first += 1
        elif side[i] == 1:
            spare[second] = i
            second += 1
        else:
            spare[third] = i
            third += 1
    for p in range(rows.size):
        rows[p] = spare[p]


@inner
def middle(low, high):
    """Half-way between two values; the lower one if there is nothing in between."""
    half = low / 2 + high / 2
    return half if low <= half < high else low


@seldom
def doubled(members, more):
    """The same truths in an array of more than twice the size."""
    larger = np.zeros(2 * members.size + more, np.bool_)
    for place in range(members.size):
        larger[place] = members[place]
    return larger


@seldom
def foremost(waiting, gain):
    """The place in `waiting` of the node whose question gains most; of a tie the oldest."""
    best = 0
    for place in range(1, waiting.size):
        lead = gain[waiting[place]] - gain[waiting[best]]
        if lead > 0 or (lead == 0 and waiting[place] < waiting[best]):
            best = place
    return best


@kernel(GROW.format("u1"), writes=WRITES)
def grow(
    codes,
    bins,
    start,
    low,
    high,
    levels,
    order,
    kind,
    weight,
    y,
    criterion,
    k,
    max_depth,
    max_leaves,
    min_split,
    min_leaf,
    min_gain,
    tries,
    lottery,
    own,
    seed,
    column,
    threshold,
    left,
    missing,
    value,
    mass,
    impurity,
    gain,
):
    """Grow one tree into the arrays from `column` on, one place a node: how many nodes, and the members of subsets.

    codes (d, n) u1 or i4, bins (d,), start (d,), low, high, levels (d,): a `Binned`. order (1 or d, m): the rows.
    kind (n,) class of each row, or anything for numbers y (n,). k: classes, or 2. max_leaves: 0 for no limit; with
    one, the question that gains most is asked first. tries: columns drawn for each question. lottery: subsets of
    categories are drawn too. own (d,): where a column may
    send missing values.
    """
    d, n = codes.shape
    places, m = column.size, order.shape[1]
    most, widest = 1, 1
    for j in range(d):
        most, widest = max(most, bins[j] + 1), max(widest, levels[j])
    ranked = order.shape[0] > 1
    moment = np.empty(n if criterion == VARIANCE and ranked else 0)
    target, options = (kind, weight, moment), (criterion, lottery, own)
    near, kinds, drawn = np.empty((m, 2)), np.empty(m, np.int32), np.arange(d)
    held, seen, cells = np.zeros((most, k)), np.zeros(most // 64 + 1, np.uint64), np.empty(most, np.int64)
    bit = np.empty(64, np.int64)
    for power in range(64):
        bit[(np.uint64(1) << np.uint64(power)) * np.uint64(DE_BRUIJN) >> np.uint64(58)] = power
    sums = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    pick, best_pick = np.zeros(widest + 1, np.bool_), np.zeros(widest + 1, np.bool_)
    levelled = np.empty((widest, k)), np.empty(widest, np.int64), np.empty(widest + 1)
    work = sums, levelled, pick, drawn, near, kinds, held, seen, bit, cells
    state = np.array([seed], np.uint64)
    total, ways = np.empty(k), np.empty(3, np.int64)
    side, spare = np.empty(n, np.uint8), np.empty(m, np.int32)
    begin, end, depth = np.empty(places, np.int32), np.empty(places, np.int32), np.empty(places, np.int32)
    plan, waiting = np.empty((places, 4), np.int32), np.empty(places, np.int32)
    members, named = np.zeros(widest, np.bool_), 0
    least = min_leaf * (1 - LEEWAY)
    begin[0], end[0], depth[0] = 0, m, 0
    fresh, nodes, open_, leaves = 0, 1, 0, 1
    while True:
        for node in range(fresh, nodes):
            lo, hi = begin[node], end[node]
            rows = order[0, lo:hi]
            mass[node], impurity[node] = describe(rows, kind, weight, y, criterion, near, kinds, total, value[node])
            column[node], threshold[node], left[node], missing[node], gain[node] = -1, 0.0, -1, -1, 0.0
            if impurity[node] == 0 or depth[node] >= max_depth or mass[node] < min_split * (1 - LEEWAY):
                continue
            if criterion == VARIANCE and ranked:
                for p in range(rows.size):
                    moment[rows[p]] = near[p, 1]
            unit = impurity[node] * mass[node]
            gained, j, asks, last, following, gap = search(
                rows,
                codes,
                bins,
                levels,
                order,
                lo,
                hi,
                target,
                total,
                least,
                TIE * unit,
                options,
                tries,
                work,
                best_pick,
                state,
            )
            if j < 0 or gained < min_gain * mass[node] - 1e-12 * unit:
                continue
            gain[node] = max(gained, 0.0)
            plan[node, 0], plan[node, 1], plan[node, 2], plan[node, 3] = j, asks, last, gap
            if asks == THRESHOLD:
                threshold[node] = middle(high[start[j] + last], low[start[j] + following])
            elif asks == SUBSET:
                if named + widest > members.size:
                    members = doubled(members, widest)
                threshold[node] = named
                for level in range(levels[j]):
                    members[named] = best_pick[level]
                    named += 1
            else:
                threshold[node] = np.inf
            waiting[open_] = node
            open_ += 1
        fresh = nodes
        if open_ == 0:
            break
        place = foremost(waiting[:open_], gain) if max_leaves else open_ - 1
        node = np.int64(waiting[place])
        open_ -= 1
        waiting[place] = waiting[open_]
        j, asks, last, gap = plan[node, 0], plan[node, 1], plan[node, 2], plan[node, 3]
        more = (gap == ASIDE) + (asks != KNOWN)
        if max_leaves and leaves + more > max_leaves:
            gain[node] = 0.0
            continue
        leaves += more
        lo, hi = begin[node], end[node]
        at = np.int64(threshold[node]) if asks == SUBSET else 0
        mark(order[0, lo:hi], codes[j], bins[j], gap, asks, last, members[at:], side, ways)
        for r in range(order.shape[0]):
            deal(order[r, lo:hi], side, ways, spare)
        column[node], left[node] = j, nodes
        missing[node] = more if gap == ASIDE else gap
        for way in range(3):
            if way == 0 or (way == 1 and asks != KNOWN) or (way == 2 and gap == ASIDE):
                begin[nodes], end[nodes], depth[nodes] = lo, lo + ways[way], depth[node] + 1
                nodes += 1
            lo += ways[way]
    return nodes, members[:named]


grow_ranked = kernel(GROW.format("i4"), writes=WRITES)(grow.python)
"""The same, for more codes than a byte holds."""
