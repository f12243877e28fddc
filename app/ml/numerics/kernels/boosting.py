"""One tree of a sum of trees: leaf by leaf, the split that gains most first, on histograms of gradients.

A row's gradient and curvature are whole numbers in one word, `gradient << bits | curvature`, so that a histogram takes
one addition a cell, exactly, and that of one child is the difference between its parent's and its sibling's.
Codes come twice: eight columns a word for the histograms, column by column for dealing out rows.

References: Ke et al. (2017), LightGBM, NeurIPS; Shi et al. (2022), Quantized training of GBDT, NeurIPS.
"""

import numpy as np

from app.ml.numerics.compiled import inner, kernel
from app.ml.numerics.kernels.growth import middle

CHUNK = 256
"""Rows whose codes are gathered at a time: waiting for one row's memory overlaps with waiting for the others'."""
CELLS = 256
"""A histogram's places for a column."""


@kernel("void(f8[::1], f8[::1], f8, f8, i8, i8[::1])", writes=["packed"])
def pack(gradient, curvature, gradients, curvatures, bits, packed):
    """Gradient and curvature of each row as words, in units of 1/`gradients` and 1/`curvatures`."""
    for i in range(packed.size):
        steep = np.int64(np.rint(gradient[i] * gradients))
        packed[i] = (steep << bits) + max(np.int64(np.rint(curvature[i] * curvatures)), 1)


@inner
def tally(words, rows, packed, gathered, held, histogram):
    """The histogram (columns × CELLS) of these rows."""
    size = histogram.size
    for cell in range(size):
        histogram[cell] = 0
    width = words.shape[1]
    for first in range(0, rows.size, CHUNK):
        m = min(CHUNK, rows.size - first)
        for c in range(m):
            i = np.uintp(rows[first + c])
            held[np.uintp(c)] = packed[i]
            for w in range(width):
                gathered[np.uintp(c), np.uintp(w)] = words[i, np.uintp(w)]
        for w in range(width):
            o = np.uintp(w * 8 * CELLS)
            for c in range(m):
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
def best_split(histogram, bins, whole, rows, scales, limits):
    """The best split of a leaf: gain, column, last bin on the left, and whether the missing go left (0), right (1) or
    were not seen (-1). Rows of a side are told by its share of the curvature.
    """
    bits, gradients, curvatures = scales
    l2, least_rows, least_curvature = limits
    mask = (np.int64(1) << bits) - 1
    total_h = whole & mask
    total_g = (whole - total_h) >> bits
    g_all, h_all = total_g / gradients, total_h / curvatures
    before = g_all * g_all / (h_all + l2)
    per = rows / max(total_h, 1)
    best, column, last, way = 0.0, -1, -1, -1
    for j in range(bins.size):
        o = j * CELLS
        gone = histogram[o + bins[j]]
        for aside in range(2 if gone else 1):  # the missing to the right, then to the left
            sum_ = gone if aside else np.int64(0)
            for b in range(bins[j] if gone and not aside else bins[j] - 1):
                sum_ += histogram[o + b]
                h = sum_ & mask
                g = (sum_ - h) >> bits
                if h * per < least_rows:
                    continue
                if (total_h - h) * per < least_rows:
                    break
                g_left, h_left = g / gradients, h / curvatures
                g_right, h_right = g_all - g_left, h_all - h_left
                if h_left < least_curvature:
                    continue
                if h_right < least_curvature:
                    break
                gain = g_left * g_left / (h_left + l2) + g_right * g_right / (h_right + l2) - before
                if gain > best:
                    best, column, last = gain, j, b
                    way = (0 if aside else 1) if gone else -1
    return best, column, last, way


@inner
def part_rows(rows, code, last, lost, aside, spare):
    """Bring the rows that go left to the front, stably: how many. Missing ones, of code `lost`, go left if `aside`."""
    kept, moved = np.uintp(0), np.uintp(0)
    for p in range(rows.size):
        i = rows[np.uintp(p)]
        c = code[np.uintp(i)]
        right = np.uintp((c > last) & ((c != lost) | (not aside)))
        spare[moved] = i
        rows[kept] = i
        moved += right
        kept += np.uintp(1) - right
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


@kernel(
    "i8(u8[:,::1], u1[:,::1], i8[::1], i8[::1], f8[::1], f8[::1], i4[::1], i4[::1], i8[::1], i8[:,::1],"
    "f8[::1], f8[::1], i8, f8, f8, f8, f8, f8, f8, i8, i8, f8[::1],"
    "i4[::1], f8[::1], i4[::1], i1[::1], f8[::1], f8[::1], f8[::1])",
    writes=["rows", "spare", "pool", "raw", "column", "threshold", "left", "missing", "share", "value", "gain"],
)
def boost(
    words,
    codes,
    bins,
    start,
    low,
    high,
    rows,
    spare,
    packed,
    pool,
    gradient,
    curvature,
    bits,
    gradients,
    curvatures,
    l2,
    least_rows,
    least_curvature,
    rate,
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
):
    """Grow one tree, add its answers to `raw` (n,) of the rows it grew from, and return how many nodes it has.

    pool: (leaves + 1, cells) scratch for histograms; with 2 rows only, none is kept and both children are counted.
    """
    width = words.shape[1]
    gathered, held = np.empty((CHUNK, width), np.uint64), np.empty(CHUNK, np.int64)
    begin, end, depth = np.empty(max_leaves, np.int64), np.empty(max_leaves, np.int64), np.empty(max_leaves, np.int64)
    node, plan = np.empty(max_leaves, np.int64), np.empty((max_leaves, 3), np.int64)
    lead, kept = np.zeros(max_leaves), pool.shape[0] > 2
    scales, limits = (bits, gradients, curvatures), (l2, least_rows, least_curvature)
    begin[0], end[0], depth[0], node[0], leaves, nodes = 0, rows.size, 0, 0, 1, 1
    column[0], gain[0], missing[0], threshold[0], share[0], value[0] = -1, 0.0, -1, 0.0, 1.0, 0.0
    older, younger = 0, -1
    while True:
        if kept and younger >= 0:
            small = older if end[older] - begin[older] <= end[younger] - begin[younger] else younger
            fresh = pool[max_leaves]
            tally(words, rows[begin[small] : end[small]], packed, gathered, held, fresh)
            one, other = pool[small], pool[older + younger - small]
            parent = pool[older]
            for cell in range(fresh.size):
                count = fresh[cell]
                rest = parent[cell] - count
                one[cell], other[cell] = count, rest
        for side in range(2):
            leaf = older if side == 0 else younger
            if leaf < 0:
                continue
            lead[leaf] = 0.0
            size = end[leaf] - begin[leaf]
            histogram = pool[leaf] if kept else pool[0]
            if not kept or younger < 0:
                tally(words, rows[begin[leaf] : end[leaf]], packed, gathered, held, histogram)
            if depth[leaf] >= max_depth or size < 2 * least_rows or max_leaves < 2:
                continue
            whole = np.int64(0)
            for cell in range(CELLS):
                whole += histogram[cell]
            lead[leaf], plan[leaf, 0], plan[leaf, 1], plan[leaf, 2] = best_split(
                histogram, bins, whole, size, scales, limits
            )
        older = leading(lead, leaves)
        if lead[older] <= 0 or leaves == max_leaves:
            break
        j, last, way = plan[older, 0], plan[older, 1], plan[older, 2]
        lo, hi = begin[older], end[older]
        cut = lo + part_rows(rows[lo:hi], codes[j], last, bins[j], way == 0, spare)
        at = node[older]
        column[at], left[at], missing[at], gain[at] = j, nodes, way, lead[older]
        share[at] = (cut - lo) / (hi - lo)
        threshold[at] = np.inf if last + 1 >= bins[j] else middle(high[start[j] + last], low[start[j] + last + 1])
        younger = leaves
        leaves += 1
        begin[younger], end[younger], end[older] = cut, hi, cut
        depth[older] += 1
        depth[younger] = depth[older]
        node[older], node[younger] = nodes, nodes + 1
        for fresh_node in range(nodes, nodes + 2):
            column[fresh_node], gain[fresh_node], missing[fresh_node] = -1, 0.0, -1
            threshold[fresh_node], share[fresh_node], value[fresh_node] = 0.0, 1.0, 0.0
        nodes += 2
        lead[older] = lead[younger] = 0.0
        if leaves == max_leaves:
            break
    for leaf in range(leaves):
        g, h = 0.0, 0.0
        for i in rows[begin[leaf] : end[leaf]]:
            g += gradient[i]
            h += curvature[i]
        answer = -rate * g / (h + l2)
        value[node[leaf]] = answer
        left[node[leaf]] = node[leaf]
        for i in rows[begin[leaf] : end[leaf]]:
            raw[i] += answer
    return nodes
