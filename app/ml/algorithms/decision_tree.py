r"""Decision tree: questions about one column at a time, ending in leaves that answer.

Grown greedily from the root: every node asks the question that takes the most impurity (entropy or Gini index of the
classes, variance of numbers) from its training rows, weighted over the ways out of it. A question is a threshold of a
number, `x <= t` with t half-way between two training values, or a subset of categories: the best one, except for more
than two classes with more than ten categories, where it is the best of the orders by each class's share. On a tie the
lowest column and then the lowest threshold is asked. A question that gains nothing is asked too, as the next may gain,
unless `min_gain` forbids it.

A missing value has a way of its own, a third branch, if the node saw missing values of that column (at least
`min_samples_leaf` of them). Otherwise a row with a missing value stops at the node and is answered by the node's own
training rows: the average of the branches, weighted by the share of rows in each. A category that the node has not
seen goes with the heavier side. Leaves answer with the mean, or the share of each class. Rows count by their weight.

Use when: the reasons must be readable, columns are of mixed kinds or have gaps, and effects are steps or interact.

Quinlan's 14 mornings: of 9 good and 5 bad ones, splitting off the overcast ones, all 4 good, gains 0.226 bits of 0.940
(0.102 of 0.459 by the Gini index), and the wind only 0.048.

>>> import numpy as np
>>> sunny, overcast, rain = range(3)
>>> outlook = [sunny] * 2 + [overcast] + [rain] * 3 + [overcast] + [sunny] * 2 + [rain, sunny, overcast, overcast, rain]
>>> windy = [0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1]
>>> play = [0, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 0]
>>> mornings = Data.of(Task.CLASSIFICATION, np.c_[outlook, windy], play, levels=[3, 2])
>>> for criterion in "entropy", "gini":
...     tree = fit(DecisionTree(criterion=criterion, max_depth=1), mornings, Context.of(0)).state
...     print(tree.column[0], tree.members, f"{tree.impurity[0]:.7f} {tree.gain[0] / 14:.7f}")
0 [False  True False] 0.9402860 0.2260002
0 [False  True False] 0.4591837 0.1020408

References: Breiman, Friedman, Olshen & Stone (1984), Classification and Regression Trees; Quinlan (1986),
Machine Learning 1:81; Quinlan (1993), C4.5, ch. 3.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract import (
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
from app.ml.numerics.impurity import ENTROPY, GINI, VARIANCE
from app.ml.numerics.tree import Tree, depths, importances, leaves, path
from app.ml.numerics.tree_growth import Rules, grow
from app.ml.numerics.tree_pruning import prune


class DecisionTree(Params):
    """Decision tree for regression and classification."""

    criterion: Literal["entropy", "gini"] = Field(
        "gini", description="Impurity of classes; numbers always use the variance."
    )
    max_depth: int | None = Field(None, ge=0, le=1000, description="Questions asked on any way; absent: no limit.")
    min_samples_leaf: float = Field(3.0, gt=0, description="Weight of training rows that every leaf must have.")
    min_samples_split: float = Field(2.0, gt=0, description="A node of less weight is a leaf.")
    min_gain: float = Field(0.0, ge=0, description="A question must lower the node's impurity by at least this.")
    pruning: float = Field(
        0.0,
        ge=0,
        description="Impurity, as a share of the root's, that each further leaf must take away (cost-complexity).",
    )


def fit(params: DecisionTree, data: Data, context: Context) -> Fit[Tree]:
    criterion = {"entropy": ENTROPY, "gini": GINI}[params.criterion] if data.task is Task.CLASSIFICATION else VARIANCE
    limit = math.inf if params.max_depth is None else params.max_depth
    rules = Rules(criterion, limit, params.min_samples_split, params.min_samples_leaf, params.min_gain)
    tree = grow(data, rules, context.progress)
    return Fit(prune(tree, params.pruning) if params.pruning else tree, iterations=int(depths(tree).max()))


def predict(params: DecisionTree, state: Tree, x: Matrix) -> NDArray[np.float64]:
    answers: NDArray[np.float64] = state.value[leaves(state, x)]
    return answers


def explain(params: DecisionTree, state: Tree, x: Matrix) -> list[JSON]:
    """For each row the questions on its way with their answers, and the leaf: its training rows and what it says.

    A column is told by its number, categories by their codes, rows by their weight.
    """
    return [_told(state, row) for row in x]


def _told(tree: Tree, row: Vector) -> JSON:
    *asked, leaf = path(tree, row)
    answers = [_answer(tree, node, float(row[tree.column[node]])) for node in asked]
    end = {"rows": float(tree.weight[leaf]), "answer": tree.value[leaf].tolist()}
    if tree.column[leaf] >= 0:
        end["stopped"] = f"column {tree.column[leaf]} is missing, which this node has not seen"
    return {"path": answers, "leaf": end}


def _answer(tree: Tree, node: int, value: float) -> JSON:
    column, threshold, (begin, end) = int(tree.column[node]), float(tree.threshold[node]), tree.subset[node]
    told: dict[str, JSON] = {"column": column, "rows": float(tree.weight[node])}
    if math.isnan(value):
        return told | {"op": "missing", "branch": "missing"}
    if math.isinf(threshold):
        return told | {"op": "known", "branch": "left"}
    if begin < 0:
        yes = value <= threshold
        return told | {"op": "<=" if yes else ">", "threshold": threshold, "branch": "left" if yes else "right"}
    named = tree.members[begin:end]
    yes = bool(named[int(value)])
    codes = np.flatnonzero(named).tolist()
    return told | {"op": "in" if yes else "not in", "categories": codes, "branch": "left" if yes else "right"}


def summary(params: DecisionTree, state: Tree) -> JSON:
    """Size, and each column's share in what the questions gained, largest first."""
    return {
        "depth": int(depths(state).max()),
        "nodes": len(state.column),
        "leaves": int((state.column < 0).sum()),
        "importances": [{"column": j, "importance": share} for j, share in importances(state).items()],
    }


ALGORITHM = Algorithm(
    tasks={Task.REGRESSION, Task.CLASSIFICATION},
    params=DecisionTree,
    state=Tree,
    fit=fit,
    predict=predict,
    rowwise=True,
    explain=explain,
    summary=summary,
    accepts={Accepts.MISSING, Accepts.CATEGORIES},
    breaks={Symmetry.COLUMN_ORDER: "of questions that gain the same, the one about the lowest column is asked."},
)
