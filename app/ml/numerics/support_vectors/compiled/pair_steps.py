"""Steps of sequential minimal optimisation: two coefficients change at a time, chosen by second-order information.

Rows stand at places 0 … m - 1. `up` and `low` hold what is added to a residual to find whether its coefficient may
rise or fall: infinite at a bound, else the slope of ε|β|.
"""

import numpy as np

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.jit import inner, kernel

LANES = 128
"""Places that are compared side by side, so that a processor works on several at once."""
OPTIMAL, NEEDS_ROW, PAUSED = range(3)
ITERATIONS, TICK, WANTED = range(3)
"""Places in `counts`: steps so far, uses of rows so far, the place whose row of the kernel is needed."""


@inner
def place_flags(t: int, coef: Vector, lower: Vector, upper: Vector, epsilon: float, up: Vector, low: Vector) -> None:
    """Set `up` and `low` of a place from its coefficient."""
    up[t] = -np.inf if coef[t] >= upper[t] else (-epsilon if coef[t] >= 0 else epsilon)
    low[t] = np.inf if coef[t] <= lower[t] else (-epsilon if coef[t] > 0 else epsilon)


@kernel("void(f8[::1], f8[::1], f8[::1], f8, f8[::1], f8[::1])", writes=["up", "low"])
def all_flags(coef: Vector, lower: Vector, upper: Vector, epsilon: float, up: Vector, low: Vector) -> None:
    """`place_flags` of all places."""
    for t in range(coef.size):
        place_flags(t, coef, lower, upper, epsilon, up, low)


@inner
def move(
    residual: Vector, up: Vector, low: Vector, first: Vector, second: Vector, step: float, high: Vector, least: Vector
) -> None:
    """Take step·(first - second) from the residuals, and find the highest r + up and least r + low of each lane."""
    high[:] = -np.inf
    least[:] = np.inf
    for start in range(0, residual.size, LANES):
        stop = min(residual.size, start + LANES)
        r, u, v, a, b = residual[start:stop], up[start:stop], low[start:stop], first[start:stop], second[start:stop]
        h, s = high[: stop - start], least[: stop - start]
        for t in range(r.size):
            value = r[t] - step * (a[t] - b[t])
            r[t] = value
            rise, fall = value + u[t], value + v[t]
            h[t] = max(h[t], rise)
            s[t] = min(s[t], fall)


@inner
def partner(
    residual: Vector,
    low: Vector,
    row: Vector,
    diagonal: Vector,
    own_diagonal: float,
    best: float,
    tiny: float,
    gains: Vector,
) -> None:
    """The highest gain of each lane, where the coefficient of the row rises and another one falls."""
    gains[:] = 0.0
    for start in range(0, residual.size, LANES):
        stop = min(residual.size, start + LANES)
        r, v, a, d = residual[start:stop], low[start:stop], row[start:stop], diagonal[start:stop]
        g = gains[: stop - start]
        for t in range(r.size):
            slope = best - (r[t] + v[t])
            slope = slope if slope > 0 else 0.0
            curve = own_diagonal + d[t] - 2 * a[t]
            curve = max(tiny, curve)
            gain = slope * slope / curve
            g[t] = max(g[t], gain)


@inner
def highest(lanes: Vector) -> int:
    """The lane of the highest value, the first on a tie."""
    best_lane = 0
    for t in range(1, lanes.size):
        if lanes[t] > lanes[best_lane]:
            best_lane = t
    return best_lane


@kernel(
    "i8(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8, f8[::1], i8[::1], i8[::1], f8, f8, i8, "
    "i8[::1], f8[::1])",
    writes=["residual", "coef", "up", "low", "used", "counts", "edges"],
)
def pair_steps(
    residual: Vector,
    coef: Vector,
    lower: Vector,
    upper: Vector,
    up: Vector,
    low: Vector,
    diagonal: Vector,
    epsilon: float,
    cache: Vector,
    slots: Labels,
    used: Labels,
    tol: float,
    tiny: float,
    until: int,
    counts: Labels,
    edges: Vector,
) -> int:
    """Steps until the places are optimal, a row of the kernel is missing, or `until` steps are done.

    residual: (m,) z - Kβ. coef: (m,) β. cache: rows of the kernel, (m,) each, one after the other. slots: (m,) where
    the row of each place is in the cache, or -1. used: when a slot was used last. tiny: least curvature. edges:
    (2,) the highest residual whose coefficient may rise, and the least whose may fall.
    """
    m = residual.size
    high, least, gains = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    move(residual, up, low, residual, residual, 0.0, high, least)
    while True:
        lane = highest(high)
        i, best = lane, high[lane]
        for t in range(lane, m, LANES):
            if residual[t] + up[t] == best:
                i = t
                break
        lowest = least[0]
        for t in range(1, LANES):
            lowest = min(lowest, least[t])
        edges[0], edges[1] = best, lowest
        if not best - lowest > tol:
            return OPTIMAL
        if counts[ITERATIONS] >= until:
            return PAUSED
        if slots[i] < 0:
            counts[WANTED] = i
            return NEEDS_ROW
        counts[TICK] += 1
        used[slots[i]] = counts[TICK]
        first = cache[slots[i] * m : (slots[i] + 1) * m]
        own_diagonal = diagonal[i]
        partner(residual, low, first, diagonal, own_diagonal, best, tiny, gains)
        lane = highest(gains)
        j, most = -1, -1.0
        for t in range(lane, m, LANES):
            slope = best - (residual[t] + low[t])
            if slope > 0:
                gain = slope * slope / max(own_diagonal + diagonal[t] - 2 * first[t], tiny)
                if gain > most:
                    j, most = t, gain
        if slots[j] < 0:
            counts[WANTED] = j
            return NEEDS_ROW
        counts[TICK] += 1
        used[slots[j]] = counts[TICK]
        second = cache[slots[j] * m : (slots[j] + 1) * m]
        step = (best - (residual[j] + low[j])) / max(own_diagonal + diagonal[j] - 2 * first[j], tiny)
        # ε|β| bends at 0: a step ends there
        rise, fall = upper[i] if coef[i] >= 0 else 0.0, lower[j] if coef[j] <= 0 else 0.0
        room, space = rise - coef[i], coef[j] - fall
        step = min(step, room, space)
        coef[i] = rise if step >= room else coef[i] + step
        coef[j] = fall if step >= space else coef[j] - step
        place_flags(i, coef, lower, upper, epsilon, up, low)
        place_flags(j, coef, lower, upper, epsilon, up, low)
        move(residual, up, low, first, second, step, high, least)
        counts[ITERATIONS] += 1
