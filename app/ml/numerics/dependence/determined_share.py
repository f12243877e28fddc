"""Share of a target that one column determines, by the targets of rows that are next to each other in the column.

With the rows in order of the column,

    1 − Σ (yᵢ₊₁ − yᵢ)² / 2 / Σ Var y

estimates 1 − E Var(y | x) / Var y: 1 where the target is a function of the column, whichever function, and about 0
where it is independent. Classes differ by 1 or not at all, as if each were a column of its own. Rows of equal values
come in random order, and the mean over `TIE_ORDERS` of these is taken. Categories are compared within a category only,
and one that a single row has determines nothing. A missing value is a value of its own. Sorts of the rows: O(n log n).

Reference: Chatterjee (2021), Journal of the American Statistical Association 116:2009, whose coefficient has absolute
differences of ranks; squared ones are those of von Neumann (1941), Annals of Mathematical Statistics 12:367.
"""

import math

import numpy as np

from app.ml.contract.algorithm import Vector

TIE_ORDERS = 4
"""Random orders of rows with equal values."""


def determined_share(x: Vector, y: Vector, rng: np.random.Generator, *, categories: bool, classes: bool) -> float:
    """The share for a column x (n,), NaN where missing, and a full target y (n,) of numbers or class codes.

    categories, classes: whether x, and y, holds codes without an order. NaN where y is constant or no two rows can be
    compared.
    """
    variance = _variance(y, classes=classes)
    values = np.sort(x)
    same = (values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1]))
    compared = same if categories else same | ~np.isnan(values[1:])
    alone = int((np.append(True, ~same) & np.append(~same, True)).sum()) if categories else 0
    rows = int(compared.sum()) + alone
    if variance == 0 or rows == 0:
        return math.nan
    differences = []
    for _ in range(TIE_ORDERS if same.any() else 1):
        target = y[np.lexsort((rng.random(x.size), x))]
        steps = target[1:] != target[:-1] if classes else (target[1:] - target[:-1]) ** 2
        differences.append(float(steps[compared].sum()) / 2)
    return 1 - (sum(differences) / len(differences) + alone * variance) / (rows * variance)


def _variance(y: Vector, *, classes: bool) -> float:
    """Half the mean square of the difference of two rows."""
    if not classes:
        return float(np.var(y))
    shares = np.bincount(y.astype(np.intp)) / y.size
    return float(1 - shares @ shares) / 2
