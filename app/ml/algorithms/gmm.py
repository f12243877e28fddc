r"""Gaussian mixture (GMM): rows come from several normal distributions, fitted by expectation maximisation (EM).

The density of a row x is f(x) = Σₖ πₖ N(x; μₖ, Σₖ), with shares πₖ that add up to 1. EM makes the training rows more
likely with each of two steps. The responsibility of component k for row i is hᵢₖ = πₖ N(xᵢ; μₖ, Σₖ) / f(xᵢ). Then πₖ
is the mean of hᵢₖ over the rows, μₖ their mean and Σₖ their covariance, each row weighted by hᵢₖ. The likelihood never
falls, and ends at a maximum near the start: `n_init` starts are made, and the likeliest result is kept. A start is a
k-means clustering, or random rows.

The likelihood has no bound where a component can shrink to a point. No variance of a component is therefore smaller, in
any direction, than `covariance_floor` times that of the columns, each scaled to variance 1 (for `spherical`, all by one
number). The likeliest covariance under this condition has eigenvalues raised to the floor, so that the likelihood does
not fall either. A column with one value counts as one of the mean variance.

`covariance` is the form of Σₖ: `full`; `diagonal`, columns independent of each other within a component; or
`spherical`, one variance for all columns. `memberships` are the responsibilities for a row. As a clustering a row has
the label of the largest. Components lie where rows are dense; where two overlap, a group of rows may be described by
several: BIC, in the report, helps to choose their number. A row is an anomaly where its density is below that of all
but `contamination` of the training rows.

In short: Several normal distributions together describe where rows lie. Every row belongs to each of them with a
probability. Rows of low density are anomalies.

Use when: rows form several clouds, roughly elliptic, and a density, soft clusters or anomalies are wanted.

Two groups of three rows, of which the row half way belongs to both:

>>> rows = np.array([[-5.0], [-4.0], [-3.0], [3.0], [4.0], [5.0]])
>>> params = GMM(n_components=2)
>>> state = fit(params, Data.of(Task.DENSITY, rows), Context.of(0)).state
>>> state.means.round(3).ravel().tolist(), state.shares.round(3).tolist()
([-4.0, 4.0], [0.5, 0.5])
>>> memberships(params, state, np.array([[-4.0], [0.0]])).round(3).tolist()
[[1.0, 0.0], [0.5, 0.5]]

References: Dempster, Laird & Rubin (1977), J. R. Stat. Soc. B 39:1; Bishop (2006), Pattern Recognition and Machine
Learning, ch. 9.
"""

import math
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    ColumnUnits,
    Context,
    Data,
    Fit,
    Labels,
    Matrix,
    Output,
    Params,
    Size,
    StreamedRows,
    Symmetry,
    Task,
    Vector,
    silent,
)
from app.ml.contract.named_numbers import every
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.clustering.seeding import canonical_order
from app.ml.numerics.density import gaussian_mixture as mixture
from app.ml.numerics.density.gaussian_mixture import Components, Form, Options
from app.ml.numerics.density.mixture_starts import Runs, Starts, best_run, low_quantile
from app.ml.numerics.density.normal_ellipsoids import Normals
from app.ml.numerics.density.standard_units import StandardBlocks, Units, standard_units, streamed_units
from app.ml.numerics.tensor_graphs.density_tensors import mixture_joint

MAX_REPORTED_NUMBERS = 25_000
"""Numbers of all covariances in the report, at most."""


class GMM(Params):
    n_components: int = Field(3, ge=1, le=1000, description="Number of components, each a normal distribution.")
    covariance: Form = Field(
        "full",
        description="Form of the covariance of a component. `full`: any; `diagonal`: columns are independent; "
        "`spherical`: and have the same variance.",
    )
    init: Literal["alternate", "kmeans", "random"] = Field(
        "alternate",
        description="Starting components of EM. `kmeans`: the clusters of k-means; `random`: random rows as "
        "means, each with the covariance of all rows; `alternate`: the first, then the other, in turn, as starts from "
        "k-means often end in the same place.",
    )
    n_init: int = Field(3, ge=1, le=1000, description="Number of starts, of which the likeliest result is kept.")
    max_iter: int = Field(200, ge=1, le=100_000, description="Maximum number of EM steps of each start.")
    tol: float = Field(
        1e-4, ge=0, le=1, description="Stop when a step raises the mean log density of the rows by less."
    )
    covariance_floor: float = Field(
        1e-6,
        ge=1e-12,
        le=1,
        description="Smallest variance of a component in any direction, as a share of the variance of all rows.",
    )
    contamination: float = Field(
        0.05, ge=0, lt=1, description="Share of the training rows that are anomalies: those of the lowest density."
    )


class State(NamedTuple):
    shares: Vector
    """(k,)"""
    means: Matrix
    """(k, d)"""
    whitening: NDArray[np.float64]
    """(k, d, d) lower triangles or (k, 1, d), see `Components`."""
    threshold: float
    """Log density below which a row is an anomaly."""
    starts: Vector
    """Mean log density that each start reached."""
    labels: bool
    """True if predictions are labels, not log densities."""


def fit(params: GMM, data: Data, context: Context) -> Fit[State]:
    order = _order(data.x)
    weights = data.weights[order]
    x, units = standard_units(data.x[order], weights, together=params.covariance == "spherical")
    runs = best_run(_starts(params, x, weights), params.n_init, context)
    return _fitted(params, data, runs, units, runs.best)


def fit_blocks(params: GMM, rows: StreamedRows, context: Context) -> Fit[State]:
    """EM is started on the sample of the rows; the likeliest result goes on with all rows. `starts` are the mean log
    densities of the sample, from which the threshold of anomalies is taken too.
    """
    units, sample = streamed_units(rows, together=params.covariance == "spherical"), rows.sample
    order = _order(sample.x)
    starts = _starts(params, units.standard(sample.x[order]), sample.weights[order])
    runs = best_run(starts, params.n_init, replace(context, progress=silent))
    run = mixture.em_of_blocks(StandardBlocks(rows, units), runs.best.components, starts.options, context.progress)
    return _fitted(params, sample, runs, units, run)


def _order(x: Matrix) -> Labels:
    """`canonical_order` of the columns in units of their ranges, so that their units do not change the starts."""
    spans = np.ptp(x, axis=0)
    return canonical_order(x / np.where(spans > 0, spans, 1.0))


def _starts(params: GMM, x: Matrix, weights: Vector) -> Starts:
    options = Options(params.covariance, params.covariance_floor, params.max_iter, params.tol)
    return Starts(x, weights, params.n_components, options, params.init)


def _fitted(params: GMM, data: Data, runs: Runs, units: Units, run: mixture.Run) -> Fit[State]:
    """data: rows from whose densities the threshold is taken."""
    components, volume = run.components.moved(units.centre, units.scale), float(np.log(units.scale).sum())
    logs = mixture.log_density(mixture.log_joint(components, data.x))
    threshold = low_quantile(logs, data.weights, params.contamination)
    reached = np.array(runs.reached) - volume
    state = State(*components, threshold, reached, data.task.labels)
    return Fit(
        state,
        run.converged,
        len(run.curve) - 1,
        curves={"log_density": (run.curve - volume).tolist()},
        warnings=_warnings(params, data, units, run.components),
    )


def _warnings(params: GMM, data: Data, units: Units, components: Components) -> list[str]:
    k, warnings = len(components.shares), []
    if units.constant.size:
        names = ", ".join(repr(data.names[j]) if data.names else str(j) for j in units.constant[:5])
        warnings.append(f"These columns do not vary, so that their variance is the floor: {names}.")
    if k < params.n_components:
        warnings.append(f"There are only {k} distinct rows, so there are {k} components.")
    floored = mixture.touching(components, params.covariance_floor)
    if floored.size:
        warnings.append(
            f"{floored.size} of {k} components have a variance at the floor: their columns determine each other, or "
            "they hold few rows. Fewer components, a diagonal covariance or a higher `covariance_floor` may serve."
        )
    return warnings


def components_of(state: State) -> Components:
    return Components(state.shares, state.means, state.whitening)


def predict(params: GMM, state: State, x: Matrix) -> NDArray[np.float64] | Labels:
    return label(params, state, x) if state.labels else log_density(params, state, x)


def log_density(params: GMM, state: State, x: Matrix) -> Vector:
    return mixture.log_density(mixture.log_joint(components_of(state), x))


def label(params: GMM, state: State, x: Matrix) -> Labels:
    labels: Labels = mixture.log_joint(components_of(state), x).argmax(axis=1)
    return labels


def memberships(params: GMM, state: State, x: Matrix) -> Matrix:
    return mixture.memberships(mixture.log_joint(components_of(state), x))


def distance(params: GMM, state: State, x: Matrix) -> Vector:
    """(n,) Mahalanobis distance to the mean of the row's own component."""
    components, labels = components_of(state), label(params, state, x)
    return np.sqrt(mixture.squares(components, x, labels))


def tail_probability(params: GMM, state: State, x: Matrix) -> Vector:
    """(n,) probability that the square of `distance` is larger, by the chi-square distribution of d degrees."""
    squares = np.square(distance(params, state, x))
    return np.asarray(scipy.special.chdtrc(state.means.shape[1], squares))


def anomaly(params: GMM, state: State, x: Matrix) -> NDArray[np.bool_]:
    return log_density(params, state, x) < state.threshold


def normals(params: GMM, state: State) -> Normals:
    """The components, as the query of ellipsoids reads them."""
    components = components_of(state)
    return Normals(state.shares, state.means, components.factors if components.full else 1 / state.whitening)


def free_parameters(params: GMM, state: State) -> float:
    k, d = state.means.shape
    covariance = {"full": d * (d + 1) / 2, "diagonal": d, "spherical": 1}[params.covariance]
    return float(k - 1 + k * (d + covariance))


def summary(params: GMM, state: State) -> JSON:
    return _summary(params, state, ColumnUnits(np.zeros(state.means.shape[1]), np.ones(state.means.shape[1])))


def in_units(params: GMM, state: State, units: ColumnUnits) -> JSON:
    return _summary(params, state, units)


def _summary(params: GMM, state: State, units: ColumnUnits) -> JSON:
    """Means, standard deviations and, of full covariances of not too many columns, these."""
    components, scale = components_of(state), np.abs(units.scale)
    described: dict[str, NDArray[np.float64]] = {
        "mean": units.values(state.means), "standard_deviations": scale * components.deviations,
    }  # fmt: skip
    if components.full and components.whitening.size <= MAX_REPORTED_NUMBERS:
        factors = scale[:, None] * components.factors
        described["covariance"] = factors @ factors.transpose(0, 2, 1)
    return {
        "columns": every(state.means.shape[1]),
        "components": [
            {"component": j, "share": float(share), **{name: part[j].tolist() for name, part in described.items()}}
            for j, share in enumerate(state.shares)
        ],
        "starts": state.starts.tolist(),
        "threshold": state.threshold if math.isfinite(state.threshold) else None,
        "free_parameters": free_parameters(params, state),
    }


def _seconds(params: GMM, size: Size) -> float:
    pairs = size.columns**2 / 2 if params.covariance == "full" else size.columns
    steps = params.n_components * params.n_init * min(params.max_iter, 30)
    return steps * (1.5e-4 + size.rows * (1.2e-7 + 2e-10 * pairs))


def to_tensor(params: GMM, state: State, x: Tensor) -> Tensor:
    joint = mixture_joint(components_of(state), x)
    if state.labels:
        return joint.first_largest()
    largest = joint.reduce("ReduceMax")
    return largest + (joint - largest).apply("Exp").reduce("ReduceSum").apply("Log")


ALGORITHM = Algorithm(
    tasks=(Task.DENSITY, Task.CLUSTERING),
    params=GMM,
    state=State,
    fit=fit,
    fit_blocks=fit_blocks,
    predict=predict,
    graph=to_tensor,
    seconds=_seconds,
    memory=lambda _, size: 32.0 * size.cells,
    outputs={
        "memberships": Output(
            "Probability of each component, in their order from 0: they add up to 1.",
            memberships,
            lambda _, state: len(state.shares),
        ),
        "label": Output("Number of the most probable component, from 0.", label),
        "log_density": Output("Logarithm of the density, per unit of the prepared (scaled) columns.", log_density),
        "distance": Output(
            "Mahalanobis distance to the mean of the most probable component: 1 is one standard deviation.", distance
        ),
        "tail_probability": Output(
            "Probability that a row of the most probable component is farther from its mean: small for outliers.",
            tail_probability,
        ),
        "anomaly": Output(
            "True where the log density is below the threshold that `contamination` of the training rows set.", anomaly
        ),
    },
    prototypes=lambda _, state: state.means,
    free_parameters=free_parameters,
    queries={"ellipsoids": normals},
    summary=summary,
    in_units=in_units,
    breaks={Symmetry.SCALE: "a density is per unit of its columns"},
)
