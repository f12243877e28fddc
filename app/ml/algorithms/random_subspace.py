r"""Random subspaces: one learner fitted to different columns each time, and the average of the predictions.

Each member sees a random share of the columns, or one of the groups of columns that are named; regression predicts
the mean, classification the mean of the probabilities. Members that see different columns err on different
rows, so the average errs less than they do, provided that a part of the columns is enough to predict: good only where
columns are redundant.

A categorical column that the members take as it is, as trees do, is seen whole or not at all; of indicators a member
sees some of the categories. Where one such column matters most, members without it are poor, and a larger
`max_features` is better. On 5,000 rows with three categorical columns of eight the error with half of the columns is
0.409, with half of the indicators 0.416, and with five of the eight columns 0.399.

On the benchmark table `heavy_tails`, with 6 columns, the RMSE is 4.056 and scikit-learn's, with as many columns a
member, 3.965; it is 3.971 with `max_features` 0.6 (4 columns), 3.993 with 10 rows a leaf and 4.017 with 200 members. On
`wohnungen` (target `teuer`) the log loss is 0.192 for 0.172. Both differences are measured, and unexplained.

In short: One learner is fitted many times, each time to other columns. The prediction is the average. It helps where
columns are redundant.

Use when: there are many columns that hold nearly the same information, as with pixels, spectra or several groups of
measurements of one thing.

Each member has the same number of columns, and each column is seen by about as many members:

>>> rng = np.random.Generator(np.random.PCG64(0))
>>> shares = np.bincount(np.concatenate([subset(rng, 20, 0.25) for _ in range(4000)]), minlength=20) / 4000
>>> bool(np.abs(shares - 0.25).max() < 4 * (0.25 * 0.75 / 4000) ** 0.5)
True

References: Ho (1998), IEEE Trans. Pattern Anal. 20:832; Battiti & Brunato, The LION Way, ch. 11.
"""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    FittedLearner,
    Inputs,
    Labels,
    Learner,
    Matrix,
    Member,
    NestedFit,
    Params,
    Size,
    Symmetry,
    Task,
    learner,
)
from app.ml.contract.column_names import unknown
from app.ml.contract.params import MaxFeatures, feature_count
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.ensembles.member_predictions import explained
from app.ml.numerics.tensor_graphs.class_tensors import normalised, sum_tensors
from app.ml.numerics.tensor_graphs.learner_tensors import learner_tensor
from app.ml.numerics.trees.member_trees import MemberTrees

HALF, OF_FEW = 0.5, 0.7
FEW_COLUMNS = 20
"""With fewer columns a member sees more of them: without the one that matters most it is poor."""


class RandomSubspace(Params):
    estimator: Learner = learner("Learner that is trained for each member.", name="decision_tree", prior_weight=1.0)
    n_estimators: int = Field(
        25, ge=1, le=1000, description="Number of members; with `groups` there is one for each group."
    )
    max_features: MaxFeatures | None = Field(
        None,
        description="Columns drawn for each member: a number of them (5), or a share of all (0.5). Null: half of them, "
        "of fewer than 20 columns seven tenths.",
    )
    groups: list[Annotated[list[str], Field(min_length=1, max_length=10_000)]] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="Inputs by name, a group for each member; null: columns are drawn at random.",
    )


class State(NamedTuple):
    members: tuple[FittedLearner, ...]
    columns: tuple[Labels, ...]
    """Places in the matrix that each member sees, ascending."""

    def learners_with_levels(self, levels: Labels) -> Iterator[tuple[FittedLearner, Labels]]:
        """Each member with the number of categories (p,) of the columns that it sees, of those (d,) of the matrix."""
        return ((member, levels[places]) for member, places in zip(self.members, self.columns, strict=True))


def fit(params: RandomSubspace, data: Data, context: Context) -> Fit[State]:
    if params.groups is None:
        seen = [
            subset(context.rng, data.x.shape[1], _wanted(params, data.x.shape[1])) for _ in range(params.n_estimators)
        ]
    else:
        seen = [_named(group, data.names) for group in params.groups]
    members = tuple(context.fit_all([NestedFit(params.estimator, partial(data.columns, places)) for places in seen]))
    return Fit(State(members, tuple(seen)), iterations=len(members))


def predict(params: RandomSubspace, state: State, x: Matrix) -> NDArray[np.float64]:
    total = np.zeros(())
    for member, places in zip(state.members, state.columns, strict=True):
        total = total + member.predict(np.ascontiguousarray(x[:, places]))
    predicted: NDArray[np.float64] = total / (
        total.sum(axis=1, keepdims=True) if total.ndim == 2 else len(state.members)
    )
    return predicted


def subset(rng: np.random.Generator, columns: int, max_features: float) -> Labels:
    """Some of the columns, ascending."""
    return np.sort(rng.permutation(columns)[: feature_count(max_features, columns)])


def explain(params: RandomSubspace, state: State, x: Matrix) -> list[JSON]:
    """For each row the prediction of every member."""
    return explained(
        [(m, np.ascontiguousarray(x[:, places])) for m, places in zip(state.members, state.columns, strict=True)]
    )


def summary(params: RandomSubspace, state: State) -> JSON:
    return {"members": len(state.members), "columns": [places.tolist() for places in state.columns]}


def faults(params: RandomSubspace, inputs: Inputs) -> Iterator[Fault]:
    for place, group in enumerate(params.groups or ()):
        yield from unknown(group, f"/groups/{place}", inputs.kinds)


def _wanted(params: RandomSubspace, columns: float) -> float:
    return params.max_features or (OF_FEW if columns < FEW_COLUMNS else HALF)


def _fits(params: RandomSubspace, size: Size) -> tuple[float, Size]:
    if params.groups is None:
        return params.n_estimators, size._replace(columns=feature_count(_wanted(params, size.columns), size.columns))
    named = sum(map(len, params.groups)) / len(params.groups)
    return len(params.groups), size._replace(columns=min(size.columns, named))


def _named(group: list[str], names: tuple[str, ...]) -> Labels:
    """Columns of these inputs: a category's are named after it. Raises InvalidData for names that are not there."""
    places = [
        [i for i, name in enumerate(names) if name == column or name.startswith(f"{column}=")] for column in group
    ]
    if not all(places):
        raise InvalidData("A group of columns names inputs that the matrix does not have.")
    return np.unique(np.concatenate(places)).astype(np.intp)


def to_tensor(params: RandomSubspace, state: State, x: Tensor) -> Tensor:
    parts = [learner_tensor(m, x[places]) for m, places in zip(state.members, state.columns, strict=True)]
    total = sum_tensors(parts)
    return normalised(total) if total.width > 1 else total / float(len(parts))


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    params=RandomSubspace,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    explain=explain,
    members=lambda params, task: [Member("/estimator", params.estimator, task, partial(_fits, params))],
    summary=summary,
    queries={"tree": lambda _, state: MemberTrees.of(state.members, state.columns)},
    faults=faults,
    breaks={Symmetry.COLUMN_ORDER: "columns are drawn by their place"},
)
