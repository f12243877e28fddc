"""The rows of one tree of a sum of trees: their slopes, histograms of these, and the leaf each row is in.

A row's gradient and curvature are whole numbers in one word, `gradient << bits | curvature`, so that a
histogram takes one addition a cell, exactly. The codes of a row lie together, eight columns a word.
"""

import numpy as np

from app.ml.numerics.boosting.compiled.splits import CELLS, LEFT, NEITHER, RIGHT
from app.ml.numerics.jit import inner, kernel, seldom
from app.ml.numerics.trees.compiled.partition import exchange

CHUNK = 256
"""Rows whose codes are gathered at a time: waiting for one row's memory overlaps with waiting for the others'."""


@kernel("Tuple((f8, f8))(f8[::1], f8[:], f8[::1], f8, b1, f8, f4[::1])", writes=["result"])
def gradients_of(predicted, target, weights, scale, numbers, unit, result):
    """The gradient of each row, times `unit`, whatever it weighs, into `result` (n,); the largest of both slopes.

    predicted: (n,) the sum so far for numbers, else the probability of the class; `target` (n,): squared or logistic
    loss.
    """
    steepest, most = 0.0, 0.0
    for i in range(predicted.size):
        result[i] = (predicted[i] - target[i]) * unit
        gradient, bent = slope((result, weights, scale, numbers, result[:0]), i)
        steepest, most = max(steepest, abs(gradient)), max(most, bent)
    return steepest, most


@inner
def slope(slopes, i):
    """Gradient and curvature of row i. The latter is curvature[i] if there are any; else 1 for numbers, and p (1 - p)
    of probabilities: the gradient is p or p - 1.

    Both count times weights[i] · scale, if there are any weights.
    """
    result, weights, scale, numbers, curvature = slopes
    steep, weight = np.float64(result[i]), weights[i] * scale if weights.size else 1.0
    if curvature.size:
        return steep * weight, curvature[i] * weight
    share = abs(steep)
    return steep * weight, weight if numbers else share * (1 - share) * weight


@inner
def add(words, rows, slopes, scales, gathered, held, histogram):
    """These rows, CHUNK at most, into the histogram.

    Where the histogram is twice as long as its cells, rows are counted in the word and their curvatures are summed in
    the second half.
    """
    bits, gradients, curvatures = scales
    width, unit = words.shape[1], np.float64(1)
    twofold = histogram.size > width * 8 * CELLS
    for c in range(rows.size):
        p = np.uintp(c)
        i = np.uintp(rows[p])
        steep, bent = slope(slopes, i)
        if twofold:
            held[p] = (np.int64(np.rint(steep * gradients)) << bits) + 1
            held[p + np.uintp(CHUNK)] = np.int64(np.rint(bent * curvatures))
        else:
            held[p] = (np.int64(np.rint(steep * gradients)) << bits) + np.int64(max(np.rint(bent * curvatures), unit))
        for w in range(width):
            gathered[p, np.uintp(w)] = words[i, np.uintp(w)]
    add_cells(gathered, held[:CHUNK], rows.size, histogram[: width * 8 * CELLS])
    if twofold:
        add_cells(gathered, held[CHUNK:], rows.size, histogram[width * 8 * CELLS :])


@inner
def add_cells(gathered, held, size, histogram):
    """The words of so many rows into the cells of their codes."""
    for w in range(gathered.shape[1]):
        o = np.uintp(w * 8 * CELLS)
        for c in range(size):
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
def part_some(rows, words, codes, j, further, sides, spare, counts, slopes, scales, gathered, held, histogram):
    """Bring the rows of codes whose side is LEFT to the front, stably: how many. spare: as long as `rows`.

    further: where the column's further bytes begin, and how many they are.
    counts: the side, LEFT or RIGHT, whose rows are added to the histogram: they are at hand now.
    """
    left_count, moved, column = np.uintp(0), np.uintp(0), np.uintp(j)
    start, more = further
    for first in range(0, rows.size, CHUNK):
        stay, go = left_count, moved
        for p in range(first, min(first + CHUNK, rows.size)):
            i = rows[np.uintp(p)]
            code = np.uintp(codes[np.uintp(i), column])
            for turn in range(more):
                cell = np.uintp(codes[np.uintp(i), np.uintp(start + turn)])
                if cell < np.uintp(CELLS - 1):
                    code = np.uintp((turn + 1) * (CELLS - 1)) + cell
            right = np.uintp(sides[code])
            spare[moved] = i
            rows[left_count] = i
            moved += right
            left_count += np.uintp(1) - right
        if counts == LEFT:
            add(words, rows[stay:left_count], slopes, scales, gathered, held, histogram)
        elif counts == RIGHT:
            add(words, spare[go:moved], slopes, scales, gathered, held, histogram)
    for p in range(moved):
        rows[left_count + np.uintp(p)] = spare[np.uintp(p)]
    return np.int64(left_count)


@seldom
def part_rows(rows, words, codes, j, further, sides, spare, counts, slopes, scales, gathered, held, histogram):
    """The same of any number of rows: as many at a time as `spare` has room for, and each time those that stay change
    places with those that went before.
    """
    left_count = 0
    if counts != NEITHER:
        empty(histogram)
    for first in range(0, rows.size, spare.size):
        some = rows[first : first + spare.size]
        stay = part_some(
            some, words, codes, j, further, sides, spare, counts, slopes, scales, gathered, held, histogram
        )
        left_count = exchange(rows, left_count, first, stay, spare)
    return left_count


@inner
def chosen(train_mask, rows):
    """The places of the true ones to the front of `rows` (n,): how many."""
    size = np.uintp(0)
    for i in range(rows.size):
        rows[size] = i
        size += np.uintp(train_mask[i])
    return np.int64(size)


@kernel(
    "void(u8[:,::1], i4[::1], f4[::1], f8[::1], f8, b1, f4[::1], i8, f8, f8, i8[::1])",
    writes=["histogram"],
)
def tally_rows(words, rows, result, weights, scale, numbers, curvature, bits, gradients, curvatures, histogram):
    """The histogram (columns × CELLS) of these rows."""
    gathered, held = np.empty((CHUNK, words.shape[1]), np.uint64), np.empty(2 * CHUNK, np.int64)
    slopes, scales = (result, weights, scale, numbers, curvature), (bits, gradients, curvatures)
    tally(words, rows, slopes, scales, gathered, held, histogram)


@kernel(
    "void(i4[::1], u8[:,::1], u1[:,::1], i8, i8, i8, u1[::1], i4[::1], i8, f4[::1], f8[::1], f8, b1, f4[::1], i8, f8,"
    "f8, i8, i8, i8[::1], i8[::1])",
    writes=["rows", "spare", "stays", "histogram"],
)
def part_sections(
    rows,
    words,
    codes,
    j,
    start,
    more,
    sides,
    spare,
    counts,
    result,
    weights,
    scale,
    numbers,
    curvature,
    bits,
    gradients,
    curvatures,
    first,
    step,
    stays,
    histogram,
):
    """`part_some` of every `step`-th section from `first` on, each as long as `spare`: how many rows stay at the front
    of each into `stays`, and the histogram of those that count.
    """
    gathered, held = np.empty((CHUNK, words.shape[1]), np.uint64), np.empty(2 * CHUNK, np.int64)
    slopes, scales = (result, weights, scale, numbers, curvature), (bits, gradients, curvatures)
    further = start, more
    empty(histogram)
    for section in range(first, stays.size, step):
        some = rows[section * spare.size : (section + 1) * spare.size]
        stays[section] = part_some(
            some, words, codes, j, further, sides, spare, counts, slopes, scales, gathered, held, histogram
        )


@kernel("i8(i4[::1], i8[::1], i4[::1])", writes=["rows", "spare"])
def join_sections(rows, stays, spare):
    """Bring the rows that stay, of all sections, to the front: how many."""
    left_count = 0
    for section in range(stays.size):
        left_count = exchange(rows, left_count, section * spare.size, stays[section], spare)
    return left_count


@kernel(
    "void(i4[::1], i8[:,::1], f8[::1], f4[::1], f8[::1], f8, b1, f4[::1], f8, f8, f8[::1])",
    writes=["value"],
)
def leaf_values(rows, leaf_rows, penalties, result, weights, scale, numbers, curvature, step, least_curvature, value):
    """The value of each of these leaves' nodes: minus `step` · G / (H + penalty) of its rows."""
    slopes = result, weights, scale, numbers, curvature
    for leaf in range(leaf_rows.shape[0]):
        g, h = 0.0, 0.0
        for i in rows[leaf_rows[leaf, 1] : leaf_rows[leaf, 2]]:
            gradient, bent = slope(slopes, np.uintp(i))
            g += gradient
            h += bent
        # h is 0 where all are certain
        value[leaf_rows[leaf, 0]] = -step * g / (max(h, least_curvature) + penalties[leaf])


@kernel("void(i4[::1], i8[:,::1], f4[::1], f8[::1], f8, b1, f4[::1], f8[:,::1])", writes=["sums"])
def leaf_sums(rows, leaf_rows, result, weights, scale, numbers, curvature, sums):
    """Gradient and curvature of the rows of each of these leaves, into `sums` (leaves, 2)."""
    slopes = result, weights, scale, numbers, curvature
    for leaf in range(leaf_rows.shape[0]):
        g, h = 0.0, 0.0
        for i in rows[leaf_rows[leaf, 1] : leaf_rows[leaf, 2]]:
            gradient, bent = slope(slopes, np.uintp(i))
            g += gradient
            h += bent
        sums[leaf, 0], sums[leaf, 1] = g, h


@kernel(
    "void(i4[::1], i8[:,::1], f8[::1], f8[::1])",
    "void(i4[::1], i8[:,::1], f8[::1], f4[::1])",
    writes=["raw"],
)
def add_values(rows, leaf_rows, value, raw):
    """Add the value of each leaf's node to `raw` (n,) of its rows."""
    for leaf in range(leaf_rows.shape[0]):
        addend = raw.dtype.type(value[leaf_rows[leaf, 0]])
        for i in rows[leaf_rows[leaf, 1] : leaf_rows[leaf, 2]]:
            raw[np.uintp(i)] += addend
