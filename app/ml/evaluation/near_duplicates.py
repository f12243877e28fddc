r"""Rows that are another row but for a little noise: copies that no comparison of equal cells sees.

Such a row lies far nearer to one other row than to any further one, and has its target. Around a point of a density in
d dimensions the distances r₁ and r₅ of the nearest and the fifth row have P(r₁ < a r₅) = 1 − (1 − aᵈ)⁴, whatever the
density and the units: with `NEARNESS` for a, below one in ten thousand rows for two dimensions and 2 % for one.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.neighbours.nearest import neighbours

NEARNESS = 0.005
"""Largest distance of a near duplicate, as a share of that of the fifth row."""
MIN_SHARE, MIN_COUNT = 0.05, 5
"""Near duplicates from which on there is a warning."""
SAME_TARGET = 0.01
"""Largest difference of the targets of near duplicates, in standard deviations."""
MAX_ROWS, MAX_OTHERS = 1000, 20_000
MIN_FINE_COLUMNS, MIN_DISTINCT = 2, 20
"""Columns with more than so many different values, without which nothing is found."""
FIFTH = 5


class NearDuplicates(NamedTuple):
    rows: int
    """Rows with a near duplicate."""
    compared: int

    @property
    def is_notable(self) -> bool:
        return self.rows >= max(MIN_COUNT, MIN_SHARE * self.compared)


def near_duplicates(x: Matrix, y: Vector, rng: np.random.Generator, *, classes: bool) -> NearDuplicates | None:
    """Near duplicates of some of the rows x (n, p) with targets y (n,), each column in about the same units.

    None where they cannot be distinguished from rows that merely lie near: of too few rows, or too few columns with
    many values. Of more than `MAX_OTHERS` rows a sample is looked at.
    """
    if y.size > MAX_OTHERS:
        sample = np.sort(rng.choice(y.size, MAX_OTHERS, replace=False))
        x, y = x[sample], y[sample]
    fine = sum(np.unique(column).size > MIN_DISTINCT for column in x.T)
    if y.size <= 2 * FIFTH or fine < MIN_FINE_COLUMNS:
        return None
    chosen = rng.permutation(y.size)[:MAX_ROWS]
    places, distances = neighbours(x[chosen], x, FIFTH + 1)
    others = places != chosen[:, None]
    others[others.all(axis=1), -1] = False  # more equal rows than neighbours: the row itself is not among them
    far, near = distances[others].reshape(chosen.size, FIFTH), places[others].reshape(chosen.size, FIFTH)[:, 0]
    difference = np.abs(y[chosen] - y[near])
    same = difference == 0 if classes else difference <= SAME_TARGET * np.std(y)
    is_near = (far[:, 0] > 0) & (far[:, 0] < NEARNESS * far[:, -1]) & same
    return NearDuplicates(int(is_near.sum()), chosen.size)
