"""Rows that may be among the k nearest, found in single precision, and whether they must hold all of these.

‖x − c‖² = ‖x‖² − 2x·c + ‖c‖² by matrix product, tile after tile of the rows; a tile's scores are merged into the lowest
so far before they leave the cache. A row that is not proposed has a score no lower than the last one that is; where
that is above the k-th by more than both can be off, it is farther than the k-th. Rows beyond ‖x‖ + r, r the distance of
the k-th, are farther anyhow: so the error that counts is that of near rows, and a far row does not spoil it.

Source: Johnson, Douze & Jégou (2021), IEEE Trans. Big Data 7:535.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import kernel

TILE, QUERIES = 512, 256
"""Rows and queries whose scores are in the cache together."""
GROUP = 64
"""Scores looked at in one go for one that is low."""
SPARE = 4
"""Rows proposed beyond the k-th."""
SINGLE = 2.0**-24
"""Rounding of a number of single precision."""
MIN_SINGLE = 1e-36
"""Below this a number of single precision has fewer digits."""

Singles = NDArray[np.float32]


class Screen(NamedTuple):
    """Rows ready for the product: less their mean and times `unit`, so that the largest number is about 1."""

    origin: Vector
    unit: float
    tiles: Singles
    """(t, d + 1, TILE): −2 times the rows, and their squared lengths; infinite where there is no row."""
    rows: int

    @classmethod
    def of(cls, rows: Matrix) -> Self:
        """`unit` is 0 where numbers are too large for it."""
        m, d = rows.shape
        with np.errstate(over="ignore", invalid="ignore"):
            origin = rows.mean(axis=0)
            moved = rows - origin
            largest = np.abs(moved).max(initial=0.0)
        if not 0 < largest < 1e300:
            return cls(origin, 0.0, np.zeros((0, d + 1, TILE), np.float32), m)
        unit = float(2.0 ** -np.ceil(np.log2(largest)))
        moved *= unit
        tiles = np.zeros((-(-m // TILE), d + 1, TILE), np.float32)
        tiles[-1, d] = np.inf
        for t, tile in enumerate(tiles):
            some = moved[t * TILE : (t + 1) * TILE]
            tile[:d, : len(some)] = -2 * some.T
            tile[d, : len(some)] = np.einsum("ij,ij->i", some, some)
        return cls(origin, unit, tiles, m)

    def propose(self, x: Matrix, k: int) -> tuple[Labels, NDArray[np.bool_]]:
        """(n, k + SPARE) rows for each of x (n, d), and whether they are sure to hold the k nearest of more rows."""
        wanted = k + SPARE
        if self.unit == 0 or wanted >= self.rows:
            return np.zeros((len(x), wanted), np.intp), np.zeros(len(x), bool)
        with np.errstate(over="ignore", invalid="ignore"):
            a = (x - self.origin) * self.unit
            places, low = self._lowest(np.column_stack([a, np.ones(len(a))]).astype(np.float32), wanted)
            length = np.sqrt(np.einsum("ij,ij->i", a, a))
            reach = np.sqrt(np.maximum(low[:, k - 1] + length**2, 0.0))
            far = 2 * (length + reach)
            doubt = (a.shape[1] + 8) * SINGLE * far * (far + 2 * length) + MIN_SINGLE
            return places, np.isfinite(low[:, -1]) & (low[:, -1] - low[:, k - 1] > 2.5 * doubt)

    def _lowest(self, queries: Singles, wanted: int) -> tuple[Labels, Matrix]:
        n = len(queries)
        low, places = np.full((n, wanted), np.inf, np.float32), np.zeros((n, wanted), np.int64)
        room = np.empty((min(n, QUERIES), TILE), np.float32)
        for start in range(0, n, QUERIES):
            block = slice(start, min(start + QUERIES, n))
            scores = room[: block.stop - start]
            for t, tile in enumerate(self.tiles):
                np.matmul(queries[block], tile, out=scores)
                merge_lowest(scores, t * TILE, low[block], places[block])
        return places, low.astype(np.float64)


@kernel("void(f4[:,::1], i8, f4[:,::1], i8[:,::1])", writes=["low", "places"])
def merge_lowest(scores: Singles, base: int, low: Singles, places: Labels) -> None:
    """Merge scores (q, m) of the rows from `base` on into the lowest of each query so far, (q, k), lowest first.

    m is a multiple of GROUP. Most groups hold nothing low, which is seen without a branch for each score.
    """
    k = low.shape[1]
    for i in range(scores.shape[0]):
        row = scores[i]
        bound = low[i, k - 1]
        for begin in range(0, row.size, GROUP):
            group = row[begin : begin + GROUP]
            hit = np.uint8(0)
            for j in range(GROUP):
                hit |= np.uint8(group[j] < bound)
            if hit:
                for j in range(GROUP):
                    score = group[j]
                    if score < bound:
                        place = k - 1
                        while place > 0 and low[i, place - 1] > score:
                            low[i, place] = low[i, place - 1]
                            places[i, place] = places[i, place - 1]
                            place -= 1
                        low[i, place] = score
                        places[i, place] = base + begin + j
                        bound = low[i, k - 1]


@kernel("void(f8[:,::1], f8[:,::1], i8[:,::1], f8, f8[:,::1])", writes=["far"])
def minkowski(x: Matrix, rows: Matrix, places: Labels, p: float, far: Matrix) -> None:
    """Distances (q, k) from x (q, d) to `rows[places]`, places (q, k), scaled so that powers stay numbers."""
    for i in range(places.shape[0]):
        for t in range(places.shape[1]):
            row = rows[places[i, t]]
            largest = total = 0.0
            for j in range(row.size):
                gap = abs(x[i, j] - row[j])
                total += gap
                largest = max(largest, gap)
            if p == 1:
                far[i, t] = total
            elif largest == 0 or np.isinf(p) or np.isinf(largest):
                far[i, t] = largest
            else:
                total = 0.0
                for j in range(row.size):
                    share = abs(x[i, j] - row[j]) / largest
                    total += share * share if p == 2 else share**p
                far[i, t] = largest * (np.sqrt(total) if p == 2 else total ** (1 / p))
