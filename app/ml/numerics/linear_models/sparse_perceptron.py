"""One pass of the perceptron over sparse rows in a given order, compiled: time follows the numbers that are not 0.

References: those of `app.ml.numerics.linear_models.perceptron`.
"""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.sparse_rows import SparseRows
from app.ml.numerics.jit import kernel


def sparse_perceptron_pass(  # noqa: PLR0917 - as `perceptron_pass`
    x: SparseRows,
    codes: Labels,
    weights: Vector,
    order: Labels,
    constant: float,
    coef: Matrix,
    drift: Matrix,
    rounds: int,
    counts: Labels,
) -> int:
    """`perceptron_pass` of sparse rows."""
    columns, ends = x.csr.indices.astype(np.int32, copy=False), x.csr.indptr.astype(np.int64, copy=False)
    return _pass(x.csr.data, columns, ends, codes, weights, order, constant, coef, drift, rounds, counts)


@kernel(
    "i8(f8[::1], i4[::1], i8[::1], i8[::1], f8[::1], i8[::1], f8, f8[:,::1], f8[:,::1], i8, i8[::1])",
    writes=["coef", "drift", "counts"],
)
def _pass(  # noqa: PLR0917 - a kernel takes its arguments by position
    values: Vector,
    columns: Labels,
    ends: Labels,
    codes: Labels,
    weights: Vector,
    order: Labels,
    constant: float,
    coef: Matrix,
    drift: Matrix,
    rounds: int,
    counts: Labels,
) -> int:
    """values, columns: (m,) numbers that are not 0. ends: (n + 1,) where the rows begin and end among them."""
    k, d = coef.shape[0], coef.shape[1] - 1
    scores = np.empty(k)
    mistakes = 0
    for turn in range(order.size):
        i = order[turn]
        code = codes[i]
        for c in range(1 if k == 2 else 0, k):
            scores[c] = coef[c, d] * constant
            for entry in range(ends[i], ends[i + 1]):
                scores[c] += coef[c, columns[entry]] * values[entry]
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
                    for entry in range(ends[i], ends[i + 1]):
                        coef[c, columns[entry]] += step * values[entry]
                        drift[c, columns[entry]] += (rounds + turn) * step * values[entry]
                    coef[c, d] += step * constant
                    drift[c, d] += (rounds + turn) * step * constant
    return mistakes
