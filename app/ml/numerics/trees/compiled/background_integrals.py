"""Shapley values of rows by the paths of trees, where absent columns have the values of background rows.

The sums are those of `app.ml.numerics.trees.compiled.path_integrals`, with the share of a background row that passes
the splits of a player in place of that of the training rows. Eight background rows go through a tree side by side.
"""

import numpy as np

from app.ml.numerics.jit import inner, kernel
from app.ml.numerics.trees.compiled.path_integrals import ROWS, U, shift
from app.ml.numerics.trees.compiled.traversal import step


@inner
def take_branches(row, node, here, lane, passes, column, threshold, left, missing, share, levels, members):
    """Write the share of a row that takes each branch of a split, of one lane."""
    for branch in range(3):
        passes[here, U(branch), lane] = 0.0
    to = step(row[U(column[node])], node, column[node], threshold, left, missing, levels, members)
    if to < 0:
        passes[here, U(0), lane], passes[here, U(1), lane] = share[node], 1 - share[node]
    else:
        passes[here, U(to - left[node]), lane] = 1.0


@inner
def enter_both(here, above, there, cells, own_weights, other, points, held, shown, gap, inverse, product):
    """Fill a level's cells: the shares of both rows that pass all splits of its player, and the product of factors.

    False if neither row of any pair gets there.
    """
    alive = False
    for c in range(cells):
        q = U(c)
        lane = q & U(ROWS - 1)
        o, z = held[there, q] * own_weights[U(0)], shown[there, q] * other[lane]
        factor = z + points[q] * (o - z)
        held[here, q], shown[here, q], gap[here, q] = o, z, o - z
        product[here, q] = product[above, q] * factor * inverse[there, q]
        inverse[here, q] = 1 / factor if factor > 0 else 0.0
        alive |= product[here, q] > 0
    return alive


@kernel(
    "void(f8[:,::1], f8[:,::1], i4[::1], f8[::1], i4[::1], i1[::1], f8[::1], i8[::1], b1[::1], f8[:,::1],"
    "i8[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], f8[:,::1], f8[:,::1], f8[:,:,::1])",
    writes=["out"],
)
def add_background_contributions(
    x,
    background,
    column,
    threshold,
    left,
    missing,
    share,
    levels,
    members,
    values,
    begin,
    node,
    level,
    player,
    previous,
    branch,
    lanes,
    points,
    weights,
    out,
):
    """Add every tree's contributions for each row of x (n, d) to its part of `out` (n, players, k): their sum over
    the rows of `background` (m, d).

    The other arguments are those of `add_path_contributions`.
    """
    m, k, width, deepest = background.shape[0], values.shape[1], points.shape[1], 1
    for place in range(begin[lanes.size]):
        deepest = max(deepest, level[place] + 1)
    held, shown, gap = np.ones((deepest, width)), np.ones((deepest, width)), np.zeros((deepest, width))
    inverse, product = np.ones((deepest, width)), np.ones((deepest, width))
    sums, result = np.zeros((deepest, k, width)), np.empty((out.shape[1], k, width))
    before, level_player = np.zeros(deepest, np.int64), np.zeros(deepest, np.int64)
    passes, taken = np.empty((deepest, 3, ROWS)), np.empty((deepest, 3, 1))
    for i in range(x.shape[0]):
        for first in range(0, m, ROWS):
            result[:] = 0.0
            for t in range(lanes.size):
                cells, top, place, last = lanes[t] * ROWS, 0, begin[t], begin[t + 1]
                point, weight = points[lanes[t] - 1], weights[lanes[t] - 1]
                while place < last:
                    e = U(place)
                    depth, node_index = level[e], node[e]
                    here, a = U(depth), U(node_index)
                    top = shift(top, depth, before, cells, level_player, gap, inverse, sums, result)
                    place += 1
                    if depth:
                        before[here], level_player[here] = previous[e], player[e]
                        above, side = U(depth - 1), U(branch[e])
                        alive = enter_both(
                            here,
                            above,
                            U(previous[e]),
                            cells,
                            taken[above, side],
                            passes[above, side],
                            point,
                            held,
                            shown,
                            gap,
                            inverse,
                            product,
                        )
                        if not alive:
                            while place < last and level[U(place)] > depth:
                                place += 1
                            continue
                    top = depth
                    if column[a] >= 0:
                        take_branches(
                            x[i],
                            node_index,
                            here,
                            U(0),
                            taken,
                            column,
                            threshold,
                            left,
                            missing,
                            share,
                            levels,
                            members,
                        )
                        for r in range(ROWS):
                            take_branches(
                                background[min(first + r, m - 1)],
                                node_index,
                                here,
                                U(r),
                                passes,
                                column,
                                threshold,
                                left,
                                missing,
                                share,
                                levels,
                                members,
                            )
                        for s in range(k):
                            for c in range(cells):
                                sums[here, U(s), U(c)] = 0.0
                    else:
                        for s in range(k):
                            value = values[U(left[a]), U(s)]
                            for c in range(cells):
                                sums[here, U(s), U(c)] = value * weight[U(c)] * product[here, U(c)]
                shift(top, 1, before, cells, level_player, gap, inverse, sums, result)
            for r in range(min(ROWS, m - first)):
                for j in range(out.shape[1]):
                    for s in range(k):
                        for c in range(r, width, ROWS):
                            out[i, j, s] += result[j, s, c]
