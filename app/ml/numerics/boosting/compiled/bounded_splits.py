"""The best split of a leaf of boosting whose steps are bounded, whose columns are drawn, or whose curvatures differ.

A step is the value that lowers the second-order loss most within its bounds, and a split is worth what the steps of
both sides lower it by. Where the histogram is twice as long as its cells, its words count rows, and the second half
sums curvatures.

References: Chen & Guestrin (2016), XGBoost, KDD; Geurts, Ernst & Wehenkel (2006), Machine Learning 63:3 (drawn
thresholds); Salmon et al. (2011), Parallel random numbers, SC (Philox).
"""

import numpy as np

from app.ml.numerics.boosting.compiled.splits import CELLS, LEFT, NAMED, RIGHT, gather_cells, in_order
from app.ml.numerics.jit import inner, kernel, seldom

ANY_GROUP = -1
"""Columns of all groups are allowed below the root; from -2 down the single column that is."""
M0, M1, W0, W1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85
"""Multipliers of Philox, and steps of its key."""
LOW_WORD = 0xFFFFFFFF
ROW_STREAM, COLUMN_STREAM, THRESHOLD_STREAM = 1, 2, 3


@inner
def philox(seed, stream, tree, key, index):
    """A number in [0, 1) for these five, by Philox 4x32 of 10 rounds. stream: below 4. key: of 62 bits."""
    low, shift = np.uint64(LOW_WORD), np.uint64(32)
    k0, k1 = np.uint64(seed) & low, np.uint64(seed) >> shift
    c0, c1, c2 = np.uint64(index) & low, np.uint64(key) & low, np.uint64(tree) & low
    c3 = (np.uint64(stream) | ((np.uint64(key) >> shift) << np.uint64(2))) & low
    for _ in range(10):
        p0, p1 = np.uint64(M0) * c0, np.uint64(M1) * c2
        c0, c1, c2, c3 = (p1 >> shift) ^ c1 ^ k0, p1 & low, (p0 >> shift) ^ c3 ^ k1, p0 & low
        k0, k1 = (k0 + np.uint64(W0)) & low, (k1 + np.uint64(W1)) & low
    return np.float64(c0) / 2.0**32 + np.float64(c1) / 2.0**64


@kernel("void(u8, i8, i8[::1], f8[::1])", writes=["draws"])
def draw_rows(seed, tree, numbers, draws):
    """A number in [0, 1) for each of these rows (n,) and this tree, whatever rows are with it."""
    for i in range(numbers.size):
        draws[i] = philox(seed, ROW_STREAM, tree, 0, numbers[i])


@kernel("void(u8, i8, f8[::1])", writes=["draws"])
def draw_tree_columns(seed, tree, draws):
    """A number in [0, 1) for each column (d,) and this tree."""
    for j in range(draws.size):
        draws[j] = philox(seed, COLUMN_STREAM, tree, 0, j)


@inner
def soften(gradient, l1):
    """The gradient without as much as the penalty takes."""
    return max(gradient - l1, 0.0) if gradient > 0 else min(gradient + l1, 0.0)


@inner
def bounded_step(gradient, curvature, bounds):
    """The best value of a leaf. curvature: with its penalty."""
    l1, largest, low, high = bounds
    step = -soften(gradient, l1) / curvature if curvature > 0 else 0.0
    return min(max(min(max(step, -largest), largest), low), high)


@inner
def descent(gradient, curvature, step, l1):
    """Twice the loss that a step takes away, to second order."""
    return -(2 * gradient + curvature * step) * step - 2 * l1 * abs(step)


@seldom
def gain_of_sides(sides_of, penalty, bounds, direction):
    """Twice the loss that the steps of both sides take away, and the steps; 0 where these are in the wrong order."""
    g_left, h_left, g_right, h_right = sides_of
    left, right = bounded_step(g_left, h_left + penalty, bounds), bounded_step(g_right, h_right + penalty, bounds)
    if direction * (right - left) < 0:
        return 0.0, left, right
    gain = descent(g_left, h_left + penalty, left, bounds[0]) + descent(g_right, h_right + penalty, right, bounds[0])
    return gain, left, right


@inner
def is_allowed(columns, group, j):
    """True if the groups of the path have column j too."""
    mask = columns[1, j]
    if group == ANY_GROUP:
        return True
    if group < ANY_GROUP:
        return group == -(j + 2)
    return mask > 0 and (mask & group) != 0


@seldom
def draw_columns(columns, tree_columns, draws, key, group, chosen, scratch):
    """Which columns a node may split: of those that the tree and its path allow, as many as are drawn for a node."""
    seed, tree, count = draws[0], draws[1], draws[2]
    size = 0
    for j in range(chosen.size):
        chosen[j] = tree_columns[j] and is_allowed(columns, group, j)
        if chosen[j]:
            scratch[size] = philox(seed, COLUMN_STREAM, tree, key, j)
            size += 1
    if count >= size:
        return
    limit = np.sort(scratch[:size])[count]
    for j in range(chosen.size):
        if chosen[j]:
            chosen[j] = philox(seed, COLUMN_STREAM, tree, key, j) < limit


@seldom
def best_bounded_subset(cells, bends, whole, rows_each, best, least, scales, penalty, bounds, grouping, scratch, sides):
    """The gain of the best subset of a column's categories with its steps, if it is above `best`: see `best_subset`."""
    bits, gradients, _ = scales
    seen, ratio = scratch
    smoothing, rare = grouping
    mask, size, steep = (np.int64(1) << bits) - 1, 0, 1 / gradients
    word_all, h_all, total = whole
    g_all = ((word_all - total) >> bits) * steep
    for code in range(cells.size):
        count = cells[code] & mask
        if count > 0 and count * rows_each >= rare:
            ratio[code] = ((cells[code] - count) >> bits) * steep / (bends[code] + smoothing)
            seen[size] = code
            size += 1
    in_order(seen[:size], ratio)
    subset_gain, part, first, chosen, left, right = best, np.int64(0), 0, 0, 0.0, 0.0
    for backward in range(2):
        sum_, h_sum = np.int64(0), 0.0
        for p in range(min(NAMED, max(size // 2, min(size, 1)))):
            code = seen[size - 1 - p if backward else p]
            sum_ += cells[code]
            h_sum += bends[code]
            count = sum_ & mask
            if count < least or total - count < least:
                continue
            g = ((sum_ - count) >> bits) * steep
            gain, left_value, other = gain_of_sides((g, h_sum, g_all - g, h_all - h_sum), penalty, bounds, 0)
            if gain > subset_gain:
                subset_gain, part, first, chosen = gain, count, size - 1 - p if backward else 0, p + 1
                left, right = left_value, other
    if subset_gain > best:
        heavy = 2 * part > total
        for code in range(sides.size):
            sides[code] = LEFT if heavy and code < cells.size and cells[code] != 0 else RIGHT
        for code in seen[first : first + chosen]:
            sides[code] = RIGHT if heavy else LEFT
        if heavy:
            left, right = right, left
    return subset_gain, left, right


@seldom
def best_bounded_split(
    histogram, further, bins, levels, rows, scales, limits, grouping, penalties, columns, node, draws, arrays, sides
):
    """The best split of a leaf as `best_split` has it, and the steps of its left and right side.

    penalties: l1, the largest step, and the least gain. columns: (2, d) direction and groups of each column. node: what
    bounds its step from below and above, and its key. draws: seed, tree, columns of a node, 1 if thresholds are drawn,
    and 1 if the histogram is twofold. arrays: scratch as long as `sides`, and the columns (d,) to look at.
    """
    bits, gradients, curvatures = scales
    l2, least_rows, least_curvature = limits
    l1, largest, least_gain = penalties
    low, high, key = node
    sums, gains, bends, wide, wide_bends, chosen = arrays
    bounds = l1, largest, low, high
    twofold, half = draws[4] == 1, histogram.size // 2
    mask, whole, bent_all = (np.int64(1) << bits) - 1, np.int64(0), np.int64(0)
    for cell in range(CELLS):
        whole += histogram[cell]
        if twofold:
            bent_all += histogram[half + cell]
    total = whole & mask
    steep, bent = 1 / gradients, 1 / curvatures
    g_all = ((whole - total) >> bits) * steep
    h_all = (bent_all if twofold else total) * bent
    before = descent(g_all, h_all + l2, bounded_step(g_all, h_all + l2, bounds), l1)
    rows_each = 1.0 if twofold else rows / total
    wanted = (
        np.ceil(least_rows) if twofold else np.ceil(max(least_rows / rows_each * (1 - 1e-12), least_curvature / bent))
    )
    least = np.int64(min(wanted, 2.0**62))
    best, column, last, missing_to, fewer = before + least_gain, -1, -1, -1, LEFT
    best_left, best_right = 0.0, 0.0
    for j in range(bins.size):
        if not chosen[j]:
            continue
        size = bins[j] + 1
        if further[1, j]:
            gather_cells(histogram, j, further[0, j], size, wide)
            cells = wide[:size]
            if twofold:
                gather_cells(histogram[half:], j, further[0, j], size, wide_bends)
        else:
            cells = histogram[j * CELLS : j * CELLS + size]
            if twofold:
                for code in range(size):
                    wide_bends[code] = histogram[half + j * CELLS + code]
        for code in range(size):
            bends[code] = (wide_bends[code] if twofold else cells[code] & mask) * bent
        gone = cells[bins[j]]
        if levels[j]:
            subset_gain, left, right = best_bounded_subset(
                cells,
                bends,
                (whole, h_all, total),
                rows_each,
                best,
                least,
                scales,
                l2 + grouping[1],
                bounds,
                (grouping[0], grouping[2]),
                (sums, gains),
                sides,
            )
            if subset_gain > best:
                best, column, last, fewer, best_left, best_right = subset_gain, j, -1, LEFT, left, right
                missing_to = np.int64(sides[bins[j]]) if gone else -1
            continue
        drawn = -1
        if draws[3]:
            first, end = bins[j], -1
            for b in range(bins[j]):
                if cells[b]:
                    first, end = min(first, b), b
            if end <= first:
                continue
            drawn = first + np.int64(philox(draws[0], THRESHOLD_STREAM, draws[1], key, j) * (end - first))
        for aside in range(2 if gone else 1):  # the missing to the right, then to the left
            sum_, h_sum = (gone, bends[bins[j]]) if aside else (np.int64(0), 0.0)
            for b in range(bins[j] if gone and not aside and drawn < 0 else bins[j] - 1):
                sum_ += cells[b]
                h_sum += bends[b]
                count = sum_ & mask
                if count < least or total - count < least or (drawn >= 0 and b != drawn):
                    continue
                if twofold and min(h_sum, h_all - h_sum) < least_curvature:
                    continue
                g = ((sum_ - count) >> bits) * steep
                sides_of = g, h_sum, g_all - g, h_all - h_sum
                gain, left, right = gain_of_sides(sides_of, l2, bounds, columns[0, j])
                if gain > best:
                    best, column, last, best_left, best_right = gain, j, b, left, right
                    missing_to = (0 if aside else 1) if gone else -1
                    fewer = RIGHT if 2 * count > total else LEFT
    if column < 0:
        return 0.0, -1, -1, -1, LEFT, 0.0, 0.0
    if not levels[column]:
        for code in range(CELLS):
            sides[code] = RIGHT if code > last else LEFT
        sides[bins[column]] = LEFT if missing_to == 0 else RIGHT
    return best - before, column, last, missing_to, fewer, best_left, best_right
