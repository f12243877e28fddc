"""A pass of dual coordinate descent over sparse rows: each coefficient in turn takes the value that is best for it.

Reference: Hsieh et al. (2008), A dual coordinate descent method for large-scale linear SVM, ICML: 408.
"""

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.jit import kernel


@kernel(
    "void(f8[::1], i4[::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8, i8[::1], f8[::1], f8[::1], f8[::1])",
    writes=["coef", "weights", "slopes"],
)
def coordinate_steps(
    values: Vector,
    columns: Labels,
    ends: Labels,
    linear: Vector,
    lower: Vector,
    upper: Vector,
    diagonal: Vector,
    sigma: float,
    order: Labels,
    coef: Vector,
    weights: Vector,
    slopes: Vector,
) -> None:
    """Steps on ½‖Xᵀβ‖² − zᵀβ + ½σ(Σβ)² within the bounds, for the rows in `order`.

    values, columns: (m,) numbers of X that are not 0. ends: (n + 1,) where its rows begin and end among them. linear:
    (n,) z. diagonal: (n,) squared lengths of the rows. coef: (n,) β. weights: (d + 1,) Xᵀβ and Σβ. slopes: (n,) the
    slope that each row met.
    """
    total = weights.size - 1
    for turn in range(order.size):
        i = order[turn]
        slope = sigma * weights[total] - linear[i]
        for entry in range(ends[i], ends[i + 1]):
            slope += weights[columns[entry]] * values[entry]
        slopes[i] = slope
        curve = diagonal[i] + sigma
        wanted = coef[i] - slope / curve if curve > 0 else coef[i]
        wanted = min(max(wanted, lower[i]), upper[i])
        step = wanted - coef[i]
        if step != 0:
            coef[i] = wanted
            for entry in range(ends[i], ends[i + 1]):
                weights[columns[entry]] += step * values[entry]
            weights[total] += step
