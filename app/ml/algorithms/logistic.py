r"""Logistic regression: class probabilities from a weighted sum of the inputs.

Minimises  −Σ wᵢ log P(yᵢ | xᵢ) / Σ wᵢ + ½λ‖β‖²  with  P(1 | x) = 1/(1 + exp(−xβ − b))  for two classes and
the softmax of one score per class for more; the intercepts b are free. The loss is convex, and the penalty keeps the
solution unique and finite even where a plane separates the classes perfectly; λ = 0 is maximum likelihood. Newton's
method where its matrix is small, else L-BFGS, in standardised coordinates, from the observed share of each class. On
request it stops early: part of the rows is held out, stratified, and the coefficients that do best on those are kept. A
class without rows has probability 0.

A fit may start from the coefficients of another one: it takes fewer iterations to the same minimum.

Errors of coefficients follow from the curvature of the penalised loss at its minimum; odds ratios are exp β.

In short: The log odds of the classes are weighted sums of the inputs. The weights make the training classes as likely
as they can, less a penalty on large weights.

Use when: probabilities matter, when each input pushes the odds in one direction, or as the first classifier to beat.
Scale the inputs: the penalty counts in their units.

References: Cox (1958), J. Roy. Statist. Soc. B 20:215; Nocedal (1980), Math. Comp. 35:773;
Hastie, Tibshirani & Friedman (2009), The Elements of Statistical Learning, ch. 4;
Byrd et al. (2011), SIAM J. Optim. 21:977; Battiti & Brunato, The LION Way, ch. 8.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Accepts,
    Affine,
    Algorithm,
    ColumnUnits,
    Context,
    Data,
    Fit,
    Labels,
    LinearForm,
    Matrix,
    Params,
    Progress,
    Symmetry,
    Task,
    Vector,
    WarmStart,
)
from app.ml.contract.capacity import planes
from app.ml.contract.named_numbers import every
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.linear_algebra.solve import each_row
from app.ml.numerics.linear_models.coefficient_errors import as_json
from app.ml.numerics.linear_models.cross_entropy import CrossEntropy
from app.ml.numerics.linear_models.cross_entropy_minimum import PART, minimum
from app.ml.numerics.linear_models.fit_memory import logistic_bytes
from app.ml.numerics.linear_models.separation import separates, separation_warnings
from app.ml.numerics.linear_models.softmax import losses, of_two, one_of_two, probabilities
from app.ml.numerics.tensor_graphs.class_tensors import softmax_shares, spread_columns, two_shares

MOST_UNKNOWNS = 100
"""Up to here the errors of coefficients are reported."""
NORMAL = 1.959963984540054
"""Standard deviations of a 95 % interval."""
OTHER_CLASSES = "The training rows do not have all classes of the version to start from: the fit started anew."


class Logistic(Params):
    """Logistic regression with a penalty on the squared coefficients."""

    l2: float | None = Field(
        None,
        ge=0,
        le=1e12,
        description="Penalty beside the mean (not the sum) of the losses: minimises (Σ weight·log loss)/(Σ weight) + "
        "½·l2·‖coefficients‖². Null: 1/(Σ weight), which is a penalty of 1 beside the sum. 0: maximum "
        "likelihood, which has no solution where a plane separates the classes.",
    )
    solver: Literal["auto", "newton", "lbfgs"] = Field(
        "auto", description="Method of the minimisation; `auto` chooses by size."
    )
    tol: float = Field(1e-8, gt=0, le=1, description="Stop when no slope of the mean loss exceeds this share of it.")
    max_iter: int = Field(1000, ge=1, le=1_000_000, description="Maximum number of iterations.")
    early_stopping: bool = Field(
        False, description="Stop when held-out rows are no longer predicted better, and keep the best iteration."
    )
    validation_fraction: float = Field(0.1, gt=0, lt=1, description="Share of the rows held out for early stopping.")
    n_iter_no_change: int = Field(
        5, ge=1, le=10_000, description="Iterations without improvement on the held-out rows before an early stop."
    )


class State(NamedTuple):
    coef: Matrix
    """(d, s): log odds of the second class (s = 1), or a score per class, of those seen in training."""
    intercept: Vector
    """(s,)."""
    seen: NDArray[np.bool_]
    """(k,): whether training had rows of the class."""
    factor: NDArray[np.float64] = np.zeros((0, 0, 0))
    """(d + 1, s, m): FFᵀ is the covariance of coefficients and intercept; empty where it is not reported."""


def fit(params: Logistic, data: Data, context: Context, start: State | None = None) -> Fit[State]:
    """start: in the columns of these data; None: the observed share of each class."""
    seen = data.targets.sum(axis=0) > 0
    if seen.sum() == 1:
        return Fit(State(np.zeros((data.x.shape[1], 0)), np.zeros(0), seen), warnings=("There is only one class.",))
    aside = _aside(params, data, context.rng)
    learned = data.take(~aside) if aside.any() else data
    loss = CrossEntropy.of(learned.x, _targets(learned.targets, seen), learned.weights, _beside_sum(params, learned))
    watch = _Watch(params, loss, data.take(aside) if aside.any() else None, seen, context.progress)
    warm = start is not None and np.array_equal(start.seen, seen)
    first = loss.point(start.coef, start.intercept) if start is not None and warm else loss.start
    bottom = minimum(loss, first, watch, params, warm=warm)
    point = bottom.x if watch.best is None else watch.best
    state = State(*loss.linear(point), seen)
    if start is not None and warm and point is first:  # it is there already, to the last bit
        state = State(start.coef, start.intercept, seen)
    separates = _separates(state, learned)
    if bottom.converged and watch.best is None and not separates and point.size <= MOST_UNKNOWNS:
        state = state._replace(factor=loss.errors(point, float(learned.weights.sum())))
    free, sure = params.l2 == 0, list[str]()
    if separates or free:
        scores, expected = _scores(state, learned.x), _targets(learned.targets, seen)
        sure += separation_warnings(scores, expected, separated=separates, penalised=not free)
    return Fit(
        state,
        converged=bottom.converged and watch.best is None and not (free and sure),
        iterations=bottom.iterations,
        curves=watch.curves,
        warnings=(
            *_warnings(params, watch),
            *sure,
            *([OTHER_CLASSES] if start is not None and not warm else []),
        ),
    )


def fit_from(params: Logistic, state: State, data: Data, context: Context) -> Fit[State]:
    return fit(params, data, context, state)


def moved(state: State, units: ColumnUnits) -> State:
    return state._replace(coef=units.coef(state.coef), intercept=state.intercept + units.constant(state.coef))


def _beside_sum(params: Logistic, data: Data) -> float:
    """The penalty beside the sum of the losses of these rows."""
    return 1.0 if params.l2 is None else params.l2 * float(data.weights.sum())


def predict(params: Logistic, state: State, x: Matrix) -> Matrix:
    coef, intercept, seen, _ = state
    if seen.size == 2 and intercept.size == len(x) == 1:
        return one_of_two(each_row(x, coef).item() + intercept.item())
    size = intercept.size
    p = (of_two if size == 1 else probabilities)(_scores(state, x)) if size else np.ones((len(x), 1))
    if p.shape[1] == seen.size:
        return p
    shares = np.zeros((len(x), seen.size))
    shares[:, seen] = p
    return shares


def objective(params: Logistic, state: State, data: Data) -> float:
    if state.intercept.size == 0:
        return 0.0
    loss = losses(_scores(state, data.x), _targets(data.targets, state.seen))
    square = float((state.coef**2).sum())
    return (float(data.weights @ loss) + 0.5 * _beside_sum(params, data) * square) / float(data.weights.sum())


def summary(params: Logistic, state: State, units: Affine | None = None) -> JSON:
    """Coefficients by class (of two, the log odds of the second), with errors and odds ratios."""
    coef, intercept, factor = state.coef, state.intercept, state.factor
    if units is not None:
        if factor.size:
            (d, s, m), flat = factor.shape, factor[:-1].reshape(len(factor) - 1, -1)
            constant = factor[-1] + units.constant(flat).reshape(s, m)
            factor = np.concatenate([units.coef(flat).reshape(d - 1, s, m), constant[None]])
        coef, intercept = units.coef(coef), intercept + units.constant(coef)
    ground = {
        "columns": every(len(coef)),
        "coefficients": as_json(coef.T),
        "intercepts": as_json(intercept),
        "classes": np.flatnonzero(state.seen).tolist(),
        "odds_ratios": as_json(_exp(coef.T)),
    }
    if not factor.size:
        return ground
    errors = np.sqrt((factor**2).sum(axis=2))
    z = np.divide(coef, errors[:-1], out=np.full(coef.shape, np.nan), where=errors[:-1] > 0)
    reach = NORMAL * errors[:-1]
    return {
        **ground,
        "standard_errors": as_json(errors[:-1].T),
        "intercept_standard_errors": as_json(errors[-1]),
        "z_values": as_json(z.T),
        "p_values": as_json(2 * scipy.special.ndtr(-np.abs(z.T))),
        "odds_ratios_lower": as_json(_exp((coef - reach).T)),
        "odds_ratios_upper": as_json(_exp((coef + reach).T)),
    }


def _exp(values: Matrix) -> Matrix:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(values))


def _separates(state: State, data: Data) -> bool:
    """True if every row is on the right side of the planes: those of a part are looked at first."""
    if len(data.x) > 2 * PART and not _separates(state, data.take(np.arange(PART))):
        return False
    return separates(_scores(state, data.x), _targets(data.targets, state.seen))


def _scores(state: State, x: Matrix) -> Matrix:
    return each_row(x, state.coef) + state.intercept[None]  # equal shapes for one row: numpy is quicker then


def _targets(targets: Matrix, seen: NDArray[np.bool_]) -> Matrix:
    """(n, s): the column of the second class for two, else all of those seen."""
    columns = np.flatnonzero(seen)
    return targets[:, columns[1:] if len(columns) == 2 else columns]


def _aside(params: Logistic, data: Data, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(n,): rows held out, the same share of every class and never all of one."""
    aside = np.zeros(len(data.x), bool)
    if params.early_stopping:
        order: Labels = rng.permutation(len(data.x))
        for code in np.unique(data.codes):
            members = order[data.codes[order] == code]
            aside[members[: int(params.validation_fraction * len(members))]] = True
    return aside


@dataclass
class _Watch:
    """Records the losses, reports the progress, and stops when the held-out loss rises."""

    params: Logistic
    loss: CrossEntropy
    aside: Data | None
    seen: NDArray[np.bool_]
    progress: Progress
    curves: dict[str, list[float]] = field(default_factory=lambda: {"loss": []})
    best: Vector | None = None
    """Parameters at which the held-out rows are predicted best; None without such rows."""
    stopped: bool = False

    def __call__(self, point: Vector, value: float) -> bool:
        measures = {"loss": value}
        if self.aside is not None:
            measures["validation_loss"] = self._validation(point, self.aside)
        for name, measure in measures.items():
            self.curves.setdefault(name, []).append(measure)
        self.progress(min(len(self.curves["loss"]) / self.params.max_iter, 1.0), **measures)
        self.stopped = self.aside is not None and self._late(point)
        return self.stopped

    def _late(self, point: Vector) -> bool:
        history = self.curves["validation_loss"]
        lowest = int(np.argmin(history))
        if lowest == len(history) - 1:
            self.best = point.copy()
        return len(history) - 1 - lowest >= self.params.n_iter_no_change

    def _validation(self, point: Vector, aside: Data) -> float:
        scores = _scores(State(*self.loss.linear(point), self.seen), aside.x)
        return float(np.average(losses(scores, _targets(aside.targets, self.seen)), weights=aside.weights))


def _warnings(params: Logistic, watch: _Watch) -> tuple[str, ...]:
    if watch.best is not None:
        step = int(np.argmin(watch.curves["validation_loss"])) + 1
        return (f"Stopped early, as requested: the coefficients are those of iteration {step}.",)
    return ("No class has rows enough to set some aside: not stopped early.",) if params.early_stopping else ()


def to_tensor(params: Logistic, state: State, x: Tensor) -> Tensor:
    seen = np.flatnonzero(state.seen)
    if not state.intercept.size:
        return x.repeated(state.seen.astype(float))
    scores = x @ state.coef + state.intercept
    shares = two_shares(scores) if state.intercept.size == 1 else softmax_shares(scores)
    return spread_columns(shares, seen, state.seen.size)


ALGORITHM = Algorithm(
    tasks={Task.CLASSIFICATION},
    accepts={Accepts.INDICATORS, Accepts.SPARSE},
    params=Logistic,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    seconds=lambda _, size: size.cells * (2e-8 + 3e-10 * size.columns) * max(1, size.classes),
    memory=lambda params, size: logistic_bytes(size, held_out=params.early_stopping),
    rowwise=True,
    linear=lambda state: LinearForm.of(state.coef, state.intercept),
    capacity=planes,
    objective=objective,
    summary=summary,
    unscaled=summary,
    warm_start=WarmStart(fit_from, moved),
    breaks={Symmetry.SCALE: "the penalty counts coefficients in the units of their columns"},
)
