"""The best split of a leaf of boosting, over its columns, from their histograms.

A cell holds the sums over its rows in one word, `gradient << bits | curvature`, in whole steps. Rows are counted by
their share of the leaf's curvature.

References: Ke et al. (2017), LightGBM, NeurIPS; Fisher (1958), J. Amer. Statist. Assoc. 53:789 (grouping categories);
Breiman et al. (1984), CART, theorem 4.5.
"""

import numpy as np

from app.ml.numerics.jit import inner, seldom

CELLS = 256
"""A histogram's places for a column."""
NAMED = 32
"""Categories, at most, that a split sets apart from all others: where many are few rows, chance finds some that agree.
"""
GAPS = 132, 57, 23, 10, 4, 1
LEFT, RIGHT, NEITHER = 0, 1, 2


@inner
def in_order(seen, ratio):
    """Codes by their ratio; of equal ones the lower first. By insertion, of many codes into every so manieth first."""
    for gap in GAPS:
        for p in range(gap, seen.size):
            code, place = seen[p], p
            while place >= gap:
                other = seen[place - gap]
                if ratio[other] < ratio[code] or (ratio[other] == ratio[code] and other < code):
                    break
                seen[place] = other
                place -= gap
            seen[place] = code


@inner
def gather_cells(histogram, j, start, size, cells):
    """The first `size` cells of a column whose further bytes begin at `start`, one after the other."""
    for code in range(size):
        turn = code // (CELLS - 1)
        place = j if turn == 0 else start + turn - 1
        cells[np.uintp(code)] = histogram[np.uintp(place * CELLS + code - turn * (CELLS - 1))]


@seldom
def best_subset(cells, rows, whole, before, best, least, scales, l2, grouping, seen, ratio, sides):
    """The gain of the best subset of a column's categories, if it is more than `best`: then `sides` has the subset.

    Missing values are a category too. In order of gradient over curvature the subset is the first or the last so many:
    the gain is convex in both sums, so that a line through the origin cuts off the best of all subsets. A category of
    few rows goes with most; one that the leaf has not seen goes with the heavier side.
    """
    bits, gradients, curvatures = scales
    smoothing, extra, rare = grouping
    mask, size, penalty = (np.int64(1) << bits) - 1, 0, l2 + extra
    steep, bent, total_h = 1 / gradients, 1 / curvatures, whole & ((np.int64(1) << bits) - 1)
    g_all, h_all = ((whole - total_h) >> bits) * steep, total_h * bent
    for code in range(cells.size):
        h = cells[code] & mask
        if h > 0 and h * rows >= rare * total_h:
            ratio[code] = ((cells[code] - h) >> bits) * steep / (h * bent + smoothing)
            seen[size] = code
            size += 1
    in_order(seen[:size], ratio)
    subset_gain, part, first, count = best, np.int64(0), 0, 0
    for backward in range(2):
        sum_ = np.int64(0)
        for p in range(min(NAMED, max(size // 2, min(size, 1)))):
            sum_ += cells[seen[size - 1 - p if backward else p]]
            h = sum_ & mask
            if h < least or total_h - h < least:
                continue
            g_left, h_left = ((sum_ - h) >> bits) * steep, h * bent
            g_right, h_right = g_all - g_left, h_all - h_left
            gain = g_left * g_left / (h_left + penalty) + g_right * g_right / (h_right + penalty) - before
            if gain > subset_gain:
                subset_gain, part, first, count = gain, h, size - 1 - p if backward else 0, p + 1
    if subset_gain > best:
        heavy = 2 * part > total_h
        for code in range(sides.size):
            sides[code] = LEFT if heavy and code < cells.size and cells[code] != 0 else RIGHT
        for code in seen[first : first + count]:
            sides[code] = RIGHT if heavy else LEFT
    return subset_gain


@seldom
def best_split(histogram, further, bins, levels, rows, scales, limits, grouping, sums, gains, widest, sides):
    """The best split of a leaf: gain, column, last bin on the left, whether the missing go left (0), right (1) or were
    not seen (-1), and the side with fewer rows.

    sides: (CELLS or more,) becomes the side of each code. sums, gains, widest: scratch as long, the last of columns
    with further bytes alone. further: see `boost`.
    """
    bits, gradients, curvatures = scales
    l2, least_rows, least_curvature = limits
    mask, whole = (np.int64(1) << bits) - 1, np.int64(0)
    for cell in range(CELLS):
        whole += histogram[cell]
    total_h = whole & mask
    g_all, h_all = ((whole - total_h) >> bits) / gradients, total_h / curvatures
    before = g_all * g_all / (h_all + l2)
    least = np.int64(
        np.ceil(min(max(least_rows * (total_h / rows) * (1 - 1e-12), least_curvature * curvatures), 2.0**62))
    )
    steep, bent = 1 / gradients, 1 / curvatures
    best, column, last, missing_to, fewer = 0.0, -1, -1, -1, LEFT
    for j in range(bins.size):
        cells = histogram[j * CELLS : (j + 1) * CELLS]
        if further[1, j]:
            gather_cells(histogram, j, further[0, j], bins[j] + 1, widest)
            cells = widest[: bins[j] + 1]
        gone = cells[bins[j]]
        if levels[j]:
            subset_gain = best_subset(
                cells[: bins[j] + 1], rows, whole, before, best, least, scales, l2, grouping, sums, gains, sides
            )
            if subset_gain > best:
                best, column, last, fewer = subset_gain, j, -1, LEFT
                missing_to = np.int64(sides[bins[j]]) if gone else -1
            continue
        for aside in range(2 if gone else 1):  # the missing to the right, then to the left
            size = bins[j] if gone and not aside else bins[j] - 1
            sum_ = gone if aside else np.int64(0)
            for b in range(size):
                sum_ += cells[np.uintp(b)]
                sums[np.uintp(b)] = sum_
            for b in range(size):
                h = sums[np.uintp(b)] & mask
                g_left, h_left = np.float64((sums[np.uintp(b)] - h) >> bits) * steep, np.float64(h) * bent
                g_right, h_right = g_all - g_left, h_all - h_left
                gain = np.divide(g_left * g_left, h_left + l2) + np.divide(g_right * g_right, h_right + l2)
                gains[np.uintp(b)] = gain if (h >= least) & (total_h - h >= least) else 0.0
            for b in range(size):
                if gains[np.uintp(b)] - before > best:
                    best, column, last = gains[np.uintp(b)] - before, j, b
                    missing_to = (0 if aside else 1) if gone else -1
                    fewer = RIGHT if 2 * (sums[np.uintp(b)] & mask) > total_h else LEFT
    if column >= 0 and not levels[column]:
        for code in range(CELLS):
            sides[code] = RIGHT if code > last else LEFT
        sides[bins[column]] = LEFT if missing_to == 0 else RIGHT
    return best, column, last, missing_to, fewer
