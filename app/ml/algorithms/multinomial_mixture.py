r"""Multinomial mixture: rows of counts come from several topics, each with its own shares of the columns.

A row counts things by kind, as a text counts its words: x_j of column j. Its component k is drawn with probability πₖ,
then each of its things is of kind j with probability θₖⱼ. Given how many there are, the probability of the counts is
Σₖ πₖ (Σⱼ xⱼ)! ∏ⱼ θₖⱼ^xⱼ / xⱼ!, so that long and short rows of like composition are alike. EM makes the training rows
more likely with each step: the responsibility hᵢₖ of component k for row i is its share in this sum; then πₖ is the
mean of hᵢₖ, and θₖⱼ in proportion to α + Σᵢ hᵢₖ xᵢⱼ. The objective is the likelihood times the Dirichlet prior of
`alpha`, and never falls. Starts are k-means clusters of the roots of the rows' shares; of `n_init` starts the best is
kept.

Counts are numbers from 0 on; they are not scaled, whatever the default of the preparation. Fractions, as of weighted or
imputed counts, are taken as they are.

In short: Every row counts things by kind. Components differ in the shares of the kinds, and a row belongs to each of
them with a probability.

Use when: columns are counts, as of words, species or purchases, and groups by composition are wanted.

Two topics, and a row that has a word of each:

>>> rows = np.array([[5.0, 1, 0], [8, 2, 0], [0, 1, 6], [0, 2, 9]])
>>> params = MultinomialMixture(n_components=2, alpha=0)
>>> state = fit(params, Data.of(Task.CLUSTERING, rows), Context.of(0)).state
>>> np.sort(state.profiles[:, 0]).tolist(), predict(params, state, rows[[0, 1]]).tolist().count(1) in {0, 2}
([0.0, 0.8125], True)

References: Nigam, McCallum, Thrun & Mitchell (2000), Mach. Learn. 39:103; Bishop (2006), Pattern Recognition and
Machine Learning, section 9.3.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.base.errors import InvalidData
from app.ml.contract.algorithm import (
    JSON,
    Accepts,
    Algorithm,
    Context,
    Data,
    Fit,
    Labels,
    Matrix,
    Output,
    Params,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.sparse_rows import columns_where, mapped, row_totals, sparse
from app.ml.numerics.clustering.lloyd import lloyd
from app.ml.numerics.clustering.seeding import canonical_order, seeds
from app.ml.numerics.density import topics as mixture
from app.ml.numerics.density.topics import Options, Run, Topics

MOVES = 30
"""Moves of the centres of k-means at a start."""
TIE = 1e-9
"""Starts that differ by less, for a row, reached the same: the first of them counts."""
SKETCH = 64
"""Coordinates of the projection in which starts of sparse rows are found."""
MAX_REPORTED_COLUMNS = 50
"""Columns of a profile in the report, those of the largest probabilities."""


class MultinomialMixture(Params):
    n_components: int = Field(8, ge=1, le=1000, description="Number of components.")
    alpha: float = Field(
        0.01,
        ge=0,
        le=1e6,
        description="Count that is added to each column in each component, so that no probability is 0 (Dirichlet "
        "prior); 0 is the maximum of the likelihood.",
    )
    n_init: int = Field(3, ge=1, le=1000, description="Number of starts, of which the best is kept.")
    max_iter: int = Field(200, ge=1, le=100_000, description="Maximum number of EM steps of each start.")
    tol: float = Field(1e-6, ge=0, le=1, description="Stop when a step raises the objective for a row by less.")


class State(NamedTuple):
    shares: Vector
    """(k,)"""
    profiles: Matrix
    """(k, d) probabilities of the columns."""
    means: Matrix
    """(k, d) mean counts of the rows of each component."""
    starts: Vector
    """Objective for a row that each start reached."""


def fit(params: MultinomialMixture, data: Data, context: Context) -> Fit[State]:
    _check(data)
    order = canonical_order(_points(data.x, np.random.Generator(np.random.PCG64(SKETCH))))
    x, weights = data.x[order], data.weights[order]
    options = Options(params.alpha, params.max_iter, params.tol)
    drawn = context.rng.integers(2**63, size=params.n_init).tolist()
    tasks = [partial(_run, x, weights, params.n_components, options, seed) for seed in drawn]
    best, reached = None, []
    for run in context.each(Run, tasks):
        reached.append(float(run.curve[-1]))
        if best is None or run.curve[-1] > best.curve[-1] + TIE * abs(best.curve[-1]):
            best = run
        context.progress(len(reached) / params.n_init, objective=float(best.curve[-1]))
    assert best is not None  # noqa: S101 - there is at least one start
    state = State(*best.topics, best.means, np.array(reached))
    curves = {"objective": best.curve.tolist()}
    return Fit(state, best.converged, len(best.curve) - 1, curves, _warnings(params, data, state))


def _check(data: Data) -> None:
    """Raises InvalidData for numbers below 0."""
    below = columns_where(data.x, lambda values: values < 0)
    if below.size:
        raise InvalidData(f"Counts are numbers from 0 on; these columns have others: {_named(data, below)}.")


def _warnings(params: MultinomialMixture, data: Data, state: State) -> list[str]:
    k, warnings = len(state.shares), []
    fractions = columns_where(data.x, lambda values: values != np.floor(values))
    if fractions.size:
        warnings.append(f"These columns hold fractions, which are taken for counts: {_named(data, fractions)}.")
    if k < params.n_components:
        warnings.append(f"Only {k} rows differ in the shares of their columns, so there are {k} components.")
    return warnings


def _named(data: Data, columns: Labels) -> str:
    return ", ".join(repr(data.names[j]) if data.names else str(j) for j in columns[:5])


def _run(x: Matrix, weights: Vector, k: int, options: Options, seed: int) -> Run:
    """EM from the clusters of the roots of the rows' shares, by which few counts differ less than by shares."""
    rng = np.random.Generator(np.random.PCG64(seed))
    points = _points(_roots(x), rng)
    first = seeds(points, weights, k, rng, candidates=2 + int(math.log(k)))
    labels = lloyd(points, weights, points[first], MOVES).labels
    start = mixture.of_labels(x, weights, labels, int(labels.max()) + 1, options.alpha)
    return mixture.em(x, weights, start, options)


def _roots(x: Matrix) -> Matrix:
    """Square roots of the shares of the columns in each row."""
    totals = row_totals(x)
    if (rows := sparse(x)) is not None:
        per_row = totals[rows.row_numbers()]
        return mapped(
            x, lambda counts: np.sqrt(np.divide(counts, per_row, out=np.zeros_like(counts), where=per_row > 0))
        )
    per_row = totals[:, None]
    return np.sqrt(np.divide(x, per_row, out=np.zeros_like(x), where=per_row > 0))


def _points(x: Matrix, rng: np.random.Generator) -> Matrix:
    """The rows; of sparse ones random projections, which keep their distances nearly (Johnson & Lindenstrauss)."""
    if sparse(x) is None:
        return x
    return x @ (rng.standard_normal((x.shape[1], SKETCH)) / math.sqrt(SKETCH))


def _joint(state: State, x: Matrix) -> Matrix:
    return mixture.log_joint(Topics(state.shares, state.profiles), mapped(x, _held))


def predict(params: MultinomialMixture, state: State, x: Matrix) -> Labels:
    labels: Labels = _joint(state, x).argmax(axis=1)
    return labels


def memberships(params: MultinomialMixture, state: State, x: Matrix) -> Matrix:
    return mixture.memberships(_joint(state, x))


def log_density(params: MultinomialMixture, state: State, x: Matrix) -> Vector:
    """(n,) numbers below 0 count as 0, as in predictions."""
    return mixture.log_sum(_joint(state, x)) + mixture.log_coefficient(mapped(x, _held))


def _held(values: Matrix) -> Matrix:
    return np.maximum(values, 0.0)


def free_parameters(params: MultinomialMixture, state: State) -> float:
    k, d = state.profiles.shape
    return float(k - 1 + k * (d - 1))


def summary(params: MultinomialMixture, state: State) -> JSON:
    """Columns by number, those of the largest probabilities first."""
    return {
        "components": [
            {"component": j, "share": float(share), "columns": top.tolist(), "probabilities": profile[top].tolist()}
            for j, (share, profile) in enumerate(zip(state.shares, state.profiles, strict=True))
            for top in [np.argsort(-profile, kind="stable")[:MAX_REPORTED_COLUMNS]]
        ],
        "starts": state.starts.tolist(),
        "free_parameters": free_parameters(params, state),
    }


def terms(_params: MultinomialMixture, state: State) -> Matrix:
    """(d, k) logarithm of the probability of a column in a component, less that in all of them."""
    profiles = np.log(np.maximum(state.profiles, np.finfo(np.float64).tiny))
    return (profiles - state.shares @ profiles).T


def _seconds(params: MultinomialMixture, size: Size) -> float:
    steps = min(params.max_iter, 20)
    return params.n_components * params.n_init * size.rows * steps * (2e-8 + 1e-9 * size.columns)


ALGORITHM = Algorithm(
    tasks={Task.CLUSTERING},
    accepts={Accepts.SPARSE},
    params=MultinomialMixture,
    state=State,
    fit=fit,
    predict=predict,
    counts=lambda _: True,
    terms=terms,
    seconds=_seconds,
    outputs={
        "memberships": Output(
            "Probability of each component, in their order from 0: they add up to 1.",
            memberships,
            lambda _, state: len(state.shares),
        ),
        "log_density": Output("Logarithm of the probability of the counts of the row, given their sum.", log_density),
    },
    prototypes=lambda _, state: state.means,
    free_parameters=free_parameters,
    summary=summary,
    breaks={Symmetry.SCALE: "a count of two is two things, in whatever unit"},
)
