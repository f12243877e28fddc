r"""Gaussian process regression (Kriging): a smooth function through the rows, with its uncertainty everywhere.

The function is taken for a normal random one, of which two rows have the covariance k(x, y): near rows have similar
values. Targets are the function plus noise of variance σ²/w for a row of weight w. With the matrices K of the kernel
and N of the noise, and the kernel k(x) between x and the rows, the prediction is the mean of the target plus
k(x)ᵀ(K + N)⁻¹y, a sum of the targets in which the near ones count most, and its variance is
k(x, x) − k(x)ᵀ(K + N)⁻¹k(x).
Without noise (`sigma` 0) the function passes through all rows, and has no variance there.

The kernel is an amplitude times `rbf` (very smooth functions), `matern52`, `matern32` or `matern12` (rougher and
rougher), `periodic`, or `locally_periodic`, a repetition that changes slowly; `linear_trend` adds a random plane. Its
parameters and the noise, as far as they are not given, maximise the marginal likelihood of the targets, from several
starts. A length scale for each column finds which columns matter: those of long scales do not. Columns and targets are
learned in standard units, so that none depends on a unit, and a column that does not vary plays no part.

The time grows with the third power of the rows. Beyond 5,000 rows, or with `n_inducing`, the parameters are learned on
2,000 rows, and the posterior of all rows is the best of those that know the function only at some inducing rows
(variational free energy). Those are chosen one after the other where the others leave the most variance.

Where amplitude and noise are both learned, an interval is that of Student's t with n − 1 degrees of freedom: their
common scale is uncertain. The report has the leave-one-out predictions in closed form: the share of targets within
their 95 % interval should be near 95 %.

In short: A smooth function through the training rows, with a standard deviation that grows with the distance from
them. How smooth it is, and which columns matter, is learned from the rows.

Use when: rows are few and costly, as simulations and experiments are, the target changes smoothly, and it matters how
uncertain a prediction is, or where to measure next.

Two rows at distance 1, whose kernel has the values 1 and e^(-1/2): without noise the function passes through both, and
half way the mean is 2 e^(-1/8)/(1 + e^(-1/2)) of theirs.

>>> import numpy as np
>>> rows = Data.of(Task.REGRESSION, [[-0.5], [0.5], [9.0]], [1.0, 1.0, -2.0])
>>> params = GaussianProcess(kernel="rbf", length_scale=1, amplitude=1, sigma=0)
>>> state = fit(params, rows, Context.of(0)).state
>>> print(predict(params, state, np.array([[-0.5], [0.0], [9.0]])).round(6), variance(params, state, rows.x).round(6))
[ 1.        1.098637 -2.      ] [0. 0. 0.]

References: Rasmussen & Williams (2006), Gaussian Processes for Machine Learning, ch. 2, 4, 5; Titsias (2009), AISTATS:
567; Battiti & Brunato, The LION Way, ch. 1.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
import scipy
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    Matrix,
    Output,
    Params,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.named_numbers import every
from app.ml.numerics.clustering.seeding import canonical_order
from app.ml.numerics.gaussian_processes.function_posterior import FunctionPosterior
from app.ml.numerics.gaussian_processes.learned_process import (
    LEARNED,
    LearnedProcess,
    LeaveOneOutScores,
    learned_process,
)
from app.ml.numerics.gaussian_processes.likelihood_maximum import Search
from app.ml.numerics.gaussian_processes.marginal_likelihood import Observations
from app.ml.numerics.gaussian_processes.mean_gradients import explained_means
from app.ml.numerics.gaussian_processes.measured_function import MeasuredFunction
from app.ml.numerics.gaussian_processes.process_kernel import KernelName, Kind, ProcessKernel
from app.ml.numerics.linear_algebra.solve import centred
from app.ml.numerics.tensor_graphs.kernel_tensors import function_tensor

MOST_EXACT = 5000
"""Rows of an exact fit, unless inducing points are requested."""
INDUCING = 500
"""Inducing points of more rows."""
NAMED: dict[Kind, str] = {"scale": "length_scales", "shape": "length_scales_of_repetition", "period": "periods"}
MAX_LENGTH_SCALE = 1e50
"""Largest length scale or period in standard units, and its inverse the smallest."""
MAX_LOG_VARIANCE = 230.0
"""Largest logarithm of a variance in standard units: its exponential has a square."""


class GaussianProcess(Params):
    """Gaussian process regression."""

    kernel: KernelName = Field(
        "matern52",
        description="Kernel of two rows: `rbf` for very smooth functions, `matern52`, `matern32` and `matern12` for "
        "rougher ones, `periodic`, or `locally_periodic`, periodic with slow changes.",
    )
    length_scales: Literal["per_column", "shared"] = Field(
        "per_column", description="Learned length scales: one for each column, or one for all of them."
    )
    length_scale: float | None = Field(
        None,
        ge=1e-100,
        le=1e100,
        description="Length scale of all columns, in units of the prepared columns; null: learned.",
    )
    period: float | None = Field(
        None,
        ge=1e-100,
        le=1e100,
        description="Period of a periodic kernel, in units of the prepared columns; null: learned.",
    )
    amplitude: float | None = Field(
        None,
        ge=1e-100,
        le=1e100,
        description="Standard deviation of the function, in units of the target; null: learned.",
    )
    linear_trend: bool = Field(False, description="Adds a random plane, whose variance is learned.")
    sigma: float | None = Field(
        None,
        ge=0,
        le=1e100,
        description="Noise (standard deviation) of a row of weight 1: 1 for weights of 1/σ², 0 for exact targets. "
        "Null: learned.",
    )
    n_init: int = Field(5, ge=1, le=100, description="Number of starts of the search for the parameters.")
    max_iter: int = Field(200, ge=1, le=10_000, description="Maximum number of iterations of the search (L-BFGS).")
    n_inducing: int | None = Field(
        None,
        ge=1,
        le=5000,
        description="Number of inducing points of a sparse posterior; null: an exact one up to 5,000 rows, 500 beyond.",
    )
    interval_of: Literal["mean", "observation"] = Field(
        "observation",
        description="Target of a prediction interval: `observation`, a new row of weight 1 with its noise, or `mean`, "
        "the function.",
    )


class State(NamedTuple):
    posterior: FunctionPosterior
    logarithms: Vector
    """(p,) of the parameters of the kernel."""
    noise: float
    """Variance of a row of weight 1. It and the posterior are in units of the target."""
    centre: Vector
    """(d,)."""
    scale: Vector
    """(d,) factors of the columns: 1/standard deviation; 0 of one that does not vary."""
    middle: float
    unit: float
    """A prediction is middle + unit times that of the posterior."""
    freedom: float
    """Degrees of freedom of an interval; infinite for a normal one."""
    rows: int
    log_likelihood: float
    """Log likelihood of the standard targets; a lower bound of it where the posterior is sparse."""
    scores: LeaveOneOutScores | None
    """None: of a sparse posterior."""


def fit(params: GaussianProcess, data: Data, context: Context) -> Fit[State]:
    targets, (centre, scale) = centred(data.targets, data.weights), _standard(params, data)
    unit = float(np.sqrt(np.average(targets.x[:, 0] ** 2, weights=data.weights))) or 1.0
    rows = (data.x - centre) * scale
    order = canonical_order(rows)
    observed = _kernel(params, scale, unit)
    observations = Observations(observed.kernel, rows[order], targets.x[order, 0] / unit, data.weights[order])
    log_noise = _log_square(params.sigma, unit) if params.sigma else -math.inf
    first = np.append(observed.kernel.logarithms(), math.log(0.1) if params.sigma is None else log_noise)
    fixed = _given(params)
    free = [kind not in fixed for kind in (*observed.kinds, "noise")]
    starts = observed.starts(first, free, params.n_init, context.rng)
    exact = params.n_inducing is None and len(rows) <= MOST_EXACT
    freedom = math.inf if fixed & {"amplitude", "noise"} else len(rows) - 1.0
    inducing = None if exact else min(params.n_inducing or INDUCING, len(rows))
    search = Search(starts, free, observed.bounds(), params.max_iter)
    learned = learned_process(observations, search, context, inducing=inducing, freedom=freedom)
    logarithms, noise = learned.maximum.logarithms[:-1], float(np.exp(learned.maximum.logarithms[-1]))
    form = centre, scale, float(targets.mean[0]), unit, freedom, len(rows)
    state = State(learned.posterior, logarithms, noise, *form, learned.log_likelihood, learned.scores)
    curves, warnings = {"negative_log_likelihood": learned.maximum.curve}, _warnings(params, learned)
    return Fit(state, learned.maximum.converged, learned.maximum.iterations, curves, warnings)


def predict(params: GaussianProcess, state: State, x: Matrix) -> Vector:
    return function(params, state).mean(x)


def variance(params: GaussianProcess, state: State, x: Matrix) -> Vector:
    """Variance (n,) of the function, without noise."""
    return function(params, state).variance(x)


def interval(params: GaussianProcess, state: State, x: Matrix, confidence: float) -> Matrix:
    middle = predict(params, state, x)
    if state.freedom <= 0:  # of one row, which leaves the scale open
        return middle[:, None] + [-math.inf, math.inf]
    noise = state.noise * state.unit**2 if params.interval_of == "observation" else 0.0
    reach = scipy.special.stdtrit(state.freedom, (1 + confidence) / 2) * np.sqrt(variance(params, state, x) + noise)
    return np.column_stack([middle - reach, middle + reach])


def summary(params: GaussianProcess, state: State) -> JSON:
    values_of_kind = _kernel(params, state.scale, state.unit).named(state.logarithms)
    result: dict[str, JSON] = {
        "amplitude": state.unit * math.sqrt(values_of_kind["amplitude"][0]),
        "sigma": state.unit * math.sqrt(state.noise),
        "rows": state.rows,
        "inducing_points": len(state.posterior.points) if state.posterior.gain.size else None,
        "log_marginal_likelihood": state.log_likelihood - state.rows * math.log(state.unit),
    }
    width = np.divide(1.0, state.scale, out=np.zeros_like(state.scale), where=state.scale > 0)
    for kind, name in NAMED.items():
        if kind in values_of_kind:
            result[name] = (values_of_kind[kind] * (1.0 if kind == "shape" else width)).tolist()
    if (scores := state.scores) is not None:
        result["leave_one_out"] = {
            "mean_log_density": scores.log_density - math.log(state.unit),
            "rmse": state.unit * scores.rmse,
            "coverage": scores.coverage,
        }
    return {"columns": every(len(state.scale)), **result}


def _standard(params: GaussianProcess, data: Data) -> tuple[Vector, Vector]:
    """Centre and factor (d,) of each column: to its standard deviation, or the root mean square of all of them."""
    inputs = centred(data.x, data.weights)
    largest = np.abs(inputs.x).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    spread = unit * np.sqrt(np.average(np.square(inputs.x / unit), axis=0, weights=data.weights))
    varies = spread > 0
    if params.length_scales == "shared" and varies.any():
        spread[:] = spread.max() * np.sqrt(np.mean(np.square(spread[varies] / spread.max())))
    return inputs.mean, np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)


def _given(params: GaussianProcess) -> set[Kind]:
    """Meanings of the parameters that are not learned."""
    fixed: dict[Kind, float | None] = {"amplitude": params.amplitude, "noise": params.sigma, "period": params.period}
    fixed["gamma"] = fixed["shape" if params.kernel == "periodic" else "scale"] = params.length_scale
    return {kind for kind, value in fixed.items() if value is not None}


def _kernel(params: GaussianProcess, scale: Vector, unit: float) -> ProcessKernel:
    """The kernel in standard units, with parameters as given, or where the search for them begins."""
    d = len(scale)
    scales = np.full(d if params.length_scales == "per_column" else 1, math.sqrt(max(d, 1)))
    period = np.ones(1) if params.period is None else _length(params.period, scale)
    if params.length_scale is not None:
        scales = _length(params.length_scale, np.ones(d) if params.kernel == "periodic" else scale)
    amplitude = 1.0 if params.amplitude is None else math.exp(_log_square(params.amplitude, unit))
    return ProcessKernel.of(params.kernel, scales, period, amplitude, trend=params.linear_trend)


def _length(value: float, scale: Vector) -> Vector:
    """(d,) the same length in standard units; 1 for a column that does not vary."""
    return np.where(scale > 0, np.clip(value * scale, 1 / MAX_LENGTH_SCALE, MAX_LENGTH_SCALE), 1.0)


def _log_square(value: float, unit: float) -> float:
    """Logarithm of (value/unit)², within ±MAX_LOG_VARIANCE."""
    return min(max(2 * (math.log(value) - math.log(unit)), -MAX_LOG_VARIANCE), MAX_LOG_VARIANCE)


def function(params: GaussianProcess, state: State) -> MeasuredFunction:
    kernel = _kernel(params, state.scale, state.unit).kernel.with_logarithms(state.logarithms)
    columns, target = (state.centre, state.scale), (state.middle, state.unit)
    return MeasuredFunction(kernel, state.posterior, *columns, *target, state.noise * state.unit**2)


def _warnings(params: GaussianProcess, learned: LearnedProcess) -> list[str]:
    if not learned.posterior.gain.size:
        return []
    detail = f"inducing rows. Its parameters have the largest likelihood of at most {LEARNED:,} rows."
    return [f"The posterior is sparse: it knows the function at {len(learned.posterior.points)} {detail}"]


def seconds(params: GaussianProcess, size: Size) -> float:
    searched = min(size.rows, MOST_EXACT if params.n_inducing is None else LEARNED)
    sparse = 2e-10 * size.rows * (params.n_inducing or INDUCING) ** 2
    return 25 * searched**2 * (6e-11 * searched + 4e-9 * size.columns) + sparse


def memory(params: GaussianProcess, size: Size) -> float:
    exact = params.n_inducing is None and size.rows <= MOST_EXACT
    rows = size.rows if exact else min(size.rows, LEARNED)
    return 48.0 * rows**2


VARIANCE = Output(
    "Variance of the function, without noise, in squared units of the target.",
    variance,
    size=lambda params, state: function(params, state).prior_variance,
)
ALGORITHM = Algorithm(
    tasks={Task.REGRESSION},
    params=GaussianProcess,
    state=State,
    fit=fit,
    predict=predict,
    graph=lambda params, state, x: function_tensor(function(params, state), x),
    seconds=seconds,
    memory=memory,
    with_errors=lambda params: params.model_copy(update={"sigma": params.sigma or 1.0}),
    interval=interval,
    interval_of_mean=lambda params: params.interval_of == "mean",
    plug_in=lambda params: params.interval_of == "observation" and None in {params.length_scale, params.sigma},
    random_function=function,
    outputs={"variance": VARIANCE},
    explain=lambda params, state, x: list(explained_means(function(params, state).mean, state.centre, state.scale, x)),
    summary=summary,
    breaks={Symmetry.WEIGHTS: "a row given twice is two observations, whose difference shows the noise"},
)
