r"""AdaBoost: small trees in sequence, each fitted mostly to the rows that those before it got wrong.

Rows have weights D, equal at first. Round l grows a tree hₗ on them, with weighted error eₗ, and gives it a vote

    αₗ = ln((1 − eₗ)/eₗ) + ln(k − 1)        k classes (SAMME),

multiplies the weights of the rows it got wrong by exp(αₗ) and makes them add up to 1 again. The votes are log odds:
P(class) ∝ exp(Σₗ αₗ [hₗ(x) = class]). For two classes that is the textbook's H = Σ wₗhₗ with hₗ = ±1 and
wₗ = αₗ/2 = ½ ln((1 − eₗ)/eₗ), which goes downhill on the mean of exp(−yH), and its probability is σ(2H): σ(H) would be
too timid. With a learning rate below 1 votes are smaller, and rounds more. A missing value goes to the side where more
is gained.

A tree without error ends it, its vote as if half of the lightest row were wrong; so does one that is no better than
chance, which has no vote. If already the first is none, the prediction is the shares of the classes.

In short: Small trees are fitted in sequence, each mostly to the rows that those before it got wrong. Each votes with
the log odds of its own success. The sum of votes is turned into probabilities.

Use when: there are few wrong labels, and a simple, strong classifier is wanted: it chases rows that cannot be right.
Wrong labels are better borne by `random_forest` or `logitboost`.

On 30 points of a line, of which 10 to 19 are the others, three stumps are enough, and the mean of exp(−yH) is
the product of 2√(eₗ(1 − eₗ)):

>>> line = Data.of(Task.CLASSIFICATION, np.arange(30.0)[:, None], [0] * 10 + [1] * 10 + [0] * 10)
>>> for rounds in 1, 2, 3:
...     found = fit(AdaBoost(n_estimators=rounds), line, Context.of(0))
...     e = np.array(found.curves["weighted_error"])
...     predicted = predict(AdaBoost(), found.state, line.x)
...     margin = np.log(predicted[:, 1] / predicted[:, 0]) / 2 * line.signs[:, 1]
...     wrong = int((predicted.argmax(axis=1) != line.y).sum())
...     print(wrong, bool(abs(np.exp(-margin).mean() / np.prod(2 * np.sqrt(e * (1 - e))) - 1) < 1e-12))
10 True
10 True
0 True

References: Freund & Schapire (1997), J. Comput. Syst. Sci. 55:119; Friedman, Hastie & Tibshirani (2000), Ann. Stat.
28:337; Zhu, Zou, Rosset & Hastie (2009), Stat. Interface 2:349; Battiti & Brunato, The LION Way, ch. 11.
"""

import math
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
    Matrix,
    Params,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.boosting.weak_trees import Majority, Weak
from app.ml.numerics.linear_models.softmax import probabilities
from app.ml.numerics.tensor_graphs.class_tensors import softmax_shares
from app.ml.numerics.tensor_graphs.tree_tensors import tree_totals
from app.ml.numerics.trees.forest import Trees, stages, total
from app.ml.numerics.trees.forest_builder import together
from app.ml.numerics.trees.growth import planted
from app.ml.numerics.trees.tree_nodes import TreeNodes

MIN_ERROR = float(np.finfo(float).tiny)
"""Error that a tree is taken to have at least: the lightest row may weigh nothing beside the others."""


class AdaBoost(Params):
    n_estimators: int = Field(50, ge=1, le=10_000, description="Maximum number of trees.")
    max_depth: int = Field(1, ge=1, le=20, description="Maximum depth of a tree; 1 is a stump.")
    learning_rate: float = Field(
        1.0, gt=0, le=1, description="Shrinkage: the factor by which the vote of a tree is multiplied."
    )


class State(NamedTuple):
    trees: Trees
    """Leaves have the value αₗ for their class, else 0."""
    votes: Vector
    """(rounds,) αₗ, learning rate included."""
    errors: Vector
    """(rounds,) eₗ."""


def fit(params: AdaBoost, data: Data, context: Context) -> Fit[State]:
    k = data.targets.shape[1]
    weak = Weak(data, params.max_depth)
    majority = Majority(data, weak.real)
    trees, votes, errors, training = [], [], [], []
    for rounds in range(1, params.n_estimators + 1):
        tree, result = weak.grown(majority.weights)
        error = majority.error(result)
        if k == 1 or error >= 1 - 1 / k:
            break
        vote = params.learning_rate * _vote(max(error, majority.weights.min() / 2, MIN_ERROR), k)
        trees.append(planted(tree, data.levels, vote * np.eye(k), tree.value.argmax(axis=1)))
        votes.append(vote)
        errors.append(error)
        training.append(majority.add(result, vote))
        context.progress(rounds / params.n_estimators, weighted_error=error, training_error=training[-1])
        if not error:
            break
        majority.stress(result, math.exp(vote))
        del result  # its memory is for the next tree to grow in
    curves = {"weighted_error": errors, "training_error": training}
    if not trees:
        return Fit(
            _shares(data), warnings=["No tree is better than chance: the model predicts the shares of the classes."]
        )
    return Fit(State(together(trees), np.array(votes), np.array(errors)), iterations=len(trees), curves=curves)


def predict(params: AdaBoost, state: State, x: Matrix) -> Matrix:
    scores = total(state.trees, x)
    return probabilities(scores) if scores.shape[1] > 1 else np.ones(scores.shape)


def explain(params: AdaBoost, state: State, x: Matrix) -> list[JSON]:
    """For each row how every tree votes, and the probabilities after it."""
    votes = stages(state.trees, x)
    after = probabilities(votes.cumsum(axis=0).reshape(-1, votes.shape[2])).reshape(votes.shape)
    return [
        {
            "stages": [
                {"class": int(vote.argmax()), "vote": float(vote.max()), "probabilities": now.tolist()}
                for vote, now in zip(votes[:, row], after[:, row], strict=True)
            ]
        }
        for row in range(len(x))
    ]


def summary(params: AdaBoost, state: State) -> JSON:
    return {"rounds": state.votes.size, "votes": state.votes.tolist(), "weighted_errors": state.errors.tolist()}


def _vote(error: float, k: int) -> float:
    return math.log((1 - error) / error) + math.log(k - 1)


def _shares(data: Data) -> State:
    shares = data.weights @ data.targets / data.weights.sum()
    leaf = Weak(data, 0).grown(data.weights)[0]
    log_shares = np.log(np.maximum(shares, np.finfo(float).tiny))
    return State(planted(leaf, data.levels, log_shares[None]), np.zeros(0), np.zeros(0))


def to_tensor(params: AdaBoost, state: State, x: Tensor) -> Tensor:
    scores = tree_totals(state.trees, x)
    return softmax_shares(scores) if scores.width > 1 else scores.repeated(np.ones(1))


ALGORITHM = Algorithm(
    tasks={Task.CLASSIFICATION},
    params=AdaBoost,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    seconds=lambda params, size: params.n_estimators * (2e-4 + 4.5e-9 * size.cells * params.max_depth),
    explain=explain,
    summary=summary,
    queries={"tree": lambda _, state: TreeNodes(state.trees)},
    accepts={Accepts.MISSING, Accepts.CATEGORIES},
    breaks={
        Symmetry.COLUMN_ORDER: "of equally good splits that of the first column is taken",
        Symmetry.LABEL_NAMES: "of equally good splits and classes the first is taken",
    },
)
