r"""Imported trees: a sum of trees that XGBoost, LightGBM or scikit-learn has grown, read from its file.

A job of the kind `import` makes such a model; no training does. The trees are those of the file: each test sends every
number to the side that the library sends it to, and leaves are added in the library's order and precision. The sum
starts at a constant, and a function (`transform`) makes the prediction of it, as the objective in the file demands: the
sum itself, the logistic function of it (`sigmoid`, or `one_against_rest` for one class each, which do not add up to 1,
as in LightGBM), `softmax`, 1 where the sum is above 0 (`step`), exp(sum), log(1 + exp(sum)), or the square of the sum
with its sign.

A missing value goes to the side that the file states for the split. A category that the file does not name goes where
the library sends an unknown one, and is flagged.

In short: Trees of another library predict here as they did there. Nothing is fitted.

Use when: a model exists as a file of XGBoost or LightGBM, and is to be served as it is.

>>> from app.ml.numerics.trees.foreign_trees import ForeignTree, flattened
>>> no, zero = np.zeros(3, np.bool_), np.zeros(3, np.int64)
>>> columns, left = np.array([0, -1, -1], np.int32), np.array([1, -1, -1], np.int32)
>>> values = np.array([0, -1.0, 1.0])
>>> tree = ForeignTree(columns, np.array([0.5, 0, 0]), no, left, left + 1, no, values, no, no, zero, zero, zero[:0])
>>> state = State(flattened([tree], 1, zero[:1], single=False), zero[:1], np.array([0.0]), 2)
>>> predict(ImportedTrees(transform="sigmoid"), state, np.array([[0.5], [0.6], [np.nan]])).round(4).tolist()
[[0.7311, 0.2689], [0.2689, 0.7311], [0.2689, 0.7311]]

References: Chen & Guestrin (2016), KDD (XGBoost); Ke et al. (2017), NeurIPS (LightGBM); Cho & Li (2018), SysML
(treelite).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.errors import InvalidData, NoContributions
from app.ml.contract.algorithm import (
    JSON,
    Accepts,
    Algorithm,
    Context,
    Data,
    Fit,
    Labels,
    Matrix,
    Task,
    Vector,
)
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.class_probabilities.link_functions import LinkedSums, predicted
from app.ml.numerics.row_blocks import blocks
from app.ml.numerics.tensor_graphs.class_tensors import linked_values
from app.ml.numerics.tensor_graphs.tree_tensors import tree_sums, tree_values
from app.ml.numerics.trees.forest import Trees, each, total
from app.ml.numerics.trees.path_contributions import TreeScores, shares_of
from app.ml.numerics.trees.tree_nodes import TreeNodes


class ImportedTrees(LinkedSums):
    """Trees that another library has grown."""

    average: bool = Field(False, description="True where the trees are averaged, as in a forest, and not added.")


class State(NamedTuple):
    trees: Trees
    """Values (L, 1)."""
    output: Labels
    """(T,) the sum that each tree is added to."""
    base: Vector
    """(k,) the sums before the first tree."""
    classes: int
    """0 for numbers."""


def fit(params: ImportedTrees, data: Data, context: Context) -> Fit[State]:
    raise InvalidData("Trees of another library are imported, not trained: submit a job to /v1/jobs/import.")


def predict(params: ImportedTrees, state: State, x: Matrix) -> NDArray[np.float64]:
    return predicted(params, sums(params, state, x), classifies=state.classes > 0)


def sums(params: ImportedTrees, state: State, x: Matrix) -> Matrix:
    """(n, k) the sums, or means, of the trees and the base, in the library's order and precision."""
    single, k = params.arithmetic == "float32", state.base.size
    if k == 1 and not single:
        sums = total(state.trees, x)
        return (sums / state.output.size if params.average else sums) + state.base
    counts = np.bincount(state.output, minlength=k) if params.average else np.ones(k)
    kind = np.float32 if single else np.float64
    out = np.empty((len(x), k))
    for block in blocks(len(x), state.output.size + 1):
        leaves = each(state.trees, x[block])
        for c in range(k):
            terms = np.empty((len(leaves), 1 + int((state.output == c).sum())), kind)
            terms[:, 0] = 0 if params.average else state.base[c]
            terms[:, 1:] = leaves[:, state.output == c]
            out[block, c] = terms.cumsum(axis=1, dtype=kind)[:, -1]  # one after the other, as `sum` does not
    return out / counts + state.base if params.average else out


def scores(params: ImportedTrees, state: State) -> TreeScores:
    """The sums, in 64 bits whatever the library's precision.

    Raises NoContributions where the file did not state how many training rows each node has.
    """
    trees, k = state.trees, state.base.size
    if (trees.column >= 0).any() and not trees.share.any():
        raise NoContributions(
            "The imported version does not hold the numbers of training rows of the nodes of its trees (no_covers): "
            "import the model again, from a file that states them."
        )
    counts = np.bincount(state.output, minlength=k) if params.average else np.ones(k)
    unit = {"identity": "score" if state.classes else "target", "sigmoid": "log_odds", "exponential": "log(target)"}
    stated = "score" if params.sigmoid != 1 else unit.get(params.transform, "score")
    return TreeScores(trees, shares_of(trees), state.base, 1 / counts, stated, state.output)


def magnitudes(state: State, x: Matrix) -> Matrix:
    """(n, 1) at least the absolute values of the terms of each sum, added."""
    trees = state.trees._replace(values=np.abs(state.trees.values), left=state.trees.left.copy())
    return np.asarray(total(trees, x) + np.abs(state.base).max())


def summary(params: ImportedTrees, state: State) -> JSON:
    """Sizes, and the sums before the first tree."""
    return {
        "trees": state.trees.root.size,
        "leaves": int((state.trees.column < 0).sum()),
        "base": state.base.tolist(),
    }


def to_tensor(params: ImportedTrees, state: State, x: Tensor) -> Tensor:
    return linked_values(params, sum_tensor(params, state, x), classifies=state.classes > 0)


def sum_tensor(params: ImportedTrees, state: State, x: Tensor) -> Tensor:
    """(n, k) as `sums`."""
    k, single = state.base.size, params.arithmetic == "float32"
    if not single:
        sums = tree_sums(state.trees, state.output, k, x)
        counts = np.bincount(state.output, minlength=k) if params.average else np.ones(k)
        return sums / counts + state.base
    leaves, parts = tree_values(state.trees, x), []
    for c in range(k):
        class_leaves = leaves[np.flatnonzero(state.output == c)]
        first = x.repeated(np.zeros(1) if params.average else state.base[c : c + 1])
        parts.append(first.beside(class_leaves).sum_in_order("float32"))
    total = parts[0].beside(*parts[1:])
    return total / np.bincount(state.output, minlength=k) + state.base if params.average else total


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    params=ImportedTrees,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    summary=summary,
    queries={"tree": lambda _, state: TreeNodes(state.trees), "contributions": scores},
    accepts={Accepts.MISSING, Accepts.CATEGORIES},
    offered=False,
    rowwise=True,
)
