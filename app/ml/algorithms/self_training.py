r"""Self-training: a classifier labels the rows without a target that it is surest of, and learns from these too.

In each round the classifier is trained on all rows with a label. Of the other rows, those whose most probable class
has at least `min_probability` get that class as their label, and the next round learns from them as well. It ends when
no row is left, when no row reaches `min_probability`, or after `max_iter` rounds. A label once given stays. It has the
mean weight of the rows of its class, so that class weights count for it too.

It helps where the classes are clusters: the boundary then moves to where rows are rare. Where this does not hold, early
mistakes are learned as if they were true, and the result is worse than that of the labelled rows alone: compare the two
by cross-validation, which tests on labelled rows only. The probabilities should be calibrated.

In short: A classifier is trained on the rows with a label, labels the rows without one that it is surest of, and is
trained again, round by round.

Use when: labels are dear, rows without one are many, and rows of one class lie together. Rows whose target is missing
count as rows without a label.

From one row of each class on a line, the labels spread to the rows beside them. One row a round is labelled here:

>>> from app.ml.catalogue.algorithm_files import find
>>> from app.ml.catalogue.nested import context
>>> line = np.array([[0.0], [10.0]]), Unlabelled(np.array([[1.0], [2.0], [8.0], [7.0]]))
>>> rows = Data.of(Task.CLASSIFICATION, line[0], [0, 1], unlabelled=line[1])
>>> nearest = find("self_training").algorithm.params(estimator={"name": "knn", "n_neighbors": 1}, k_best=1)
>>> state = fit(nearest, rows, context(0)).state
>>> print(state.codes, state.rounds)
[0 0 1 1] [1 2 3 4]

References: Scudder (1965), IEEE Trans. Inf. Theory 11:363; Yarowsky (1995), ACL, 189; Battiti & Brunato, The LION Way,
ch. 17.
"""

from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Accepts,
    Algorithm,
    Context,
    Data,
    Fit,
    FittedLearner,
    Labels,
    Learner,
    Matrix,
    Member,
    Params,
    Symmetry,
    Task,
    Vector,
    learner,
)
from app.ml.contract.data import Unlabelled
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.ensembles.agreement import reaches
from app.ml.numerics.ensembles.member_predictions import explained
from app.ml.numerics.tensor_graphs.learner_tensors import learner_tensor

LISTED = 1000
"""Labels in the report."""


class SelfTraining(Params):
    estimator: Learner = learner("Learner that is trained for each round, a classifier.", name="logistic")
    min_probability: float = Field(
        0.75, gt=0, le=1, description="Smallest probability of the best class with which a row gets it as its label."
    )
    k_best: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Largest number of rows that get a label in one round, the most probable first; null: all that "
        "reach `min_probability`.",
    )
    max_iter: int = Field(10, ge=1, le=1000, description="Maximum number of rounds that label rows.")


class State(NamedTuple):
    member: FittedLearner
    """The classifier of the last round."""
    codes: Labels
    """(m,) classes given to the unlabelled rows; of those without a label 0."""
    rounds: Labels
    """(m,) the round that gave the label, from 1; 0 without one."""
    probability: Vector
    """(m,) of the class when it was given; NaN without one."""
    numbers: Labels
    """(m,) numbers of the unlabelled rows in the dataset, from 0."""


def fit(params: SelfTraining, data: Data, context: Context) -> Fit[State]:
    unlabelled = data.unlabelled or Unlabelled(data.x[:0])
    m, weight = len(unlabelled.x), _class_weights(data)
    codes, rounds, probability = np.zeros(m, np.intp), np.zeros(m, np.intp), np.full(m, np.nan)
    member, counts, ended = context.fit(params.estimator, data), list[int](), False
    for turn in range(1, params.max_iter + 1):
        left = np.flatnonzero(rounds == 0)
        shares = member.predict(unlabelled.x[left]) if left.size else np.zeros((0, 1))
        sure = _surest(params, shares.max(axis=1))
        ended = not sure.size
        if ended:
            break
        chosen = left[sure]
        codes[chosen], probability[chosen], rounds[chosen] = shares[sure].argmax(axis=1), shares[sure].max(axis=1), turn
        counts.append(sure.size)
        labelled = np.flatnonzero(rounds)
        member = context.fit(params.estimator, data.labelled(labelled, codes[labelled], weight[codes[labelled]]))
        context.progress(turn / params.max_iter, labelled=float(labelled.size))
    numbers = np.arange(m) if unlabelled.numbers is None else unlabelled.numbers
    return Fit(
        State(member, codes, rounds, probability, numbers),
        converged=ended or bool(rounds.all()),
        iterations=len(counts),
        curves={"labelled_rows": np.cumsum(counts, dtype=float).tolist()},
        warnings=[*_warnings(params, data, codes[rounds > 0], m)],
    )


def _class_weights(data: Data) -> Vector:
    """(k,) mean weight of the labelled rows of each class; 1 for a class without rows."""
    count = data.targets.sum(axis=0)
    return np.where(count > 0, data.weights @ data.targets / np.maximum(count, 1), 1.0)


def _surest(params: SelfTraining, probability: Vector) -> Labels:
    """Places of the rows that get a label, ascending; of equal rows the first."""
    sure = np.flatnonzero(reaches(probability, params.min_probability))
    return np.sort(sure[np.argsort(-probability[sure], kind="stable")][: params.k_best])


def _warnings(params: SelfTraining, data: Data, labelled: Labels, m: int) -> list[str]:
    if not m:
        return ["No row lacks the target: this is the estimator, trained on the labelled rows alone."]
    if not labelled.size:
        return [f"No row without a target reached a probability of {params.min_probability:g}: none got a label."]
    present = data.targets.sum(axis=0) > 0
    lost = int((present & (np.bincount(labelled, minlength=present.size) == 0)).sum())
    return [f"{lost} of {int(present.sum())} classes were given to no row without a target."] if lost else []


def predict(params: SelfTraining, state: State, x: Matrix) -> Matrix:
    return state.member.predict(x)


def explain(params: SelfTraining, state: State, x: Matrix) -> list[JSON]:
    """For each row the explanation of the classifier of the last round."""
    return explained([(state.member, x)])


def summary(params: SelfTraining, state: State) -> JSON:
    labelled = np.flatnonzero(state.rounds)
    listed = labelled[np.argsort(state.rounds[labelled], kind="stable")][:LISTED]
    return {
        "unlabelled_rows": state.rounds.size,
        "labelled_rows": labelled.size,
        "min_probability": params.min_probability,
        "rounds": [_round(state, turn) for turn in range(1, int(state.rounds.max(initial=0)) + 1)],
        "labels": [
            {
                "row": int(state.numbers[place]),
                "class": int(state.codes[place]),
                "round": int(state.rounds[place]),
                "probability": float(state.probability[place]),
            }
            for place in listed
        ],
    }


def _round(state: State, turn: int) -> JSON:
    rows = state.rounds == turn
    counts = np.bincount(state.codes[rows])
    return {
        "round": turn,
        "labelled_rows": int(rows.sum()),
        "lowest_probability": float(state.probability[rows].min()),
        "by_class": [{"class": code, "rows": count} for code, count in enumerate(counts.tolist()) if count],
    }


def to_tensor(params: SelfTraining, state: State, x: Tensor) -> Tensor:
    return learner_tensor(state.member, x)


ALGORITHM = Algorithm(
    tasks={Task.CLASSIFICATION},
    params=SelfTraining,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    accepts={Accepts.UNLABELLED},
    explain=explain,
    members=lambda params, task: [
        Member("/estimator", params.estimator, task, lambda size: ((params.max_iter + 1) / 2, size))
    ],
    summary=summary,
    breaks={Symmetry.SCALE: "the penalty of the default estimator is on coefficients, per unit"},
)
