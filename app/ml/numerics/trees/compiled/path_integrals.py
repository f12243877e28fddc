"""Shapley values of rows by the paths of trees, with the integral over the order of players by quadrature.

A leaf of value v gives player i the part v (o - z) ∫ Π f dp over p in (0, 1), the product over the other players j of
its path, of f = p o + (1 - p) z: o is the share of the row that passes the splits of player j, z the share of the
training rows. A product of m - 1 factors is integrated exactly by m/2 nodes of Gauss and Legendre, rounded up. Each
node of a tree is visited once: the products of its leaves are summed on the way back, and divided by a factor there.
Eight rows go through a tree side by side, and a cell is a node of the quadrature of one of them.
"""

import numpy as np

from app.ml.numerics.jit import inner, kernel
from app.ml.numerics.trees.compiled.traversal import step

U = np.uintp
ROWS = 8
"""Rows side by side."""


@kernel(
    "i8(i4[::1], i4[::1], i4[::1], i1[::1], f8[::1], i4[::1],"
    "i8[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], f8[::1], f8[::1], i4[::1])",
    writes=["begin", "node", "level", "player", "previous", "branch", "ratio", "reach", "lanes"],
)
def order_paths(
    root, column, left, missing, share, players, begin, node, level, player, previous, branch, ratio, reach, lanes
):
    """The nodes of each tree, each before those below it, and below it its branches one after the other; how many.

    share: (N,) of its parent's training rows that each node has. players: (d,) of the columns. begin: (T + 1,) where
    the nodes of each tree begin. Of each node: its level, the player of its parent's split, the level of the last node
    above whose parent's split had that player (0: none), its place among the branches, its share, and that of the
    tree's training rows. lanes: (T,) nodes of the quadrature. -1: branches meet again, so that this is no tree.
    """
    waiting, depths = np.empty(column.size + 3, np.int32), np.empty(column.size + 3, np.int32)
    above = np.empty(column.size + 1, np.int32)
    size = 0
    for t in range(root.size):
        begin[t], lanes[t] = size, 1
        waiting[0], depths[0], open_ = root[t], 0, 1
        while open_:
            open_ -= 1
            node_index, depth, here = waiting[open_], depths[open_], size
            if here == node.size or open_ + 3 > waiting.size:
                return -1
            size += 1
            node[here], level[here], above[depth] = node_index, depth, here
            player[here], previous[here], branch[here], ratio[here], reach[here] = -1, 0, 0, 1.0, 1.0
            if depth:
                upper = above[depth - 1]
                own_player, different = players[column[node[upper]]], 1
                player[here], branch[here] = own_player, node_index - left[node[upper]]
                ratio[here], reach[here] = share[node_index], share[node_index] * reach[upper]
                for step_above in range(1, depth):
                    if player[above[step_above]] == own_player:
                        previous[here] = step_above
                    elif previous[above[step_above]] == 0:
                        different += 1
                lanes[t] = max(lanes[t], (different + 1) // 2)
            if column[node_index] >= 0:
                for below in range(3 if missing[node_index] == 2 else 2):
                    waiting[open_], depths[open_] = left[node_index] + below, depth + 1
                    open_ += 1
    begin[root.size] = size
    return size


@inner
def shift(top, depth, before, cells, level_player, gap, inverse, sums, result):
    """Give the players of the levels from `top` up to `depth` their parts, and the sums to the level above each."""
    while top >= depth and top:
        here, there, above, own_player = U(top), U(before[U(top)]), U(top - 1), U(level_player[U(top)])
        for s in range(sums.shape[1]):
            k = U(s)
            for c in range(cells):
                q = U(c)
                value = sums[here, k, q]
                result[own_player, k, q] += value * (
                    gap[here, q] * inverse[here, q] - gap[there, q] * inverse[there, q]
                )
                sums[above, k, q] += value
        top -= 1
    return top


@inner
def enter(here, above, there, cells, ratio, passes, points, share, gap, inverse, product, shown):
    """Fill a level's cells: the share of the row that passes all splits of its player, and the product of factors."""
    z = shown[there] * ratio
    shown[here] = z
    for c in range(cells):
        q = U(c)
        o = share[there, q] * passes[q & U(ROWS - 1)]
        factor = z + points[q] * (o - z)
        share[here, q], gap[here, q] = o, o - z
        product[here, q] = product[above, q] * factor * inverse[there, q]
        inverse[here, q] = 1 / factor if factor > 0 else 0.0


@kernel(
    "void(f8[:,::1], i4[::1], f8[::1], i4[::1], i1[::1], f8[::1], i8[::1], b1[::1], f8[:,::1],"
    "i8[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], f8[::1], i4[::1], f8[:,::1], f8[:,::1], f8[:,:,::1])",
    writes=["out"],
)
def add_path_contributions(
    x,
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
    ratio,
    lanes,
    points,
    weights,
    out,
):
    """Add every tree's contributions for each row of x (n, d) to its part of `out` (n, players, k).

    begin … lanes: as `order_paths` writes them. points, weights: (q, q · ROWS) of quadratures, that of one node first,
    each number once for every row.
    """
    n, k, width, deepest = x.shape[0], values.shape[1], points.shape[1], 1
    for place in range(begin[lanes.size]):
        deepest = max(deepest, level[place] + 1)
    held, gap = np.ones((deepest, width)), np.zeros((deepest, width))
    inverse, product = np.ones((deepest, width)), np.ones((deepest, width))
    sums, shown = np.zeros((deepest, k, width)), np.ones(deepest)
    before, level_player = np.zeros(deepest, np.int64), np.zeros(deepest, np.int64)
    passes = np.empty((deepest, 3, ROWS))
    result = np.empty((out.shape[1], k, width))
    for first in range(0, n, ROWS):
        result[:] = 0.0
        for t in range(lanes.size):
            cells, top = lanes[t] * ROWS, 0
            point, weight = points[lanes[t] - 1], weights[lanes[t] - 1]
            for place in range(begin[t], begin[t + 1]):
                e = U(place)
                depth, node_index = level[e], node[e]
                split, here = column[U(node_index)], U(depth)
                top = shift(top, depth, before, cells, level_player, gap, inverse, sums, result)
                if depth:
                    before[here], level_player[here] = previous[e], player[e]
                    taken = U(branch[e])
                    enter(
                        here,
                        U(depth - 1),
                        U(previous[e]),
                        cells,
                        ratio[e],
                        passes[U(depth - 1), taken],
                        point,
                        held,
                        gap,
                        inverse,
                        product,
                        shown,
                    )
                top = depth
                if split >= 0:
                    for r in range(ROWS):
                        to = step(
                            x[U(min(first + r, n - 1)), U(split)],
                            node_index,
                            split,
                            threshold,
                            left,
                            missing,
                            levels,
                            members,
                        )
                        for b in range(3):
                            passes[here, U(b), U(r)] = 0.0
                        if to < 0:
                            passes[here, U(0), U(r)], passes[here, U(1), U(r)] = (
                                share[node_index],
                                1 - share[node_index],
                            )
                        else:
                            passes[here, U(to - left[node_index]), U(r)] = 1.0
                    for s in range(k):
                        for c in range(cells):
                            sums[here, U(s), U(c)] = 0.0
                else:
                    for s in range(k):
                        value = values[U(left[node_index]), U(s)]
                        for c in range(cells):
                            sums[here, U(s), U(c)] = value * weight[U(c)] * product[here, U(c)]
            shift(top, 1, before, cells, level_player, gap, inverse, sums, result)
        for r in range(min(ROWS, n - first)):
            for j in range(out.shape[1]):
                for s in range(k):
                    for c in range(r, width, ROWS):
                        out[first + r, j, s] += result[j, s, c]
