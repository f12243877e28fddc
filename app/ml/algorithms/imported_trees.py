r"""Imported trees: a sum of trees that XGBoost, LightGBM or scikit-learn has grown, read from its file.

A job of the kind `import` makes such a model; no training does. The trees are those of the file: each test sends every
number to the side that the library sends it to, and leaves are added in the library's order and precision. The sum
starts at a constant, and a function makes the prediction of it, as the objective in the file demands:

- `identity`: the sum itself; so too where the objective is not known;
- `sigmoid`: 1/(1 + exp(-sigmoid · sum)), the probability of the second of two classes;
- `softmax`: probabilities of more classes, from one sum each;
- `one_against_rest`: the `sigmoid` of one sum for each class, which do not add up to 1, as in LightGBM;
- `step`: 1 where the sum is above 0, else 0;
- `exponential`: exp(sum), of counts and times; `log_exponential`: log(1 + exp(sum));
- `signed_square`: the square of the sum, with its sign.

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

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.errors import InvalidData
from app.ml.contract.algorithm import (
    JSON,
    Accepts,
    Algorithm,
    Context,
    Data,
    Fit,
    Labels,
    Matrix,
    Params,
    Task,
    Vector,
)
from app.ml.numerics.boosting.losses import log_total
from app.ml.numerics.row_blocks import blocks
from app.ml.numerics.trees.forest import Trees, each, total
from app.ml.numerics.trees.tree_nodes import TreeNodes


class ImportedTrees(Params):
    """Trees that another library has grown."""

    library: Literal["lightgbm", "xgboost", "scikit-learn"] = Field(
        "lightgbm", description="Library that wrote the file."
    )
    objective: str = Field("", max_length=200, description="Objective of the training, as the file names it.")
    transform: Literal[
        "identity",
        "sigmoid",
        "softmax",
        "one_against_rest",
        "step",
        "exponential",
        "log_exponential",
        "signed_square",
    ] = Field("identity", description="Function that makes the prediction of the sum of the trees.")
    arithmetic: Literal["float32", "float64"] = Field(
        "float64", description="Precision in which inputs are compared and the values of leaves are added."
    )
    average: bool = Field(False, description="True where the trees are averaged, as in a forest, and not added.")
    sigmoid: float = Field(1.0, gt=0, le=1e100, description="Factor of the sum in the logistic function.")


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
    with np.errstate(over="ignore"):  # exp of a large sum is infinite in the library too
        values = transformed(params, sums(params, state, x))
    if not state.classes:
        numbers: Vector = values[:, 0].copy()
        return numbers
    return np.column_stack([1 - values[:, 0], values[:, 0]]) if values.shape[1] == 1 else values


def sums(params: ImportedTrees, state: State, x: Matrix) -> Matrix:
    """(n, k) the sums, or means, of the trees and the base, in the library's order and precision."""
    single, k = params.arithmetic == "float32", state.base.size
    counts = np.bincount(state.output, minlength=k) if params.average else np.ones(k)
    if k == 1 and not single:
        return total(state.trees, x) / counts + state.base
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


def transformed(params: ImportedTrees, raw: Matrix) -> Matrix:
    """(n, k) numbers or probabilities of sums (n, k); of two classes that of the second."""
    if params.transform in {"sigmoid", "one_against_rest"}:
        return 1 / (1 + np.exp(-params.sigmoid * raw))
    return _FUNCTIONS[params.transform](raw)


_FUNCTIONS: dict[str, Callable[[Matrix], Matrix]] = {
    "identity": lambda raw: raw,
    "softmax": lambda raw: np.exp(raw.T - log_total(raw.T)).T.copy(),
    "step": lambda raw: (raw > 0).astype(np.float64),
    "exponential": np.exp,
    "log_exponential": lambda raw: np.logaddexp(0, raw),
    "signed_square": lambda raw: np.sign(raw) * raw**2,
}


def summary(params: ImportedTrees, state: State) -> JSON:
    """Sizes, and the sums before the first tree."""
    return {
        "trees": state.trees.root.size,
        "leaves": int((state.trees.column < 0).sum()),
        "base": state.base.tolist(),
    }


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    params=ImportedTrees,
    state=State,
    fit=fit,
    predict=predict,
    summary=summary,
    queries={"tree": lambda _, state: TreeNodes(state.trees)},
    accepts={Accepts.MISSING, Accepts.CATEGORIES},
    offered=False,
    rowwise=True,
)
