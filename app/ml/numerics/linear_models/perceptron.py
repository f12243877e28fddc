"""One pass of the perceptron over rows in a given order, compiled.

References: Rosenblatt (1958), Psychol. Rev. 65:386; Crammer & Singer (2003), J. Mach. Learn. Res. 3:951 (many
classes); Freund & Schapire (1999), Mach. Learn. 37:277 (averages).
"""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel


@inner
def _score(row: Vector, coef: Vector, constant: float) -> float:
    """Four sums side by side: the processor need not wait for one addition before it begins the next."""
    d = row.size
    a, b, c, e = coef[d] * constant, 0.0, 0.0, 0.0
    for j in range(0, d - 3, 4):
        a += coef[j] * row[j]
        b += coef[j + 1] * row[j + 1]
        c += coef[j + 2] * row[j + 2]
        e += coef[j + 3] * row[j + 3]
    for j in range(d - d % 4, d):
        a += coef[j] * row[j]
    total: float = (a + b) + (c + e)
    return total


@kernel(
    "i8(f8[:,::1], i8[::1], f8[::1], i8[::1], f8, f8[:,::1], f8[:,::1], i8, i8[::1])",
    writes=["coef", "drift", "counts"],
)
def perceptron_pass(  # noqa: PLR0917 - a kernel takes its arguments by position
    x: Matrix,
    codes: Labels,
    weights: Vector,
    order: Labels,
    constant: float,
    coef: Matrix,
    drift: Matrix,
    rounds: int,
    counts: Labels,
) -> int:
    """Predict, compare, correct: row after row. The number of mistakes; arrays change in place.

    x: (n, d). codes, weights, counts: (n,). order: rows in their turn. coef: (k, d + 1), opposite rows for two classes;
    the last column belongs to the `constant` that every row ends with. A row on which other classes score no less than
    its own is a mistake: its own vector gains weight × row, and these classes' vectors lose it in equal parts. `drift`
    gains each correction times the rounds before it, so that  coef − drift/rounds  is the average over all rounds;
    `counts` the mistakes per row.
    """
    k, d = coef.shape[0], x.shape[1]
    scores = np.empty(k)
    mistakes = 0
    for turn in range(order.size):
        i = order[turn]
        code = codes[i]
        for c in range(1 if k == 2 else 0, k):
            scores[c] = _score(x[i], coef[c], constant)
        if k == 2:
            scores[0] = -scores[1]
        rivals = -1  # the class itself is counted too
        for c in range(k):
            rivals += scores[c] >= scores[code]
        if rivals > 0:
            mistakes += 1
            counts[i] += 1
            for c in range(k):
                if scores[c] >= scores[code]:
                    step = weights[i] if c == code else -weights[i] / rivals
                    for j in range(d):
                        coef[c, j] += step * x[i, j]
                        drift[c, j] += (rounds + turn) * step * x[i, j]
                    coef[c, d] += step * constant
                    drift[c, d] += (rounds + turn) * step * constant
    return mistakes


def unit_planes(weights: Matrix, radius: float) -> Matrix:
    """Weights (k, d + 1) in units of the longest row, its length `radius`, and of the longest of them."""
    largest = np.abs(weights).max()
    if not largest > 0:
        return weights
    return np.asarray(weights / largest / radius / np.linalg.norm(weights / largest, axis=1).max())
