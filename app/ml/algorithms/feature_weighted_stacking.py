r"""Feature-weighted linear stacking: members whose weights follow the row.

    b(x) = Σᵢ Σⱼ vᵢⱼ fⱼ(x) gᵢ(x),

with members gᵢ and meta-features fⱼ: 1 and the columns named. The weight of a member, Σⱼ vᵢⱼ fⱼ(x), is linear in the
meta-features, and v is found by least squares on the products fⱼ(x) gᵢ(x), where each gᵢ predicts rows it has not
seen (out of fold). Of dependent products the smallest v is taken. The members are then fitted again, on all rows.

In short: Several learners are combined with weights that are not fixed but follow the row. The weights are linear in
columns you name, found by least squares on predictions for unseen rows.

Use when: one member is better for some rows and another for others, and a column shows which: few ratings, new
customers, another machine. With no meta-features it is linear stacking.

A member that is right where f = 0 and one that is right where f = 1 share the rows between them:

>>> f = np.array([0.0, 1, 0, 1, 0, 1])
>>> g = np.array([[3.0, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]]).T
>>> y = np.where(f == 0, g[:, 0], g[:, 1])
>>> np.round(combination(g, np.column_stack([np.ones(6), f]), y, np.ones(6)), 12) + 0.0
array([[ 1., -1.],
       [ 0.,  1.]])

References: Sill, Takács, Mackey & Lin (2009), Feature-Weighted Linear Stacking; Battiti & Brunato, The LION Way,
ch. 11.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import scipy
from pydantic import Field

from app.base.errors import InvalidData
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
    Params,
    Symmetry,
    Task,
    Vector,
    learner,
)
from app.ml.contract.column_names import unknown
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.ensembles.member_predictions import explained
from app.ml.numerics.sampling.content_order import in_content_order
from app.ml.numerics.sampling.folds import dealt, out_of_fold, out_of_fold_fits
from app.ml.numerics.tensor_graphs.learner_tensors import learner_tensor


class FeatureWeightedStacking(Params):
    estimators: list[Learner] = learner("Members, whose predictions are combined.", "ridge", "knn", "random_forest")
    meta_features: list[str] = Field(
        [],
        max_length=100,
        description="Columns that the weights follow, by name, a category as plan=pro; 1 is always one.",
    )
    cv: int = Field(
        5,
        ge=2,
        le=50,
        description="Number of folds whose out-of-fold predictions determine the weights of the members.",
    )


class State(NamedTuple):
    members: tuple[FittedLearner, ...]
    meta: Labels
    """Places of the meta-features in the matrix."""
    v: Matrix
    """(m, 1 + f)."""


def fit(params: FeatureWeightedStacking, data: Data, context: Context) -> Fit[State]:
    data = in_content_order(data)
    n, meta = len(data.x), _places(params.meta_features, data.names)
    fold = dealt(n, min(params.cv, n), context.rng)
    members, predictions = zip(*out_of_fold(data, fold, params.estimators, context), strict=True)
    v = combination(np.column_stack(predictions), _meta(data.x, meta), data.y, data.weights)
    return Fit(State(members, meta, v), iterations=len(members))


def predict(params: FeatureWeightedStacking, state: State, x: Matrix) -> Vector:
    g = np.column_stack([member.predict(x) for member in state.members])
    predicted: Vector = np.einsum("ni,ij,nj->n", g, state.v, _meta(x, state.meta))
    return predicted


def combination(g: Matrix, f: Matrix, y: Vector, rows: Vector) -> Matrix:
    """(m, 1 + f) the v that minimises Σ rows·(y − Σᵢⱼ vᵢⱼ fⱼ gᵢ)², the smallest of several."""
    root = np.sqrt(rows)[:, None]
    products = (g[:, :, None] * f[:, None, :]).reshape(len(g), -1) * root
    unit = np.sqrt((products**2).sum(axis=0))
    unit[unit == 0] = 1.0
    coef = scipy.linalg.lstsq(products / unit, y * root[:, 0])[0] / unit
    return np.ascontiguousarray(coef.reshape(g.shape[1], f.shape[1]))


def explain(params: FeatureWeightedStacking, state: State, x: Matrix) -> list[JSON]:
    """For each row the prediction of every member."""
    return explained([(member, x) for member in state.members])


def summary(params: FeatureWeightedStacking, state: State) -> JSON:
    """Weights of each member: of the constant, then of each meta-feature."""
    members: list[JSON] = [
        {"algorithm": spec.name, "weights": weights}
        for spec, weights in zip(params.estimators, state.v.tolist(), strict=True)
    ]
    return {"meta_features": ["1", *params.meta_features], "members": members}


def _meta(x: Matrix, places: Labels) -> Matrix:
    return np.column_stack([np.ones(len(x)), x[:, places]])


def _places(wanted: list[str], names: tuple[str, ...]) -> Labels:
    """Raises InvalidData for names that are not there."""
    if not set(wanted) <= set(names):
        raise InvalidData("A meta-feature is not among the columns of the matrix; a category is named as plan=pro.")
    return np.array([names.index(name) for name in wanted], np.intp)


def to_tensor(params: FeatureWeightedStacking, state: State, x: Tensor) -> Tensor:
    votes = [learner_tensor(member, x) for member in state.members]
    meta = x.repeated(np.ones(1)).beside(x[state.meta])
    return (votes[0].beside(*votes[1:]) * (meta @ state.v.T)).reduce("ReduceSum")


ALGORITHM = Algorithm(
    tasks={Task.REGRESSION},
    params=FeatureWeightedStacking,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    explain=explain,
    members=lambda params, task: [
        Member(f"/estimators/{i}", spec, task, partial(out_of_fold_fits, params.cv))
        for i, spec in enumerate(params.estimators)
    ],
    reads=True,
    summary=summary,
    faults=lambda params, inputs: unknown(params.meta_features, "/meta_features", inputs.kinds),
    breaks={
        Symmetry.COLUMN_ORDER: "a tree among the members takes the first of equally good columns",
        Symmetry.SCALE: "ridge and nearest neighbours among the members weigh columns by their units",
        Symmetry.WEIGHTS: "a row given twice can stand in two folds, a weight in one",
    },
)
