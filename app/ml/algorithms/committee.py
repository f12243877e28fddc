r"""Committee: learners that each learn everything, and then vote or are averaged; where they disagree it may abstain.

Numbers are averaged, as are class probabilities; by majority each member has one vote, for its likeliest class.
Members may count differently, and one that draws at random may be named several times: it draws anew each time. If M
members err independently with probability e < 1/2, their majority errs with

    P = Σ_{k > M/2} C(M, k) eᵏ (1 − e)^{M−k},

which falls to zero as M grows; members that err together gain less. Cross-validated, every member is trained once
without each of K disjoint folds, and all K stay (section 11.2); the fold that each lacks shows how well it does, so
that cross-validation takes no other fits. A class is predicted only where the best one has at least `min_probability`
and leads the second by `min_margin`: a probability of 1 by majority is unanimity. Rows that are rejected go to a
`fallback_estimator`, where one is named, or else are unknown.

With activations the committee is a portfolio: member i predicts a row with probability aᵢ, at least one does, and
only those that do count. The draw is made from the row itself, so that the same row always meets the same members.

Members of classes are by default such as give probabilities: with the shares of `ridge`, cut off at 0 and 1, in the
place of `logistic` the log loss was 0.207 for 0.127 on iris, 0.136 for 0.086 on wine and 0.256 for 0.216 on a table
with a rare class, with equal errors.

In short: Several learners are fitted to all rows, and are averaged or vote. Where they do not agree enough, the
committee abstains or uses a second model.

Use when: several learners are about equally good, none is clearly best, and it matters to know where they disagree.
Models that exist need no new fit: they are combined by a job of the kind `combine`.

Errors of a majority of 5 and 21 that each err in 30 of 100 cases, of 11 and 101 that err in 40:

>>> print(*(f"{majority_error(m, e):.6f}" for m, e in ((5, 0.3), (21, 0.3), (11, 0.4), (101, 0.4))))
0.163080 0.026390 0.246502 0.020897

References: Hansen & Salamon (1990), IEEE Trans. Pattern Anal. 12:993; Battiti & Brunato, The LION Way, ch. 11.
"""

from functools import partial
from typing import Annotated, NamedTuple, Self

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field, model_validator

from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    FittedLearner,
    Labels,
    Learner,
    Matrix,
    Member,
    NestedFit,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.export_errors import ExportUnsupported
from app.ml.contract.params import OTHER_MEMBERS, EnsembleParams, MinMargin, MinProbability, Voting
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.ensembles.agreement import accepted
from app.ml.numerics.ensembles.member_predictions import error, explained
from app.ml.numerics.sampling.content_order import in_content_order
from app.ml.numerics.sampling.folds import dealt
from app.ml.numerics.sampling.row_draws import row_draws
from app.ml.numerics.tensor_graphs.class_tensors import (
    accepted_tensor,
    majority_votes,
    normalised,
    sum_tensors,
    with_gaps,
)
from app.ml.numerics.tensor_graphs.learner_tensors import learner_tensor


class Committee(EnsembleParams):
    estimator_weights: list[Annotated[float, Field(gt=0, le=1e9)]] | None = Field(
        None, min_length=1, max_length=50, description="Weight of each member in the mean or the vote; null: all alike."
    )
    activations: list[Annotated[float, Field(gt=0, le=1)]] | None = Field(
        None, min_length=1, max_length=50, description="Probability with which each member predicts a row; null: 1."
    )
    voting: Voting = "soft"
    cv: int | None = Field(
        None,
        ge=2,
        le=50,
        description="Number of folds: each member is trained once without each fold; null: once on all rows.",
    )
    min_probability: MinProbability = 0.0
    min_margin: MinMargin = 0.0
    fallback_estimator: Learner | None = Field(
        None,
        description="Learner that predicts the rows which the committee rejects; null: none. Unused in regression.",
    )

    @model_validator(mode="after")
    def _one_weight_each(self) -> Self:
        count = len(self.estimators) if self.estimators is not None else 1 + len(OTHER_MEMBERS)
        for listed in self.estimator_weights, self.activations:
            if listed is not None and len(listed) != count:
                raise ValueError("There must be as many estimator_weights, and as many activations, as estimators.")
        return self


class State(NamedTuple):
    members: tuple[FittedLearner, ...]
    weights: Vector
    """(M,) adding up to 1."""
    fallback: FittedLearner | None
    errors: Vector = np.zeros(0)
    """(M,) root mean square error, or error rate, of each member on the fold it has not seen; NaN without folds."""


def fit(params: Committee, data: Data, context: Context) -> Fit[State]:
    weights = np.ones(len(params.learners)) if params.estimator_weights is None else np.array(params.estimator_weights)
    data = in_content_order(data)
    parts = _parts(params, data, context)
    fits = [NestedFit(spec, partial(data.take, rows)) for spec in params.learners for rows in parts]
    members = tuple(context.fit_all(fits))
    spread = np.repeat(weights, len(parts))
    lacking = [np.setdiff1d(np.arange(len(data.x)), rows) for rows in parts] * len(params.learners)
    errors = [
        error(data, rows, member.predict(data.x[rows])) if rows.size else np.nan
        for member, rows in zip(members, lacking, strict=True)
    ]
    classes = data.task is Task.CLASSIFICATION
    second = context.fit(params.fallback_estimator, data) if params.fallback_estimator is not None and classes else None
    return Fit(State(members, spread / spread.sum(), second, np.array(errors)), iterations=len(members))


def predict(params: Committee, state: State, x: Matrix) -> NDArray[np.float64]:
    total = _portfolio(params, state, x) if params.activations else _all(params, state, x)
    if total.ndim == 1:
        return total
    total /= total.sum(axis=1, keepdims=True)
    if state.fallback is not None and not (sure := _sure(params, total)).all():
        total[~sure] = state.fallback.predict(np.ascontiguousarray(x[~sure]))
    return total


def accepted_rows(params: Committee, probabilities: Matrix) -> NDArray[np.bool_]:
    """Rows with a prediction: all, where a fallback predicts the others."""
    return _sure(params, probabilities) if params.fallback_estimator is None else np.ones(len(probabilities), np.bool_)


def majority_error(members: int, error: float) -> float:
    """Probability that the majority of an odd number of independent members is wrong."""
    return float(scipy.stats.binom.sf(members // 2, members, error))


def explain(params: Committee, state: State, x: Matrix) -> list[JSON]:
    """For each row the prediction of every member."""
    return explained([(member, x) for member in state.members])


def summary(params: Committee, state: State) -> JSON:
    per_spec = len(state.members) // len(params.learners)
    errors = state.errors if state.errors.size else np.full(len(state.members), np.nan)
    return [
        {
            "algorithm": member.name,
            "weight": weight,
            "without_fold": place % per_spec if per_spec > 1 else None,
            "error": None if np.isnan(error) else error,
        }
        for place, (member, weight, error) in enumerate(
            zip(state.members, state.weights.tolist(), errors.tolist(), strict=True)
        )
    ]


def _all(params: Committee, state: State, x: Matrix) -> NDArray[np.float64]:
    total = np.zeros(())
    for weight, member in zip(state.weights.tolist(), state.members, strict=True):
        total = total + weight * _vote(params, member.predict(x))
    return total


def _portfolio(params: Committee, state: State, x: Matrix) -> NDArray[np.float64]:
    """The mean of the members that are active."""
    chosen = active(params, x).repeat(len(state.members) // len(params.learners), axis=1)
    result = [
        (rows, weight * _vote(params, member.predict(np.ascontiguousarray(x[rows]))))
        for rows, weight, member in zip(chosen.T, state.weights.tolist(), state.members, strict=True)
        if rows.any()
    ]
    if not result:  # there are no rows
        return _all(params, state, x)
    total = np.zeros((len(x), *result[0][1].shape[1:]))
    for rows, predicted in result:
        total[rows] += predicted
    counted = chosen @ state.weights
    return total / (counted if total.ndim == 1 else counted[:, None])


def active(params: Committee, x: Matrix) -> NDArray[np.bool_]:
    """(n, m) true where a member predicts a row: if none is drawn, the one that came nearest."""
    late = row_draws(x, len(params.learners)) / np.array(params.activations)
    chosen: NDArray[np.bool_] = (late < 1) | (late == late.min(axis=1, keepdims=True))
    return chosen


def _parts(params: Committee, data: Data, context: Context) -> list[Labels]:
    """The rows that members learn from."""
    n = len(data.x)
    if params.cv is None or n < 2:
        return [np.arange(n)]
    codes = data.codes if data.task is Task.CLASSIFICATION else None
    k = min(params.cv, n)
    fold = dealt(n, k, context.rng, codes)
    return [np.flatnonzero(fold != i) for i in range(k)]


def _fits(params: Committee, size: Size) -> tuple[float, Size]:
    k = params.cv
    return (1.0, size) if k is None else (k, size._replace(rows=size.rows * (1 - 1 / k)))


def _vote(params: Committee, predicted: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) numbers, or (n, k) probabilities or votes."""
    votes = params.voting == "hard" and predicted.ndim == 2
    return np.eye(predicted.shape[1], dtype=np.float64)[predicted.argmax(axis=1)] if votes else predicted


def _sure(params: Committee, probabilities: Matrix) -> NDArray[np.bool_]:
    return accepted(probabilities, params.min_probability, params.min_margin)


def to_tensor(params: Committee, state: State, x: Tensor) -> Tensor:
    if params.activations:
        raise ExportUnsupported("A committee whose members are drawn for each row has no graph.")
    votes = [learner_tensor(member, x) for member in state.members]
    hard = params.voting == "hard" and votes[0].width > 1
    votes = [majority_votes(vote) for vote in votes] if hard else votes
    total = sum_tensors([weight * vote for weight, vote in zip(state.weights.tolist(), votes, strict=True)])
    if total.width == 1:
        return total
    shares = normalised(total)
    if state.fallback is None:
        return shares
    sure = accepted_tensor(shares, params.min_probability, params.min_margin)
    return with_gaps(shares.where(sure, learner_tensor(state.fallback, x)), shares)


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    params=Committee,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    degrees=lambda params: params.voting == "hard",
    explain=explain,
    known=accepted_rows,
    for_task=lambda params, task: params.for_task(task),
    members=lambda params, task: [
        *(
            Member(f"/estimators/{i}", spec, task, partial(_fits, params))
            for i, spec in enumerate(params.for_task(task).learners)
        ),
        *(
            [Member("/fallback_estimator", params.fallback_estimator, task)]
            if params.fallback_estimator and task is Task.CLASSIFICATION
            else []
        ),
    ],
    summary=summary,
    breaks={
        Symmetry.COLUMN_ORDER: "a tree among the members takes the first of equally good columns",
        Symmetry.SCALE: "ridge and nearest neighbours among the members weigh columns by their units",
        Symmetry.WEIGHTS: "nearest neighbours among the members count rows: a row given twice takes two places",
    },
)
