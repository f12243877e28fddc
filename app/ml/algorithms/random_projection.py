r"""Random projection: a few random directions that keep all distances between rows, up to a stated error.

The map z = Rx has p directions drawn without a look at the rows: `gaussian` entries are normal with variance 1/p, those
of `sparse` are ±√(3/p) with probability 1/6 each, else zero, and `orthonormal` rows are a uniformly random frame times
√(d/p). For every pair of n rows the squared distance then changes by a factor between 1 − ε and 1 + ε,

    with probability at least 1 − n(n − 1) exp(−p(ε²/4 − ε³/6))

over the draw, however many columns there are (Johnson & Lindenstrauss). Without `n_components` p is the smallest number
for which this is at least 1 − `failure_probability` at ε = `eps`, at most d; the report states the ε that is guaranteed
for the training rows, and the factors seen on pairs of them. With p = d an orthonormal map is a rotation, which keeps
all distances exactly, and takes the place of any other.

In short: Each row is described by a few random sums of its columns. Distances between rows are nearly kept, and how
nearly is known beforehand.

Use when: columns are very many, and what comes next works with distances: neighbours, clusters, kernels. It costs one
product and keeps no structure in particular; for the directions that hold most variance take `pca`.

The numbers of directions for a million rows that scikit-learn's manual states, 663 for ε = 0.5 and 11841 for 0.1, hold
with the probability 1/n that some map does it:

>>> [int(directions(10**6, eps, 1 - 1e-6)) for eps in (0.5, 0.1)]
[663, 11841]

References: Johnson & Lindenstrauss (1984), Contemp. Math. 26:189; Dasgupta & Gupta (2003), Random Struct. Algorithms
22:60; Achlioptas (2003), J. Comput. Syst. Sci. 66:671; Battiti & Brunato, The LION Way, ch. 15.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
import scipy
from pydantic import Field

from app.ml.contract.algorithm import JSON, Algorithm, Context, Data, Fit, Matrix, Params, Size, Symmetry, Task
from app.ml.contract.named_numbers import every
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.linear_algebra.solve import near_one

PAIRS = 2000
"""Number of pairs of training rows whose distances are compared."""


class RandomProjection(Params):
    """Random directions that keep distances."""

    n_components: int | None = Field(
        None,
        ge=1,
        le=10_000,
        description="Number of directions, at most one per column; null: as many as `eps` needs for the training rows.",
    )
    eps: float = Field(
        0.5,
        ge=1e-6,
        lt=1,
        description="Largest relative error of squared distances between training rows that the number of directions "
        "is chosen for; without effect beside `n_components`.",
    )
    failure_probability: float = Field(
        0.05,
        ge=1e-100,
        lt=1,
        description="Probability, over the draw of the directions, with which some pair may have a larger error than "
        "the one that is guaranteed.",
    )
    distribution: Literal["gaussian", "sparse", "orthonormal"] = Field(
        "orthonormal",
        description="Distribution of the directions: `gaussian` entries, `sparse` ones of which two thirds are zero, "
        "or `orthonormal` directions times a factor.",
    )


class State(NamedTuple):
    loadings: Matrix
    """(p, d)."""
    guaranteed: float
    """Largest relative error of a squared distance between training rows; NaN: none below 1 is guaranteed."""
    smallest: float
    """Smallest factor by which the squared distance of a pair of training rows changed; NaN: no rows differ."""
    largest: float


def directions(rows: int, eps: float, failure_probability: float) -> float:
    """The number of directions, before rounding up, that keep all squared distances of some rows up to ±eps."""
    return 2 * math.log(max(rows * (rows - 1), 1) / failure_probability) / (eps**2 / 2 - eps**3 / 3)


def fit(params: RandomProjection, data: Data, context: Context) -> Fit[State]:
    n, d = data.x.shape
    wanted = params.n_components or math.ceil(directions(n, params.eps, params.failure_probability))
    p = min(wanted, d)
    loadings = _drawn("orthonormal" if p == d else params.distribution, p, d, context.rng)
    error = 0.0 if p == d else _guaranteed(params, n, p)
    state = State(loadings, error, *_factors(data.x, loadings, context.rng))
    return Fit(state, iterations=1, warnings=_warnings(params, wanted, d, error))


def _drawn(distribution: str, p: int, d: int, rng: np.random.Generator) -> Matrix:
    """(p, d) directions that keep the expected square of a length."""
    if distribution == "sparse":
        return np.asarray(rng.choice([-1.0, 0.0, 1.0], (p, d), p=[1 / 6, 2 / 3, 1 / 6]) * math.sqrt(3 / p))
    normal = rng.normal(size=(p, d))
    if distribution == "gaussian":
        return normal / math.sqrt(p)
    q, triangle = scipy.linalg.qr(normal.T, mode="economic")
    signs = np.where(triangle.diagonal() < 0, -1.0, 1.0)  # uniform only with a positive diagonal (Mezzadri 2007)
    return np.ascontiguousarray((q * signs).T * math.sqrt(d / p))


def _guaranteed(params: RandomProjection, n: int, p: int) -> float:
    """The smallest error that p directions guarantee; NaN if there is none below 1. The bound falls with eps."""

    def missing(eps: float) -> float:
        return directions(n, eps, params.failure_probability) - p

    return float(scipy.optimize.brentq(missing, 1e-6, 1.0)) if missing(1.0) < 0 < missing(1e-6) else math.nan


def _factors(x: Matrix, loadings: Matrix, rng: np.random.Generator) -> tuple[float, float]:
    """The smallest and the largest change of a squared distance, over pairs drawn among the rows."""
    first, second = rng.integers(0, len(x), (2, PAIRS))
    gaps = x[first] - x[second]
    gaps *= near_one(float(np.abs(gaps).max(initial=0.0)))
    before, after = ((part * part).sum(axis=1) for part in (gaps, gaps @ loadings.T))
    differ = before > 0
    factors = after[differ] / before[differ]
    return (float(factors.min()), float(factors.max())) if differ.any() else (math.nan, math.nan)


def _warnings(params: RandomProjection, wanted: int, d: int, error: float) -> list[str]:
    if params.n_components is not None and wanted > d:
        return [f"There are only {d} directions, not {wanted}."]
    if wanted > d:
        return [
            f"An error of {params.eps:g} needs {wanted} directions and there are {d} columns: they are rotated only."
        ]
    few = f"So few directions guarantee no error below 1 with a probability of {1 - params.failure_probability:g}."
    return [few] if math.isnan(error) else []


def predict(params: RandomProjection, state: State, x: Matrix) -> Matrix:
    return x @ state.loadings.T


def inverse(params: RandomProjection, state: State, z: Matrix) -> Matrix:
    """The shortest row with these coordinates."""
    return np.asarray(scipy.linalg.lstsq(state.loadings, z.T)[0].T)


def summary(params: RandomProjection, state: State) -> JSON:
    guaranteed, smallest, largest = (None if math.isnan(value) else value for value in state[1:])
    return {
        "columns": every(state.loadings.shape[1]),
        "loadings": state.loadings.tolist(),
        "guarantee": {
            "largest_error": guaranteed,
            "probability": 1.0 if guaranteed == 0 else 1 - params.failure_probability,
        },
        "observed_factors": {"smallest": smallest, "largest": largest},
    }


def _seconds(params: RandomProjection, size: Size) -> float:
    """The product, and QR of the directions; the distances of some pairs."""
    wanted = params.n_components or directions(round(size.rows), params.eps, params.failure_probability)
    p = min(wanted, size.columns)
    return 4e-4 + 1e-10 * size.cells * p + 2e-10 * size.columns * p * p + 3e-8 * PAIRS * size.columns


def to_tensor(params: RandomProjection, state: State, x: Tensor) -> Tensor:
    return x @ state.loadings.T


ALGORITHM = Algorithm(
    tasks={Task.PROJECTION},
    params=RandomProjection,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    seconds=_seconds,
    inverse=inverse,
    summary=summary,
    breaks={
        Symmetry.SCALE: "distances count in the units of the columns",
        Symmetry.COLUMN_ORDER: "entries are drawn for columns in their order",
    },
)
