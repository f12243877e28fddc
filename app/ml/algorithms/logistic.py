r"""Logistic regression: class probabilities from a weighted sum of the inputs.

Minimises  −Σ wᵢ log P(yᵢ | xᵢ) / Σ wᵢ + ½λ‖β‖²  with  P(1 | x) = 1/(1 + exp(−xβ − b))  for two classes and
the softmax of one score per class for more; the intercepts b are free. The loss is convex, and the penalty keeps the
solution unique and finite even where a plane separates the classes perfectly. Newton's method where its matrix is
small, else L-BFGS, in standardised coordinates, from the observed share of each class. On request it
stops early: part of the rows is held out, stratified, and the coefficients that do best on those are kept. A class
without rows has probability 0.

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
    Affine,
    Algorithm,
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
)
from app.ml.numerics.linear_algebra.solve import each_row
from app.ml.numerics.linear_models.coefficient_errors import as_json
from app.ml.numerics.linear_models.cross_entropy import CrossEntropy
from app.ml.numerics.linear_models.score_curvature import at_the_start, score_by_score
from app.ml.numerics.linear_models.softmax import losses, of_two, one_of_two, probabilities
from app.ml.numerics.optimise.newton import SLOW, Minimum, lbfgs, newton, quasi_newton

MOST_UNKNOWNS = 100
"""Up to here the errors of coefficients are reported."""
NORMAL = 1.959963984540054
"""Standard deviations of a 95 % interval."""
SEPARABLE = (
    "A plane separates the classes without a mistake: the penalty alone keeps the coefficients finite, their size "
    "follows from it, and their errors are not reported. Probabilities so sure deserve doubt; a larger "
    "penalty is modest."
)
PART, RARE = 8192, 50
"""Rows to start with, and how many of each class there have to be among them."""
FEW_UNKNOWNS, WIDE, DEAR = 100, 2000, 0.8
"""Limits for more than two classes: up to the first Newton at once; inputs up to the second have a spectrum that is
soon found. Then a Hessian costs some dozens of steps: it serves while these bring the gradient to the last share."""
FIRST_STEPS, ROUGH_STEPS = 4, 44
"""Steps by the curvature at the start, and by that of each score by itself: together they cost about one Hessian."""
NEWTON_UNKNOWNS = 1000
"""Up to here ten Newton steps cost about what some hundred L-BFGS steps do, and end at the minimum more surely."""


class Logistic(Params):
    """Logistic regression with a penalty on the squared coefficients."""

    l2: float | None = Field(
        None,
        gt=0,
        le=1e12,
        description="Penalty beside the mean (not the sum) of the losses: minimises (Σ weight·log loss)/(Σ weight) + "
        "½·l2·‖coefficients‖². Null: 1/(Σ weight), which is a penalty of 1 beside the sum.",
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


def fit(params: Logistic, data: Data, context: Context) -> Fit[State]:
    seen = np.asarray(data.targets.any(axis=0))
    if seen.sum() == 1:
        return Fit(State(np.zeros((data.x.shape[1], 0)), np.zeros(0), seen), warnings=("There is only one class.",))
    aside = _aside(params, data, context.rng)
    learned = data.take(~aside) if aside.any() else data
    loss = CrossEntropy.of(learned.x, _targets(learned.targets, seen), learned.weights, _beside_sum(params, learned))
    watch = _Watch(params, loss, data.take(aside) if aside.any() else None, seen, context.progress)
    found = _minimise(params, loss, watch)
    point = found.x if watch.best is None else watch.best
    state = State(*loss.linear(point), seen)
    apart = _separates(state, learned)
    if found.converged and watch.best is None and not apart and point.size <= MOST_UNKNOWNS:
        state = state._replace(factor=loss.errors(point, float(learned.weights.sum())))
    return Fit(
        state,
        converged=found.converged and watch.best is None,
        iterations=found.iterations,
        curves=watch.curves,
        warnings=(*_warnings(params, found, watch), *([SEPARABLE] if apart else [])),
    )


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
    """True if every row is on the right side of the planes."""
    if len(data.x) > 2 * PART and not _separates(state, data.take(np.arange(PART))):
        return False
    targets, scores = _targets(data.targets, state.seen), _scores(state, data.x)
    if scores.shape[1] == 1:
        return bool((np.where(targets > 0, scores, -scores) > 0).all())
    own = np.where(targets > 0, scores, -np.inf).max(axis=1)
    return bool((own > np.where(targets > 0, -np.inf, scores).max(axis=1)).all())


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


def _minimise(params: Logistic, loss: CrossEntropy, watch: "_Watch") -> Minimum:
    """Many scores at once: first by steps that need no Hessian, then, if these do not arrive, as anything else."""
    found, (d, s) = Minimum(loss.start, converged=False, iterations=0), (loss.x.shape[1], loss.targets.shape[1])
    if params.solver == "auto" and s > 1 and found.x.size > FEW_UNKNOWNS and d <= WIDE:
        for steps, curvature in ((FIRST_STEPS, at_the_start), (ROUGH_STEPS, score_by_score)):
            most = min(steps, params.max_iter - found.iterations)
            rough = quasi_newton(loss, curvature(loss, found.x), found.x, tol=params.tol, max_iter=most, watch=watch)
            found = rough._replace(iterations=found.iterations + rough.iterations)
            if found.converged or watch.stopped or found.iterations == params.max_iter:
                return found
    last = _thorough(params, loss, found.x, params.max_iter - found.iterations, watch)
    return last._replace(iterations=found.iterations + last.iterations)


def _thorough(params: Logistic, loss: CrossEntropy, start: Vector, max_iter: int, watch: "_Watch") -> Minimum:
    if params.solver == "lbfgs" or (params.solver == "auto" and start.size > NEWTON_UNKNOWNS):
        return lbfgs(loss, start, tol=params.tol, max_iter=max_iter, watch=watch)
    few, hessian = len(loss.x) // max(PART, 4 * start.size), loss.hessian
    if few >= 4 and not params.early_stopping:
        start, hessian = _head_start(loss.every(few), start), loss.every(4).hessian
    slow = DEAR if start.size > FEW_UNKNOWNS and loss.targets.shape[1] > 1 else SLOW
    return newton(loss, hessian, start, tol=params.tol, max_iter=max_iter, watch=watch, slow=slow)


def _head_start(part: CrossEntropy, start: Vector) -> Vector:
    """The minimum of a part of the rows: of many, few show where to look (Byrd et al. 2011)."""
    if (np.minimum(part.targets.sum(axis=0), (1 - part.targets).sum(axis=0)) < RARE).any():
        return start
    return newton(part, part.hessian, start, tol=1e-2, max_iter=20, watch=lambda _point, _value: False).x


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


def _warnings(params: Logistic, found: Minimum, watch: _Watch) -> tuple[str, ...]:
    if watch.best is not None:
        step = int(np.argmin(watch.curves["validation_loss"])) + 1
        return (f"Stopped early, as requested: the coefficients are those of iteration {step}.",)
    early = ("No class has rows enough to set some aside: not stopped early.",) if params.early_stopping else ()
    slow = () if found.converged else (f"Not converged after {found.iterations} iterations.",)
    return early + slow


ALGORITHM = Algorithm(
    tasks={Task.CLASSIFICATION},
    params=Logistic,
    state=State,
    fit=fit,
    predict=predict,
    seconds=lambda _, size: size.cells * (2e-8 + 3e-10 * size.columns) * max(1, size.classes),
    rowwise=True,
    linear=lambda state: LinearForm.of(state.coef, state.intercept),
    objective=objective,
    summary=summary,
    unscaled=summary,
    breaks={Symmetry.SCALE: "the penalty counts coefficients in the units of their columns"},
)
