r"""Kernel k-means: k-means in the space that a kernel spans, where clusters need not be round in the columns.

A kernel k(x, y) is the inner product of images φ(x) and φ(y) of two rows. Minimises the weighted squared distances of
the images to the means of their clusters,

    Σᵢ wᵢ ‖φ(xᵢ) − μ(lᵢ)‖²,   ‖φ(x) − μ_C‖² = k(x, x) − 2 Σⱼ wⱼk(x, xⱼ)/M + Σᵢⱼ wᵢwⱼk(xᵢ, xⱼ)/M²

with sums over the rows of the cluster C, of mass M: the images are never needed. All rows go to the nearest mean at
once, and the means follow, until no row changes clusters; no step raises the objective. The lowest one is in general
not found, and the best of several starts is kept. With the linear kernel it is Lloyd's k-means; with the radial basis
function kernel exp(−γ‖x − y‖²), which is the default, γ decides: rows count as near within about 1/√γ. Small γ gives
the clusters of k-means, large γ makes all rows equally far from each other. Lowest objective is no measure of γ: look
at clusters for several, and at more starts for each.
Instead of columns, a square table may give the kernel of every pair of rows; a new row then has its values beside the
training rows. A new row goes to the nearest mean, which needs the training rows: the model keeps them. Equal rows count
as one of their weight. Where the kernel is not positive semidefinite, the fit ends before the objective would rise.

In short: k-means after rows have been bent into another space, in which a ring or a crescent can be one round group.

Use when: clusters are not round, and there are at most some ten thousand rows: time grows with their square. `spectral`
finds such clusters with less dependence on starts.

Two rings, of which k-means takes halves:

>>> import numpy as np
>>> angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
>>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
>>> rings = Data.of(Task.CLUSTERING, np.concatenate([ring, 4 * ring]))
>>> for kernel in "rbf", "linear":
...     params = KernelKMeans(n_clusters=2, kernel=kernel, gamma=0.5)
...     state = fit(params, rings, Context.of(0)).state
...     print(kernel, len({*predict(params, state, ring).tolist()}))
rbf 1
linear 2

References: Schölkopf, Smola & Müller (1998), Neural Comput. 10:1299; Girolami (2002), IEEE Trans. Neural Netw. 13:780;
Dhillon, Guan & Kulis (2004), KDD: 551.
"""

import math
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    Form,
    Labels,
    Matrix,
    Meaning,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.numerics.clustering.kernel_descent import (
    BLOCK,
    Descent,
    Problem,
    descend,
    drawn_labels,
    mean_products,
    spread_labels,
)
from app.ml.numerics.clustering.seeding import canonical_order
from app.ml.numerics.kernel_functions.given_kernel import Given, places
from app.ml.numerics.kernel_functions.kernel_params import KernelParams, gamma_of

AT_ONCE = 2**24
"""Sums that are kept at once, of all clusters for all rows, unless one start has more."""


MOVABLE = {"linear", "rbf", "anova"}
"""Kernels by which distances stay when all rows move: these are counted from their mean, to lose no digits."""


class KernelKMeans(KernelParams):
    """Kernel k-means clustering."""

    n_clusters: int = Field(8, ge=1, le=10_000, description="Number of clusters.")
    init: Literal["greedy-k-means++", "random-partition"] = Field(
        "greedy-k-means++",
        description="Starting partition. `greedy-k-means++`: rows go to the nearest of rows far from each other, each "
        "the best of a few draws; `random-partition`: every row goes to a random cluster.",
    )
    n_init: int = Field(10, ge=1, le=1000, description="Number of starts, of which the best is kept.")
    max_iter: int = Field(300, ge=1, le=100_000, description="Maximum number of moves of the means in each start.")


class State(NamedTuple):
    rows: Matrix
    """(m, d) different training rows, less the origin; (n, 1) their places where the kernel was given."""
    weights: Vector
    """(m,) sum of the weights of equal rows."""
    labels: Labels
    """(m,) their clusters."""
    sizes: Labels
    """(k,) training rows of each cluster."""
    squares: Vector
    """(k,) squared lengths of the means."""
    inertia: float
    gamma: float
    origin: Vector
    """(d,) from which the rows are counted; (0,) where the kernel was given."""


def fit(params: KernelKMeans, data: Data, context: Context) -> Fit[State]:
    state, group = _unfitted(params, data)
    kernel = params.function(state.gamma) if data.square is None else Given(data.square)
    problem = Problem(kernel, state.rows, state.weights)
    best = _best(params, problem, context)
    k = len(best.squares)
    fitted = state._replace(
        labels=best.labels,
        sizes=np.bincount(best.labels[group], minlength=k),
        squares=best.squares,
        inertia=best.inertia[-1],
    )
    few = f"Only {k} clusters have rows, as no more rows differ by this kernel."
    return Fit(
        fitted,
        best.converged,
        len(best.inertia) - 1,
        curves={"inertia": best.inertia},
        warnings=[few] if k < params.n_clusters else [],
    )


def _unfitted(params: KernelKMeans, data: Data) -> tuple[State, Labels]:
    """The state before any clusters, and the place of each training row among its rows."""
    n = len(data.x)
    if data.square is not None:
        return _without_clusters(places(n), data.weights), np.arange(n)
    order = canonical_order(data.x)
    x, weights = data.x[order], data.weights[order]
    new = np.append(True, (x[1:] != x[:-1]).any(axis=1))
    origin = np.average(x, axis=0, weights=weights) if params.kernel in MOVABLE else np.zeros(x.shape[1])
    rows, group = x[new] - origin, np.empty(n, np.intp)
    group[order] = np.cumsum(new) - 1
    summed = np.add.reduceat(weights, np.flatnonzero(new))
    return _without_clusters(rows, summed)._replace(gamma=gamma_of(params, data), origin=origin), group


def _without_clusters(rows: Matrix, weights: Vector) -> State:
    none = np.zeros(0, np.intp)
    return State(rows, weights, none, none, np.zeros(0), 0.0, 1.0, np.zeros(0))


def _best(params: KernelKMeans, problem: Problem, context: Context) -> Descent:
    """The best of all starts, which run together as long as their sums fit."""
    k = min(params.n_clusters, len(problem.x))
    make = drawn_labels
    if params.init == "greedy-k-means++":
        make = partial(spread_labels, candidates=2 + int(math.log(k)))
    best: list[Descent] = []
    step = max(1, AT_ONCE // (len(problem.x) * k))
    for done in range(0, params.n_init, step):
        rngs = context.rng.spawn(min(step, params.n_init - done))
        runs = descend(problem, [make(problem, k, rng) for rng in rngs], params.max_iter)
        best = [min(best + runs, key=lambda run: run.inertia[-1])]
        context.progress((done + len(rngs)) / params.n_init, inertia=best[0].inertia[-1])
    return best[0]


def predict(params: KernelKMeans, state: State, x: Matrix) -> Labels:
    if len(state.origin):
        problem = Problem(params.function(state.gamma), state.rows, state.weights)
        rows = x - state.origin
    else:
        problem, rows = Problem(Given(x.T), state.rows, state.weights), places(len(x))
    labels = np.empty(len(x), np.intp)
    step = max(1, BLOCK // len(state.squares))
    for start in range(0, len(x), step):
        block = slice(start, start + step)
        products = mean_products(problem, state.labels, rows[block])
        labels[block] = (state.squares[:, None] - 2 * products).argmin(axis=0)
    return labels


def summary(params: KernelKMeans, state: State) -> JSON:
    """`gamma` is the one that was used; null where the kernel has none. `inertia`: the objective."""
    used = params.kernel != "linear" and len(state.origin) > 0
    return {
        "sizes": state.sizes.tolist(),
        "inertia": state.inertia,
        "gamma": state.gamma if used else None,
    }


def _memory(params: KernelKMeans, size: Size) -> float:
    cells = min(params.n_clusters, size.rows) * size.rows
    return 24 * cells + 8 * max(cells, min(AT_ONCE, cells * params.n_init))


def _seconds(params: KernelKMeans, size: Size) -> float:
    pair = 1.5e-8 + 1e-8 * params.n_init + 3e-10 * size.columns
    return size.rows**2 * (pair / 5 if params.kernel == "linear" else pair) + 5e-3 * params.n_init


ALGORITHM = Algorithm(
    tasks={Task.CLUSTERING},
    params=KernelKMeans,
    state=State,
    fit=fit,
    predict=predict,
    memory=_memory,
    seconds=_seconds,
    relations={Form.SQUARE: {Meaning.KERNEL}},
    summary=summary,
    breaks={
        Symmetry.SCALE: "A distance gives a column the weight of its unit; scale the columns alike first.",
    },
)
