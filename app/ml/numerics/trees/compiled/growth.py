"""Growing one tree, node by node, without a step of Python in between.

The rows of a node are a segment of `order`, which a split divides in place among the node's branches. `order` is one
row of row numbers, and a column's rows are sorted or counted by code at every node; or it is one row a column, sorted
by its codes beforehand, which stays sorted when it is divided.
"""

import numpy as np

from app.ml.numerics.jit import inner, kernel, seldom
from app.ml.numerics.trees.compiled.column_split import GINI, NEWTON, VARIANCE, clear, quality, weigh
from app.ml.numerics.trees.compiled.node_split import ASIDE, DE_BRUIJN, KNOWN, SUBSET, THRESHOLD, bend, entry, search
from app.ml.numerics.trees.compiled.partition import deal, mark

EPS = float(np.finfo(np.float64).eps)
TIE = 1e-11
"""Gains closer than this share of the node's impurity are equal: rounding must not choose."""
LEEWAY = 1e-9
"""Share by which rounding may take a sum of weights below the minimum."""
MAX_GATHERED_ROWS = 8192
"""Rows of a node, at most, whose entries are brought together: more lie dense enough to be fetched each time."""
PARTS = 4
"""Turns in which all rows are divided: more take less memory, and move more of them twice."""
GROW = (
    "void({}[:,::1], i8[::1], i8[::1], f8[::1], f8[::1], i8[::1], i4[:,::1], f8[::1], f8[::1], u1[:],"
    "i8, i8, i8, f8, f8, f8, i8, b1, i1[::1], u8[::1], i8[::1], i8[::1], i4[:,::1], b1[::1],"
    "i4[::1], f8[::1], i4[::1], i1[::1], f8[::1], f8[:,::1], f8[::1], f8[::1], f8[::1])"
)
STATE = "state", "drawn", "cursor", "waiting", "members"
GROWN = "column", "threshold", "left", "missing", "share", "value", "mass", "impurity", "gain"
WRITES = "order", *STATE, *GROWN


@inner
def gather(rows, target, near, total):
    """Sum up the entries of a node's rows, and bring them together in `near` (m, 2) unless they are more; of numbers
    also their mean, mean square and largest size.
    """
    y, weight, times, criterion = target
    mean, square, largest = 0.0, 0.0, 0.0
    clear(total)
    if criterion == VARIANCE:
        for i in rows:
            share = weight[i] * times[i]
            total[0] += share
            mean += share * y[i]
            largest = max(largest, abs(y[i]))
        mean /= total[0]
    elif criterion == NEWTON:
        for i in rows:
            share, bent = weight[i] * times[i], bend(y[i])
            total[0] += share * bent
            mean += share * y[i]
            largest = max(largest, abs(y[i] / bent))
        mean /= total[0]
    pairs, close = total.size == 2, rows.size <= len(near)
    for p in range(rows.size):
        q = np.uintp(p)
        i = np.uintp(rows[q])
        first, second = entry(i, target, mean, pairs)
        place = q if close else np.uintp(0)
        near[place, 0], near[place, 1] = first, second
        if criterion == VARIANCE:
            total[1] += second
            square += second * (y[i] - mean)
        elif criterion == NEWTON:
            total[1] += second
            square += second * second / first
        elif pairs:
            total[0] += first
            total[1] += second
        else:
            total[np.uintp(second)] += first
    return mean, square, largest


@inner
def describe(rows, target, near, total, value):
    """Sums over the rows of a node, its `value`, weight and impurity, which is 0 if they all have one target."""
    criterion = target[3]
    mean, square, largest = gather(rows, target, near, total)
    if criterion in (VARIANCE, NEWTON):
        mass, value[0] = total[0], mean
        return mass, square / mass if np.sqrt(square / mass) > 4 * EPS * largest else 0.0
    mass, different = weigh(total, criterion), 0
    for s in range(total.size):
        value[s] = total[s] / mass
        different += total[s] > 0
    whole = mass if criterion == GINI else 0.0
    return mass, max(whole - quality(total, criterion), 0.0) / mass if different > 1 else 0.0


@inner
def middle(low, high):
    """Half-way between two values; the lower one if there is nothing in between."""
    half = low / 2 + high / 2
    return half if low <= half < high else low


@inner
def likeliest(shares):
    """The first of a tie."""
    best = 0
    for s in range(1, shares.size):
        if shares[s] > shares[best]:
            best = s
    return best


@seldom
def foremost(waiting, gain):
    """The place in `waiting` of the node whose split gains most; of a tie the oldest."""
    best = 0
    for place in range(1, len(waiting)):
        node, other = waiting[place, 0], waiting[best, 0]
        if gain[node] > gain[other] or (gain[node] == gain[other] and node < other):
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
    y,
    weight,
    times,
    criterion,
    max_depth,
    max_leaves,
    min_split,
    min_leaf,
    min_gain,
    tries,
    lottery,
    owns,
    state,
    drawn,
    cursor,
    waiting,
    members,
    column,
    threshold,
    left,
    missing,
    share,
    value,
    mass,
    impurity,
    gain,
):
    """Grow one tree into the arrays from `column` on, one place a node, as long as there is room; and go on with it,
    when the arrays are longer.

    codes (d, n) u1 or i4, bins (d,), start (d,), low, high, levels (d,): a `Binned`. order (1 or d, m): the rows.
    y (n,): numbers, or slopes of a NEWTON step (not ranked), or classes. A row counts as `weight` (n,) times `times`
    (n,), which are 1 where columns are sorted.
    max_leaves: 0 for no limit; with one, the split that gains most comes first. tries: columns drawn for each
    split. lottery: subsets of categories are drawn too. own (d,): where a column may send missing values.
    state (1,): of the random numbers; drawn (d,): the columns, as they were drawn.

    at (4,): nodes so far; splits in `waiting` (·, 8), none when the tree is done; leaves; truths in `members`. mass,
    impurity and gain may have one place for all nodes, where nobody needs them, unless there is a limit of leaves; and
    so may value, of classes: then `left` of a leaf is the likeliest.
    """
    d, n = codes.shape
    target = y, weight, times, criterion
    criterion = VARIANCE if criterion == NEWTON else criterion  # their entries add up and are compared alike
    m, k = order.shape[1], 2 if criterion == VARIANCE else value.shape[1]
    most, widest = 1, 1
    for j in range(d):
        most, widest = max(most, bins[j] + 1), max(widest, levels[j])
    ranked = order.shape[0] > 1
    moment = np.empty(n if criterion == VARIANCE and ranked else 0)
    options = criterion, lottery, owns
    near = np.empty((1 if ranked else min(m, MAX_GATHERED_ROWS), 2))
    held, seen, cells = np.zeros((most, k)), np.zeros(most // 64 + 1, np.uint64), np.empty(most, np.int64)
    bit = np.empty(64, np.int64)
    for power in range(64):
        bit[(np.uint64(1) << np.uint64(power)) * np.uint64(DE_BRUIJN) >> np.uint64(58)] = power
    sums = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    pick, best_pick = np.zeros(widest + 1, np.bool_), np.zeros(widest + 1, np.bool_)
    levelled = np.empty((widest, k)), np.empty(widest, np.int64), np.empty(widest + 1)
    work = sums, levelled, pick, drawn, near, held, seen, bit, cells
    total, sizes = np.empty(k), np.empty(3, np.int64)
    side, spare = np.empty(n if ranked else 0, np.uint8), np.empty(m if ranked else -(-m // PARTS), np.int32)
    least = min_leaf * (1 - LEEWAY)
    nodes, open_, leaves, named = cursor[0], cursor[1], cursor[2], cursor[3]
    whole, keeps, parent, lefts = gain.size > 1, len(value) > 1, 0, 0.0
    begin, end, depth, fresh = np.zeros(3, np.int64), np.full(3, m), np.int64(0), np.int64(nodes == 0)
    while True:
        for branch in range(fresh):
            node, lo, hi = nodes, begin[branch], end[branch]
            nodes += 1
            rows = order[0, lo:hi]
            node_value = value[node if keeps else 0]
            weighs, impure = describe(rows, target, near, total, node_value)
            column[node], threshold[node], missing[node], share[node] = -1, 0.0, -1, 1.0
            left[node] = -1 if keeps else likeliest(node_value)
            note = node if whole else 0
            mass[note], impurity[note], gain[note] = weighs, impure, 0.0
            if branch == 0:
                lefts = weighs
            elif branch == 1 and np.isfinite(threshold[parent]):
                share[parent] = lefts / (lefts + weighs)
            if impure == 0 or depth >= max_depth or weighs < min_split * (1 - LEEWAY):
                continue
            mean = node_value[0]
            if criterion == VARIANCE and ranked:
                for i in rows:
                    moment[i] = weight[i] * (y[i] - mean)
            unit = impure * weighs
            gained, j, test, last, following, gap = search(
                rows,
                codes,
                bins,
                levels,
                order,
                lo,
                hi,
                target,
                moment if criterion == VARIANCE else y,
                mean,
                total,
                least,
                TIE * unit,
                options,
                tries,
                work,
                best_pick,
                state,
            )
            if j < 0 or gained < min_gain - 1e-12 * unit:
                continue
            gain[note] = max(gained, 0.0)
            if test == THRESHOLD:
                threshold[node] = middle(high[start[j] + last], low[start[j] + following])
            elif test == SUBSET:
                threshold[node] = named
                for level in range(levels[j]):
                    members[named] = best_pick[level]
                    named += 1
            else:
                threshold[node] = np.inf
            plan = waiting[open_]
            plan[0], plan[1], plan[2], plan[3] = node, lo, hi, depth
            plan[4], plan[5], plan[6], plan[7] = j, test, last, gap
            open_ += 1
        if open_ == 0 or nodes + 3 > column.size or open_ + 3 > len(waiting) or named + 3 * widest > members.size:
            break
        place = foremost(waiting[:open_], gain) if max_leaves else open_ - 1
        plan = waiting[place]
        node, lo, hi, depth = np.int64(plan[0]), np.int64(plan[1]), np.int64(plan[2]), np.int64(plan[3])
        j, test, last, gap = np.int64(plan[4]), np.int64(plan[5]), np.int64(plan[6]), np.int64(plan[7])
        open_ -= 1
        waiting[place] = waiting[open_]
        fresh, more = 0, (gap == ASIDE) + (test != KNOWN)
        if max_leaves and leaves + more > max_leaves:
            threshold[node], gain[node] = 0.0, 0.0
            continue
        leaves += more
        truths = np.int64(threshold[node]) if test == SUBSET else 0
        split = bins[j], gap, test, last, members[truths:]
        if ranked:
            mark(order[0, lo:hi], codes[j], split, side)
            deal(order, lo, hi, side, None, spare, sizes)
        else:
            deal(order, lo, hi, codes[j], split, spare, sizes)
        parent, column[node], left[node] = node, j, nodes
        missing[node] = more if gap == ASIDE else gap
        depth += 1
        for branch in range(3):
            if branch == 0 or (branch == 1 and test != KNOWN) or (branch == 2 and gap == ASIDE):
                begin[fresh], end[fresh] = lo, lo + sizes[branch]
                fresh += 1
            lo += sizes[branch]
    cursor[0], cursor[1], cursor[2], cursor[3] = nodes, open_, leaves, named


grow_ranked = kernel(GROW.format("i4"), writes=WRITES)(grow.python)
"""The same, for more codes than a byte holds."""
