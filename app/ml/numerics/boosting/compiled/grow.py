"""One tree of a sum of trees: leaf by leaf, the split that gains most first, on histograms of gradients.

The histogram of one child is the difference between its parent's and its sibling's.

References: Ke et al. (2017), LightGBM, NeurIPS; Shi et al. (2022), Quantized training of GBDT, NeurIPS.
"""

import numpy as np

from app.ml.numerics.boosting.compiled.bounded_splits import ANY_GROUP, best_bounded_split, draw_columns
from app.ml.numerics.boosting.compiled.rows import CHUNK, chosen, part_rows, tally
from app.ml.numerics.boosting.compiled.splits import CELLS, LEFT, NEITHER, best_split
from app.ml.numerics.jit import inner, kernel
from app.ml.numerics.trees.compiled.growth import middle

FREE, IN_USE = -1, -2
"""Instead of the leaf that owns a place in the pool."""
NEW, COUNTED, PARTED = 0, 1, 2
"""Stages of a tree when it is taken up: nothing is done; its caller has counted all rows, or parted those of a leaf."""
STAGE, LEAVES, NODES, ONE, OTHER, PARENT, PLACE, LEAF, FEWER, KEPT = range(10)
"""Places of `progress`."""
WAITING = -1


@inner
def leading(gain, leaves):
    """The leaf whose split gains most; the first of a tie."""
    best = 0
    for leaf in range(1, leaves):
        if gain[leaf] > gain[best]:
            best = leaf
    return best


@inner
def bound_children(bounds, older, younger, direction):
    """Bounds of the values of both children of a split; of a column with a direction the middle of them is one."""
    left, right = bounds[older, 2], bounds[older, 3]
    between = left / 2 + right / 2
    bounds[younger, 0], bounds[younger, 1] = bounds[older, 0], bounds[older, 1]
    if direction > 0:
        bounds[older, 1], bounds[younger, 0] = between, between
    elif direction < 0:
        bounds[older, 0], bounds[younger, 1] = between, between


@inner
def subtract(whole, part):
    for cell in range(whole.size):
        whole[np.uintp(cell)] -= part[np.uintp(cell)]


@inner
def vacated(owner, place, begin, end):
    """A place in the pool that no leaf owns, or that of the leaf with the fewest rows, which loses its histogram."""
    poorest, fewest = -1, 0
    for slot in range(owner.size):
        leaf = owner[slot]
        if leaf == FREE:
            return slot
        if leaf != IN_USE and (poorest < 0 or end[leaf] - begin[leaf] < fewest):
            poorest, fewest = slot, end[leaf] - begin[leaf]
    place[owner[poorest]] = -1
    owner[poorest] = FREE
    return poorest


@kernel(
    "i8(u8[:,::1], u1[:,::1], i8[:,::1], i8[::1], i8[::1], f8[::1], f8[::1], i8[::1], b1[:], i4[::1], i4[::1], f4[::1],"
    "f8[::1], f8, b1, f4[::1], i8[:,::1], i8, f8, f8, f8, f8, f8, f8, f8, f8, i8, i8, i8[:,::1],"
    "i4[::1], f8[::1], i4[::1], i1[::1], f8[::1], f8[::1], f8[::1], u1[:,::1],"
    "i8[::1], i8, i8[:,::1], f8[:,::1], i8[::1], UniTuple(f8, 3), i8[:,::1], b1[::1], i8[::1])",
    writes=[
        "rows",
        "spare",
        "pool",
        "leaf_rows",
        "column",
        "threshold",
        "left",
        "missing",
        "share",
        "value",
        "gain",
        "sides",
        "progress",
        "leaf_states",
        "leaf_numbers",
        "owner",
    ],
)
def boost(
    words,
    codes,
    further,
    bins,
    start,
    low,
    high,
    levels,
    train_mask,
    rows,
    spare,
    result,
    weights,
    scale,
    numbers,
    curvature,
    pool,
    bits,
    gradients,
    curvatures,
    l2,
    least_rows,
    least_curvature,
    smoothing,
    extra,
    rare,
    max_leaves,
    max_depth,
    leaf_rows,
    column,
    threshold,
    left,
    missing,
    share,
    value,
    gain,
    sides,
    progress,
    most,
    leaf_states,
    leaf_numbers,
    owner,
    penalties,
    columns,
    tree_columns,
    draws,
):
    """Grow one tree of the rows of `train_mask`, put them into `rows` (n,) leaf by leaf, and return how many nodes it
    has. Or WAITING: more than `most` rows are to be counted, or those of the leaf to be parted, by the caller, who
    takes it up again with what has been done in `progress`.

    words and codes: the same (n, columns), as words and as bytes. further: (2, d) where the further bytes of a column
    of many categories begin, and how many they are: see `Binned.wide`. result, weights, scale, numbers: see `slope`, of
    which histograms count steps of 1/`gradients` and 1/`curvatures`. smoothing, extra, rare: of categories, the
    curvature added to each to put them in order, that added to leaves below a split of them, and the rows one must have
    to be named. sides: (nodes, CELLS or more) where each code goes. pool: (2 or more, cells) scratch for histograms;
    both children of a leaf that keeps none are counted. spare: scratch of any length. leaf_rows: (max_leaves, 3) each
    leaf's node, and where its rows begin and end. leaf_states, leaf_numbers: (max_leaves, 8) and (max_leaves, 6) what
    else is known of a leaf: the gain of its split, the penalty of its value, what bounds this from below and above, and
    the values of its children. owner: the leaf of each place of the pool. penalties, columns, tree_columns, draws: see
    `best_bounded_split`; without draws nothing bounds the steps, and no column is drawn.
    """
    width = words.shape[1]
    gathered, held = np.empty((CHUNK, width), np.uint64), np.empty(2 * CHUNK, np.int64)
    sums, gains = np.empty(sides.shape[1], np.int64), np.empty(sides.shape[1])
    widest = np.empty(sides.shape[1] if sides.shape[1] > CELLS else 0, np.int64)
    node, begin, end = leaf_rows[:, 0], leaf_rows[:, 1], leaf_rows[:, 2]
    depth, place, plan = leaf_states[:, 0], leaf_states[:, 1], leaf_states[:, 2:6]
    key, group = leaf_states[:, 6], leaf_states[:, 7]
    lead, penalty, bounds = leaf_numbers[:, 0], leaf_numbers[:, 1], leaf_numbers[:, 2:]
    bounded, long = draws.size > 0, sides.shape[1] if draws.size else 0
    allowed, drawn = np.zeros(bins.size if bounded else 0, np.bool_), np.empty(bins.size if bounded else 0)
    arrays = sums, gains, np.empty(long), np.empty(long, np.int64), np.empty(long, np.int64), allowed
    scales, limits = (bits, gradients, curvatures), (l2, least_rows, least_curvature)
    grouping, slopes = (smoothing, extra, rare), (result, weights, scale, numbers, curvature)
    stage, leaves, nodes = progress[STAGE], progress[LEAVES], progress[NODES]
    new_leaf, other, parent, slot = progress[ONE], progress[OTHER], progress[PARENT], progress[PLACE]
    older, fewer = progress[LEAF], progress[FEWER]
    if stage == NEW:
        lead[:], penalty[:], place[:], owner[:] = 0.0, l2, -1, FREE
        begin[0], end[0], depth[0], node[0], leaves, nodes = 0, chosen(train_mask, rows), 0, 0, 1, 1
        column[0], gain[0], missing[0], threshold[0], share[0], value[0] = -1, 0.0, -1, 0.0, 1.0, 0.0
        bounds[0, 0], bounds[0, 1], key[0], group[0] = -np.inf, np.inf, 1, ANY_GROUP
        new_leaf, other, parent, slot = (
            0,
            -1,
            -1,
            0,
        )  # new leaves, where the histogram was they come from, where that of the first
        if end[0] > most:
            progress[STAGE], progress[LEAVES], progress[NODES] = COUNTED, leaves, nodes
            progress[ONE], progress[OTHER], progress[PARENT], progress[PLACE] = new_leaf, other, parent, slot
            progress[LEAF] = 0
            return WAITING
        tally(words, rows[: end[0]], slopes, scales, gathered, held, pool[0])
    while True:
        if stage != PARTED:
            for leaf in (new_leaf, other):
                if leaf == other:
                    if other < 0:
                        continue
                    if parent >= 0:
                        subtract(pool[parent], pool[slot])
                        slot = parent
                    else:
                        slot = vacated(owner, place, begin, end)
                        tally(words, rows[begin[leaf] : end[leaf]], slopes, scales, gathered, held, pool[slot])
                size = end[leaf] - begin[leaf]
                lead[leaf], place[leaf], owner[slot] = 0.0, -1, FREE
                splits = size >= 2 * least_rows and depth[leaf] < max_depth
                if splits and bounded:
                    draw_columns(columns, tree_columns, draws, key[leaf], group[leaf], allowed, drawn)
                    node_bounds = bounds[leaf, 0], bounds[leaf, 1], key[leaf]
                    (
                        lead[leaf],
                        plan[leaf, 0],
                        plan[leaf, 1],
                        plan[leaf, 2],
                        plan[leaf, 3],
                        bounds[leaf, 2],
                        bounds[leaf, 3],
                    ) = best_bounded_split(
                        pool[slot],
                        further,
                        bins,
                        levels,
                        size,
                        scales,
                        limits,
                        grouping,
                        penalties,
                        columns,
                        node_bounds,
                        draws,
                        arrays,
                        sides[node[leaf]],
                    )
                elif splits:
                    lead[leaf], plan[leaf, 0], plan[leaf, 1], plan[leaf, 2], plan[leaf, 3] = best_split(
                        pool[slot],
                        further,
                        bins,
                        levels,
                        size,
                        scales,
                        limits,
                        grouping,
                        sums,
                        gains,
                        widest,
                        sides[node[leaf]],
                    )
                if lead[leaf] > 0:
                    place[leaf], owner[slot] = slot, leaf
            older = leading(lead, leaves)
            if lead[older] <= 0:
                break
            fewer = plan[older, 3]
            new_leaf, other = (older, leaves) if fewer == LEFT else (leaves, older)
            leaves += 1
            if leaves == max_leaves:
                fewer = NEITHER
            else:
                parent = place[older]
                if parent >= 0:
                    owner[parent] = IN_USE
                slot = vacated(owner, place, begin, end)
                owner[slot] = IN_USE
        younger, lo, hi = leaves - 1, begin[older], end[older]
        j, last, missing_to = plan[older, 0], plan[older, 1], plan[older, 2]
        if stage == PARTED:
            left_count = progress[KEPT]
            stage = NEW
        elif hi - lo > most:
            progress[STAGE], progress[LEAVES], progress[NODES] = PARTED, leaves, nodes
            progress[ONE], progress[OTHER], progress[PARENT], progress[PLACE] = new_leaf, other, parent, slot
            progress[LEAF], progress[FEWER] = older, fewer
            return WAITING
        else:
            left_count = part_rows(
                rows[lo:hi],
                words,
                codes,
                j,
                (further[0, j], further[1, j]),
                sides[node[older]],
                spare,
                fewer,
                slopes,
                scales,
                gathered,
                held,
                pool[slot],
            )
        cut = lo + left_count
        parent_node = node[older]
        column[parent_node], left[parent_node], missing[parent_node], gain[parent_node] = (
            j,
            nodes,
            missing_to,
            lead[older],
        )
        share[parent_node] = (cut - lo) / (hi - lo)
        if not levels[j]:
            threshold[parent_node] = (
                np.inf if last + 1 >= bins[j] else middle(high[start[j] + last], low[start[j] + last + 1])
            )
        begin[younger], end[younger], end[older] = cut, hi, cut
        penalty[older] = penalty[younger] = l2 + (extra if levels[j] else 0.0)
        if bounded:
            bound_children(bounds, older, younger, columns[0, j])
            if columns[1, j] != ANY_GROUP:
                named = columns[1, j] if group[older] == ANY_GROUP else columns[1, j] & group[older]
                group[older] = named if columns[1, j] > 0 else -(j + 2)
            group[younger] = group[older]
            key[older], key[younger] = 2 * key[older], 2 * key[older] + 1
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
        left[node[leaf]] = node[leaf]
    return nodes
