r"""Stacking: a learner on top of learners, which decides how much each of them counts.

Each member predicts every row by fits that have not seen it (out of fold). On these predictions a second level learns:
by default weights that are not negative, found by non-negative least squares,

    minimise  Σᵢ vᵢ ‖yᵢ − Σₘ wₘ gₘ(xᵢ)‖²   with   wₘ ≥ 0,

where g is a number, or the vector of class probabilities and y the indicator of the class; a weight of zero drops a
member. Any learner may take this place instead: it sees the members' numbers or probabilities as its inputs. Members
then have no weights, and the report shows that learner: its coefficients, or the rules of its tree. The members are
fitted again, on all rows. Members may be stacks themselves.

Members of classes are by default such as give probabilities: with the shares of `ridge`, cut off at 0 and 1, in the
place of `logistic` the log loss was 0.344 for 0.137 on iris, 0.121 for 0.063 on wine and 0.255 for 0.212 on a table
with a rare class, with equal errors.

In short: Several learners predict rows they have not seen, and a second level learns how much weight each deserves. By
default that is a weight that is never negative.

Use when: several different learners are about equally good and fail on different rows; the gain is small but steady,
the price is one fit of each member per fold. Weights of members that predict alike may fall on either.

A member that is the truth takes all the weight from members that are noise:

>>> rng = np.random.Generator(np.random.PCG64(0))
>>> truth, noise = rng.normal(size=200), rng.normal(size=(2, 200))
>>> np.round(weights(np.column_stack([truth, *noise]), truth, np.ones(200)), 3) + 0.0
array([1., 0., 0.])

References: Wolpert (1992), Neural Networks 5:241; Breiman (1996), Mach. Learn. 24:49; Ting & Witten (1999), J. Artif.
Intell. Res. 10:271; Battiti & Brunato, The LION Way, ch. 11.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy
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
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.params import EnsembleParams
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.ensembles.inner_report import describe_fit, explain_row
from app.ml.numerics.ensembles.member_predictions import by_row
from app.ml.numerics.sampling.content_order import in_content_order
from app.ml.numerics.sampling.folds import dealt, out_of_fold, out_of_fold_fits
from app.ml.numerics.tensor_graphs.class_tensors import normalised, sum_tensors, with_gaps
from app.ml.numerics.tensor_graphs.learner_tensors import learner_tensor


class Stacking(EnsembleParams):
    final_estimator: Learner | None = Field(
        None, description="Learner that combines the members' predictions; null: weights that are not negative."
    )
    cv: int = Field(
        5, ge=2, le=50, description="Number of folds whose out-of-fold predictions train the final estimator."
    )


class State(NamedTuple):
    members: tuple[FittedLearner, ...]
    weights: Vector
    """(m,) of the members; without meaning, and stored as 0, where another learner combines them."""
    second: FittedLearner | None
    errors: Vector
    """(m,) squared error of each member, out of fold: of numbers, or of probabilities (Brier)."""

    def learners_with_levels(self, levels: Labels) -> Iterator[tuple[FittedLearner | None, Labels]]:
        """Each learner with the number of categories of the columns that it sees, of those (d,) of the matrix."""
        yield from ((member, levels) for member in self.members)
        yield self.second, levels[:0]  # it sees predictions


def fit(params: Stacking, data: Data, context: Context) -> Fit[State]:
    data = in_content_order(data)
    n, count = len(data.x), len(params.learners)
    codes = data.codes if data.task is Task.CLASSIFICATION else None
    fold = dealt(n, min(params.cv, n), context.rng, codes)
    members, predictions = zip(*out_of_fold(data, fold, params.learners, context), strict=True)
    result = np.stack(predictions, axis=-1)  # (n, m) or (n, k, m)
    target = data.targets if codes is not None else data.y
    missed = (result - target[..., None]) ** 2
    errors = np.average(missed if codes is None else missed.sum(axis=1), axis=0, weights=data.weights)
    if params.final_estimator is not None:
        above = context.fit(params.final_estimator, _above(data, result))
        return Fit(State(members, np.zeros(count), above, errors), iterations=count)
    repeat = 1 if codes is None else target.shape[1]
    coef = weights(result.reshape(-1, count), target.ravel(), np.repeat(data.weights, repeat))
    warnings = [] if coef.any() else ["No member helps to predict: all of them count alike."]
    return Fit(
        State(members, coef if coef.any() else np.full(count, 1 / count), None, errors),
        warnings=warnings,
    )


def predict(params: Stacking, state: State, x: Matrix) -> NDArray[Any]:
    predictions = [member.predict(x) for member in state.members]
    if state.second is not None:
        return state.second.predict(_inputs(predictions))
    predicted = np.stack(predictions, axis=-1) @ state.weights
    return predicted / predicted.sum(axis=1, keepdims=True) if predicted.ndim == 2 else predicted


def weights(predictions: Matrix, target: Vector, rows: Vector) -> Vector:
    """(m,) the non-negative w that minimises Σ rows·(target − predictions w)². predictions: (n, m)."""
    root, m = np.sqrt(rows), predictions.shape[1]
    # The triangular factor holds all the information of the rows, in m + 1 of them.
    factor: Matrix = scipy.linalg.qr(np.column_stack([predictions * root[:, None], target * root]), mode="r")[0][
        : m + 1
    ]
    coef: Vector = scipy.optimize.nnls(factor[:, :m], factor[:, m])[0]
    return coef


def explain(params: Stacking, state: State, x: Matrix) -> list[JSON]:
    """For each row the prediction of every member, and how the final estimator combines them."""
    predictions = [member.predict(x) for member in state.members]
    explanations = by_row([member.name for member in state.members], predictions)
    if state.second is None:
        return explanations
    rows, names = _inputs(predictions), partial(_input_name, params)
    return [
        explanation | {"final_estimator": {"algorithm": state.second.name, **explain_row(state.second, row, names)}}
        for explanation, row in zip(explanations, rows, strict=True)
    ]


def summary(params: Stacking, state: State) -> JSON:
    """One record for each member, without a weight below a final estimator, whose record then comes last."""
    members: list[JSON] = [
        {
            "role": "member",
            "algorithm": spec.name,
            "weight": weight if state.second is None else None,
            "squared_error": error,
        }
        for spec, weight, error in zip(params.learners, state.weights, state.errors, strict=True)
    ]
    if state.second is None:
        return members
    fit = describe_fit(state.second, partial(_input_name, params))
    return [*members, {"role": "final_estimator", "algorithm": state.second.name, **fit}]


def _input_name(params: Stacking, number: int) -> JSON:
    """The member, counted from 0, its algorithm, and the class whose probability the input is: 0 in regression."""
    place, member = divmod(number, len(params.learners))
    return {"member": member, "algorithm": params.learners[member].name, "class": place}


def _inputs(predictions: Sequence[NDArray[Any]]) -> Matrix:
    """(n, m) or (n, k m) what the final estimator sees: the members' predictions, class by class."""
    result = np.stack(predictions, axis=-1)
    return np.ascontiguousarray(result.reshape(len(result), -1))


def _above(data: Data, result: NDArray[Any]) -> Data:
    """The rows as the second level sees them."""
    x = result.reshape(len(result), -1)
    return Data.of(data.task, x, data.y, classes=data.targets.shape[1], weights=data.weights)


def to_tensor(params: Stacking, state: State, x: Tensor) -> Tensor:
    votes = [learner_tensor(member, x) for member in state.members]
    if state.second is not None:
        order = np.arange(len(votes) * votes[0].width).reshape(len(votes), -1).T.ravel()
        inputs = votes[0].beside(*votes[1:])[order]
        return with_gaps(learner_tensor(state.second, inputs), inputs)
    total = sum_tensors([weight * vote for weight, vote in zip(state.weights.tolist(), votes, strict=True)])
    return normalised(total) if total.width > 1 else total


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    params=Stacking,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    explain=explain,
    for_task=lambda params, task: params.for_task(task),
    members=lambda params, task: [
        *(
            Member(f"/estimators/{i}", spec, task, partial(out_of_fold_fits, params.cv))
            for i, spec in enumerate(params.for_task(task).learners)
        ),
        *(
            []
            if params.final_estimator is None
            else [Member("/final_estimator", params.final_estimator, task, above=True)]
        ),
    ],
    summary=summary,
    breaks={
        Symmetry.COLUMN_ORDER: "a tree among the members takes the first of equally good columns",
        Symmetry.SCALE: "ridge and nearest neighbours among the members weigh columns by their units",
        Symmetry.WEIGHTS: "a row given twice can stand in two folds, a weight in one",
    },
)
