r"""Two-step learning: a projection is learned from all rows, and a learner from the labelled rows behind it.

The first step sees no target: a projection is fitted to the rows with a target and those without one, alike and each
once, whatever its weight. Where rows without a target are many, its directions, and the distances in it, are those of
the whole table. The second step maps the labelled rows by it, and fits a learner to their coordinates with their
targets and weights. A learner that learns from rows without a target itself gets these too, mapped alike.

It helps where the few labelled rows are too few to find the directions that matter, and the rows themselves show them:
the classes lie along the main directions, or in clusters. Where they lie in directions of little variance these are
lost in the first step. Compare with the estimator alone by cross-validation, which tests on labelled rows only.

In short: A projection is learned from all rows, with a target or without. A learner is then trained on the coordinates
of those with a target.

Use when: labels are dear, rows without one are many, and columns are too many for the labelled rows. Rows whose target
is missing count as rows without a label.

Two rows have a label; the other rows show that the first two columns move together, and the third is noise:

>>> from app.ml.catalogue.algorithm_files import find
>>> from app.ml.catalogue.nested import context
>>> t = np.linspace(-3, 3, 41)
>>> rest = Unlabelled(np.column_stack([t, t, np.cos(9 * t) / 2]))
>>> rows = Data.of(Task.CLASSIFICATION, [[-1.0, -1, 0.5], [1, 1, -0.5]], [0, 1], unlabelled=rest)
>>> params = find("two_step").algorithm.params(
...     representation={"name": "pca", "n_components": 1}, estimator={"name": "knn", "n_neighbors": 1}
... )
>>> state = fit(params, rows, context(0)).state
>>> print(state.representation.state.loadings[:, :2].round(2), predict(params, state, np.array([[2.0, 2, 3]])))
[[0.71 0.71]] [[0. 1.]]

References: Chapelle, Schölkopf & Zien (2006), Semi-Supervised Learning, MIT Press, ch. 1; Battiti & Brunato, The LION
Way, ch. 17.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

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
    Size,
    Symmetry,
    Task,
    learner,
)
from app.ml.contract.data import Unlabelled
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.clustering.seeding import canonical_order
from app.ml.numerics.ensembles.inner_report import describe_fit, explain_row
from app.ml.numerics.ensembles.member_predictions import explained
from app.ml.numerics.tensor_graphs.learner_tensors import learner_tensor


class TwoStep(Params):
    """A representation of all rows, and a learner of the labelled ones."""

    representation: Learner = learner(
        "Projection that is learned from all rows, without their targets.", name="pca", variance=0.95
    )
    estimator: Learner = learner("Learner that is trained on the coordinates of the labelled rows.", name="knn")


class State(NamedTuple):
    representation: FittedLearner
    estimator: FittedLearner
    rows: int
    """Rows that the representation was learned from."""
    labelled: int
    """Rows among them with a target."""

    def learners_with_levels(self, levels: Labels) -> Iterator[tuple[FittedLearner, Labels]]:
        """Each learner with the number of categories of the columns that it sees, of those (d,) of the matrix."""
        yield self.representation, levels
        yield self.estimator, levels[:0]  # it sees coordinates


def fit(params: TwoStep, data: Data, context: Context) -> Fit[State]:
    unlabelled = data.unlabelled or Unlabelled(data.x[:0])
    every = np.concatenate([data.x, unlabelled.x])
    representation = context.fit(params.representation, _all_rows(data, every))
    context.progress(0.5)
    estimator = context.fit(params.estimator, _mapped(data, unlabelled, representation))
    context.progress(1.0)
    return Fit(State(representation, estimator, len(every), len(data.x)), warnings=list(_warnings(unlabelled)))


def _all_rows(data: Data, x: Matrix) -> Data:
    """In an order that depends on the rows alone, so that not even rounding depends on which have a target."""
    rows = x[canonical_order(x)]
    return Data.of(Task.PROJECTION, rows, levels=data.levels, names=data.names, indicated=data.indicated)


def _mapped(data: Data, unlabelled: Unlabelled, representation: FittedLearner) -> Data:
    """The labelled rows by their coordinates, and the others beside them."""
    z = _coordinates(representation, data.x)
    names = [*map(_coordinate_name, range(z.shape[1]))]
    return data.mapped(
        z, names, unlabelled._replace(x=_coordinates(representation, unlabelled.x)) if len(unlabelled.x) else None
    )


def _coordinates(representation: FittedLearner, x: Matrix) -> Matrix:
    z = np.ascontiguousarray(representation.predict(x))
    z.setflags(write=False)
    return z


def _warnings(unlabelled: Unlabelled) -> Iterator[str]:
    if not len(unlabelled.x):
        yield "No row lacks the target: the representation is learned from the labelled rows alone."


def predict(params: TwoStep, state: State, x: Matrix) -> Matrix:
    return state.estimator.predict(_coordinates(state.representation, x))


def explain(params: TwoStep, state: State, x: Matrix) -> list[JSON]:
    """For each row the prediction of the learner and its explanation, beside the coordinates that it sees."""
    z = _coordinates(state.representation, x)
    members = explained([(state.estimator, z)])
    return [
        member | {"coordinates": row.tolist()} | explain_row(state.estimator, row, _coordinate_name)
        for member, row in zip(members, z, strict=True)
    ]


def summary(params: TwoStep, state: State) -> JSON:
    """Counts of rows, and what each step reports of itself, in coordinates for the second."""
    return {
        "rows": state.rows,
        "labelled_rows": state.labelled,
        "representation": {"name": state.representation.name, **describe_fit(state.representation, int)},
        "estimator": {"name": state.estimator.name, **describe_fit(state.estimator, _coordinate_name)},
    }


def _coordinate_name(number: int) -> str:
    return f"coordinate {number + 1}"


def _members(params: TwoStep, task: Task) -> list[Member]:
    return [
        Member("/representation", params.representation, Task.PROJECTION, _without_classes),
        Member("/estimator", params.estimator, task, above=True),
    ]


def _without_classes(size: Size) -> tuple[float, Size]:
    return 1.0, size._replace(classes=0)


def to_tensor(params: TwoStep, state: State, x: Tensor) -> Tensor:
    return learner_tensor(state.estimator, learner_tensor(state.representation, x))


ALGORITHM = Algorithm(
    tasks=(Task.CLASSIFICATION, Task.REGRESSION),
    params=TwoStep,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    accepts={Accepts.UNLABELLED},
    explain=explain,
    members=_members,
    summary=summary,
    breaks={
        Symmetry.SCALE: "the variance that directions of the default representation keep is in the units of columns",
        Symmetry.WEIGHTS: "every row counts once in the representation, whatever its weight",
    },
)
