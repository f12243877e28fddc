r"""Isotonic regression: the ascending function with the least squared error, by pooling adjacent violators.

Minimises  Σ wᵢ (yᵢ − f(xᵢ))²  over all f that never fall. Rows with equal x are one row of their mean. Neighbours whose
means are in the wrong order are pooled into a block of their common mean, until all are in order: the exact minimum,
with at most one merge for every row. Between blocks f is linear, and beyond the rows it is constant. Equivalent to
`sklearn.isotonic.IsotonicRegression(out_of_bounds="clip")`.

References: Ayer et al. (1955), Ann. Math. Statist. 26:641; Best & Chakravarti (1990), Math. Programming 47:425.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector


class Blocks(NamedTuple):
    """Runs of neighbours with one value; b of them."""

    values: Vector
    """(b,) strictly ascending."""
    ends: Labels
    """(b,) the place behind the last of each."""


def isotonic(x: Vector, y: Vector, weights: Vector) -> Matrix:
    """(m, 2) knots of the function: x, strictly ascending, and its value."""
    places, group = np.unique(x, return_inverse=True)
    sums, masses = (np.bincount(group, values).astype(np.float64) for values in (weights * y, weights))
    blocks = pooled(sums, masses)
    first, last = np.append(0, blocks.ends[:-1]), blocks.ends - 1
    rows = np.unique(np.concatenate([first, last]))
    block = np.searchsorted(blocks.ends, rows, side="right")
    return np.column_stack([places[rows], blocks.values[block]])


def pooled(sums: Vector, masses: Vector) -> Blocks:
    """The blocks of rows in order, each a sum of weighted targets (n,) and the mass (n,) of its weights."""
    totals, weights, ends = list[float](), list[float](), list[int]()
    for end, (total, mass) in enumerate(zip(sums.tolist(), masses.tolist(), strict=True), 1):
        while totals and totals[-1] * mass >= total * weights[-1]:
            total += totals.pop()  # noqa: PLW2901  the block that ends here grows
            mass += weights.pop()  # noqa: PLW2901
            ends.pop()
        totals.append(total)
        weights.append(mass)
        ends.append(end)
    return Blocks(np.array(totals) / np.array(weights), np.array(ends, np.intp))
