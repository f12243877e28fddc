r"""Boosting by majority: small trees with equal votes, provided that each of them is a little better than chance.

Rows weigh the same at first; after every round the rows that its tree got wrong are multiplied by

    α = (1/2 + γ)/(1/2 − γ),

and the prediction is the unweighted majority. If every tree is right on at least 1/2 + γ of the weight, whatever the
weights, the majority is wrong on at most n(1 − 4γ²)^{T/2} of n rows after T rounds: on none after T > ln n/(2γ²). By
default there are so many rounds, or without a given γ four times those after which the majority has been wrong on no
training row, if these are fewer: with γ = 0.02 the theorem needs 8,635 rounds for 1,000 rows, where 145 err as little
on new ones (in 0.1 s, not 4). Their number is odd, so that votes of two classes cannot tie. A tree whose edge falls
short of γ ends it: the summary names the round, and the model is that of the rounds before it. If that is the first
tree, and γ is given, the fit fails.

By default γ is the largest of 0.1, 0.05 and 0.02 with which no tree falls short; if even 0.02 is too large,
as where classes overlap, the rounds before the first such tree are the model, and nothing is guaranteed. Trees have 3
splits one after the other for two classes, and one more each time the classes double, as a tree must be right on half
of the weight whatever the number of classes. Beside γ = 0.1 and depth 2 in all cases the test error is 0.104, not
0.174, on 5,000 rows of two overlapping classes (AdaBoost of 100 such trees: 0.090), and below 0.03, not 0.68, on
digits of ten classes; where γ = 0.1 and depth 2 suffice, trees that are deeper can be worse (wine 0.097, not 0.056,
and breast_cancer 0.031, not 0.018, by two splits).

In short: Small trees with equal votes are fitted in sequence; rows that were got wrong count more by a fixed factor. If
every tree beats chance by `edge`, the majority is provably right on all training rows. If one does not, a warning names
its round.

Use when: a guarantee is wanted, or to learn how weak a weak learner is. For two classes; with more, trees must be
deep enough to be right on half of the weight. `adaboost` finds each tree's edge itself, and is usually better.

On 30 points of a line, of which 10 to 19 are the others, stumps have an edge of 1/6, so that α = 2: no weighted error
is above 1/3, and after 62 rounds as after 3 nothing is wrong.

>>> line = Data.of(Task.CLASSIFICATION, np.arange(30.0)[:, None], [0] * 10 + [1] * 10 + [0] * 10)
>>> for rounds in 1, 3, 62:
...     found = fit(BoostMajority(edge=1 / 6, n_estimators=rounds, max_depth=1), line, Context.of(0))
...     wrong = int((predict(BoostMajority(), found.state, line.x).argmax(axis=1) != line.y).sum())
...     print(wrong, f"{max(found.curves['weighted_error']):.4f}", found.converged)
10 0.3333 True
0 0.3333 True
0 0.3333 True

References: Schapire (1990), Mach. Learn. 5:197; Freund (1995), Inf. Comput. 121:256.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.base.errors import InvalidData
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
from app.ml.numerics.tensor_graphs.tree_tensors import tree_totals
from app.ml.numerics.trees.forest import Trees, stages, total
from app.ml.numerics.trees.forest_builder import together
from app.ml.numerics.trees.growth import planted
from app.ml.numerics.trees.tree_nodes import TreeNodes

EDGES = 0.1, 0.05, 0.02
"""Edges that are tried, where none is given."""
SETTLED = 4
"""Rounds by default, for each of those after which no training row has been wrong."""
ROUNDING = 1e-9
"""Tolerance for an edge that is γ exactly."""


class BoostMajority(Params):
    edge: float | None = Field(
        None,
        ge=0.02,
        lt=0.5,
        description="Edge γ over 1/2 that every tree must have; null: the largest of 0.1, 0.05 and 0.02 that holds.",
    )
    n_estimators: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="Maximum number of trees; null: as many as the theorem requires, or without an `edge` four times "
        "those after which no training row is wrong, if these are fewer.",
    )
    max_depth: int | None = Field(
        None,
        ge=1,
        le=20,
        description="Maximum depth of a tree; 1 is a stump; null: 3 for two classes, 1 more each time classes double.",
    )


class State(NamedTuple):
    trees: Trees
    """Leaves have the value 1 for their class, else 0."""
    edges: Vector
    """(rounds,) by how much each tree was right on more than half of the weight."""
    failed: int
    """The round, from 1, whose tree had not the edge; 0 if none."""
    edge: float
    """The edge that every tree has to have."""


def fit(params: BoostMajority, data: Data, context: Context) -> Fit[State]:
    weak = Weak(data, params.max_depth or _depth(data.targets.shape[1]))
    if params.edge is not None:
        boosted = _boosted(params, params.edge, data, weak, context)
        if boosted.state.failed == 1:
            raise InvalidData(_shortfall(1, boosted.state.edges[0], params.edge))
        return boosted
    for required in EDGES:
        boosted = _boosted(params, required, data, weak, context)
        if not boosted.state.failed:
            break
    return replace(boosted, converged=True, warnings=[])


def _boosted(params: BoostMajority, required: float, data: Data, weak: Weak, context: Context) -> Fit[State]:
    n, k = data.targets.shape
    rounds = params.n_estimators or _enough(n, required)
    majority = Majority(data, np.min_scalar_type(rounds))
    may_settle = params.edge is None and params.n_estimators is None
    factor = (0.5 + required) / (0.5 - required)
    trees: list[Trees] = []
    edges, training, failed, last_wrong = [], [], 0, 0
    for number in range(1, rounds + 1):
        tree, result = weak.grown(majority.weights)
        edge = 0.5 - majority.error(result)
        if edge < required - ROUNDING:
            failed = number
            if trees:
                break
        trees.append(planted(tree, data.levels, np.eye(k), tree.value.argmax(axis=1)))
        edges.append(edge)
        training.append(majority.add(result, 1))
        context.progress(number / rounds, weighted_error=0.5 - edge, training_error=training[-1])
        last_wrong = number if training[-1] > 0 else last_wrong
        if failed or (may_settle and number % 2 == 1 and number >= SETTLED * (last_wrong + 1)):
            break
        majority.stress(result, factor)
    state = State(together(trees), np.array(edges), failed, required)
    curves = {"weighted_error": [0.5 - edge for edge in edges], "training_error": training}
    return Fit(
        state, converged=not failed, iterations=len(trees), curves=curves, warnings=_warnings(failed, edge, required)
    )


def predict(params: BoostMajority, state: State, x: Matrix) -> Matrix:
    """Shares of the votes."""
    return total(state.trees, x) / state.trees.root.size


def explain(params: BoostMajority, state: State, x: Matrix) -> list[JSON]:
    """For each row the class that every tree votes for, and the shares of the votes after it."""
    votes = stages(state.trees, x)
    shares = votes.cumsum(axis=0) / np.arange(1, len(votes) + 1)[:, None, None]
    return [
        {
            "stages": [
                {"class": int(vote.argmax()), "probabilities": now.tolist()}
                for vote, now in zip(votes[:, row], shares[:, row], strict=True)
            ]
        }
        for row in range(len(x))
    ]


def summary(params: BoostMajority, state: State) -> JSON:
    return {
        "rounds": state.edges.size,
        "edge": state.edge,
        "realised_edge": float(state.edges.min()),
        "assumption_failed_in_round": state.failed or None,
    }


def _enough(rows: int, required: float) -> int:
    """The smallest odd number of rounds above ln n / (2γ²)."""
    return (math.floor(math.log(rows) / (2 * required**2)) + 1) | 1


def _depth(classes: int) -> int:
    """Splits one after the other that let a tree be right on half of the weight."""
    return 2 + max(1, (classes - 1).bit_length())


def _warnings(failed: int, edge: float, required: float) -> list[str]:
    return [_shortfall(failed, edge, required)] if failed else []


def _shortfall(failed: int, edge: float, required: float) -> str:
    short = f"the tree's edge was {edge:.3g}, not {required:.3g}"
    return f"The weak-learner assumption failed in round {failed}: {short}. Take a smaller `edge` or deeper trees."


def to_tensor(params: BoostMajority, state: State, x: Tensor) -> Tensor:
    return tree_totals(state.trees, x) / float(state.trees.root.size)


ALGORITHM = Algorithm(
    tasks={Task.CLASSIFICATION},
    params=BoostMajority,
    state=State,
    degrees=lambda _: True,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    seconds=lambda params, size: (
        (params.n_estimators or _enough(int(size.rows), params.edge or EDGES[0]))
        * (2e-4 + 4.5e-9 * size.cells * (params.max_depth or _depth(int(size.classes))))
    ),
    explain=explain,
    summary=summary,
    queries={"tree": lambda _, state: TreeNodes(state.trees)},
    accepts={Accepts.MISSING, Accepts.CATEGORIES},
    breaks={
        Symmetry.COLUMN_ORDER: "of equally good splits that of the first column is taken",
    },
)
