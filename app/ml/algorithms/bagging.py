r"""Bagging: one learner fitted to many resamples of the rows, and the average of the predictions.

Each member learns from rows drawn with replacement; regression predicts the mean, classification the mean of
the probabilities or, by vote, the shares of the members' likeliest classes. The average of M independent
predictions has 1/M of their variance, and its squared error is never above the mean squared error of the members
(Jensen). A draw of n from n rows leaves out (1 - 1/n)^n of them on average, more than a third: these rows, which a
member has not seen, give an error estimate for nothing, the out-of-bag error.

Trees have at least 3 rows a leaf by default. Beside leaves of one row, scikit-learn's default, the error is the same
(0.085 on 5,000 rows of two classes), lower (0.394 for 0.409 of three) or higher (0.053 for 0.047 on 569 rows that
fine leaves distinguish). The log loss is lower (0.415 for 0.492, and 0.921 for 1.140), as leaves of one row are certain
of their class.

On the benchmark table `rare_class` the log loss is 0.493, scikit-learn's with the same leaf size 0.418, and 0.330 with
10 rows a leaf. On `heavy_tails` the RMSE is 3.824, 3.801 and 3.787. The difference at the same leaf size is measured,
and unexplained.

In short: One learner is fitted to many random resamples of the rows. The prediction is the average of its members, or
their vote. The rows that a member has not seen give an estimate of the error without a further fit.

Use when: a learner is unstable, as a deep tree is: small changes of the data change it much, and averaging calms it.
A stable learner, such as a linear model, gains little.

Of 10 rows a draw holds 0.65132 on average, of 100 it holds 0.63397:

>>> for n in 10, 100:
...     held = np.mean([np.unique(draw(seed, n, n)).size / n for seed in range(10_000)])
...     print(f"{1 - (1 - 1 / n) ** n:.5f}", abs(held - (1 - (1 - 1 / n) ** n)) < 0.002)
0.65132 True
0.63397 True

References: Breiman (1996), Mach. Learn. 24:123; Battiti & Brunato, The LION Way, ch. 11.
"""

from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

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
    Params,
    Symmetry,
    Task,
    Vector,
    learner,
)
from app.ml.contract.capacity import GibbsRisk
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.ensembles.member_predictions import error, explained
from app.ml.numerics.sampling.content_order import in_content_order
from app.ml.numerics.tensor_graphs.class_tensors import majority_votes, normalised, sum_tensors
from app.ml.numerics.tensor_graphs.learner_tensors import learner_tensor
from app.ml.numerics.trees.member_trees import MemberTrees
from app.ml.numerics.trees.out_of_bag import always_seen


class Bagging(Params):
    estimator: Learner = learner("Learner that is trained for each member.", name="decision_tree", prior_weight=1.0)
    n_estimators: int = Field(25, ge=1, le=1000, description="Number of members.")
    max_samples: float = Field(1.0, gt=0, le=1, description="Rows drawn for each member, as a share of all rows.")
    voting: Literal["soft", "hard"] = Field(
        "soft",
        description="Combination of members in classification. `soft`: the mean of their probabilities; `hard`: each "
        "has one vote. Unused in regression.",
    )


class State(NamedTuple):
    members: tuple[FittedLearner, ...]
    out_of_bag: float
    """Root mean square error, or error rate, by members that had not seen the row; NaN without such rows."""
    evaluated_rows: int
    """Rows that some member had not seen."""


def fit(params: Bagging, data: Data, context: Context) -> Fit[State]:
    data = in_content_order(data)
    n = len(data.x)
    size = max(1, round(params.max_samples * n))
    seeds = context.rng.integers(2**63, size=params.n_estimators).tolist()
    result = np.zeros(data.prediction_shape)
    seen = np.zeros(n)
    members, curve = [], []
    losses, sizes = list[float](), list[int]()
    fits = [NestedFit(params.estimator, partial(_drawn, data, seed, size)) for seed in seeds]
    for seed, member in zip(seeds, context.fit_all(fits), strict=True):
        members.append(member)
        out = np.setdiff1d(np.arange(n), draw(seed, n, size))
        if out.size:
            votes = _votes(params, members[-1], data.x[out])
            result[out] += votes
            seen[out] += 1
            if votes.ndim == 2:
                losses.append(1 - float(votes[np.arange(out.size), data.codes[out]].mean()))
                sizes.append(out.size)
        curve.append(_error(data, result, seen))
        context.progress(len(curve) / params.n_estimators, out_of_bag=curve[-1])
    state = State(tuple(members), curve[-1], int((seen > 0).sum()))
    return Fit(
        state,
        iterations=params.n_estimators,
        curves={"out_of_bag": curve},
        warnings=always_seen(n - state.evaluated_rows),
        gibbs=GibbsRisk.of(losses, sizes, params.n_estimators),
    )


def predict(params: Bagging, state: State, x: Matrix) -> NDArray[Any]:
    total = _votes(params, state.members[0], x)
    for member in state.members[1:]:
        total = total + _votes(params, member, x)
    return total / (total.sum(axis=1, keepdims=True) if total.ndim == 2 else len(state.members))


def draw(seed: int, n: int, size: int) -> Labels:
    """`size` of n rows, with replacement, in ascending order."""
    return np.sort(np.random.Generator(np.random.PCG64(seed)).integers(n, size=size))


def _drawn(data: Data, seed: int, size: int) -> Data:
    return data.take(draw(seed, len(data.x), size))


def explain(params: Bagging, state: State, x: Matrix) -> list[JSON]:
    """For each row the prediction of every member."""
    return explained([(member, x) for member in state.members])


def summary(params: Bagging, state: State) -> JSON:
    return {
        "members": len(state.members),
        "out_of_bag": {"error": state.out_of_bag, "rows": state.evaluated_rows},
    }


def _votes(params: Bagging, member: FittedLearner, x: Matrix) -> NDArray[Any]:
    """(n,) numbers, or (n, k) probabilities or votes."""
    predicted = member.predict(x)
    return (
        np.eye(predicted.shape[1])[predicted.argmax(axis=1)]
        if params.voting == "hard" and predicted.ndim == 2
        else predicted
    )


def _error(data: Data, result: NDArray[Any], seen: Vector) -> float:
    """Error on the rows that some member has not seen."""
    evaluated = seen > 0
    predictions = result[evaluated]
    return error(data, evaluated, predictions if predictions.ndim == 2 else predictions / seen[evaluated])


def to_tensor(params: Bagging, state: State, x: Tensor) -> Tensor:
    votes = [learner_tensor(member, x) for member in state.members]
    classifies = params.voting == "hard" and votes[0].width > 1
    total = sum_tensors([majority_votes(vote) for vote in votes] if classifies else votes)
    return normalised(total) if total.width > 1 else total / float(len(votes))


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    params=Bagging,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    degrees=lambda params: params.voting == "hard",
    explain=explain,
    members=lambda params, task: [
        Member(
            "/estimator",
            params.estimator,
            task,
            lambda all_: (params.n_estimators, all_._replace(rows=params.max_samples * all_.rows)),
        )
    ],
    summary=summary,
    queries={"tree": lambda _, state: MemberTrees.of(state.members)},
    breaks={
        Symmetry.COLUMN_ORDER: "a tree fitted to few rows finds equally good columns, and takes the first",
        Symmetry.SCALE: "rows are drawn by a hash of their numbers, which other units change",
        Symmetry.WEIGHTS: "a row given twice is drawn twice as often, a weight counts within the draw",
    },
)
