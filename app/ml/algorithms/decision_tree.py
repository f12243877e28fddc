r"""Decision tree: splits of the rows, most on one column each, ending in leaves that predict.

Grown greedily from the root: every node has the split that takes the most impurity (entropy or Gini index of the
classes, variance of numbers) from its training rows, weighted over its branches. A split is a threshold of a number, `x
<= t` with t half-way between two training values, or a subset of categories: the best one, found as a cut of their
order by the mean (where `min_samples_leaf` forbids the best of all, the best such cut), except for more than two
classes: there all subsets of up to ten categories are tried, and of more the cuts of the orders by each class's share.
On a tie the lowest column and then the lowest threshold wins. A split that gains nothing is made too, as the next may
gain, unless `min_impurity_decrease` forbids it. With `max_leaf_nodes` the split that gains most, anywhere, comes first.

With `oblique` a split may test a weighted sum of so many numeric columns, where that gains more than any of one
column. At each node columns are chosen one by one that follow the target together, and the ridge on the first 2, 4,
8, … of them gives the weights: for each class those that separate it from the others. A node weighs at least two rows
for each column of its sum. If one of these columns is missing, so is the sum.

That a value is missing may mean something, or nothing. A missing value has a third branch of its own if the node saw
missing values of that column (at least `min_samples_leaf` of them). Otherwise, or with `missing` set to both, a row
goes left and right, and the predictions count by the shares of the training rows that went there; such rows count in
the node, but in none below it. `missing_exceptions` names the columns for which it is the other way round. A category
that the node has not seen goes with the heavier side.

Leaves predict the mean, or the share of each class among their rows and `prior_weight` further ones, which have the
shares of all training rows: (w p + m p₀)/(w + m), the m-estimate. Leaves of few rows would else be certain of their
class: on thirteen public tables the mean log loss was 3.92 without, 0.53 with one such row, 0.45 with 4, 0.44 with 8;
the error 0.189, 0.189, 0.181 and 0.176. With `leaf_model` linear a leaf of numbers predicts by a linear fit
of its rows, on those numeric columns, chosen one by one, that lower the error to be expected of new rows: the root of
the mean square times (n + v) / (n - v) for v coefficients (M5). Few rows, or equal ones, so end in their mean. A value
that is missing counts as the leaf's mean of its column, and no leaf predicts less than the least or more than the
greatest of its rows: there is no extrapolation. Give leaves some twenty rows (`min_samples_leaf`) for this to pay. Rows
count by their weight.

In short: Splits on a column, or on a sum of a few, divide the rows until those in a leaf are alike. The prediction is
that of the leaf a row ends in, and the splits on its path are the reason.

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
...     print(tree.trees.column[0], tree.trees.members, f"{tree.impurity[0]:.7f} {tree.gain[0] / 14:.7f}")
0 [False  True False] 0.9402860 0.2260002
0 [False  True False] 0.4591837 0.1020408

References: Breiman, Friedman, Olshen & Stone (1984), Classification and Regression Trees; Quinlan (1986),
Machine Learning 1:81; Quinlan (1993), C4.5, ch. 3; Murthy, Kasif & Salzberg (1994), JAIR 2:1 (oblique splits);
Menze et al. (2011), ECML: 453 (by the ridge); Quinlan (1992), Learning with continuous classes (M5).
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.errors import NoContributions
from app.base.faults import Fault
from app.base.suggestions import no_such
from app.ml.contract.algorithm import (
    JSON,
    Accepts,
    Algorithm,
    Context,
    Data,
    Fit,
    Inputs,
    Matrix,
    Params,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.capacity import Capacity
from app.ml.numerics.tensor_graphs.tree_tensors import formed_tree
from app.ml.numerics.trees.binning import binned, ranked
from app.ml.numerics.trees.compiled.column_split import ENTROPY, GINI, VARIANCE
from app.ml.numerics.trees.cost import growing, grown_bytes
from app.ml.numerics.trees.explained_tree import ExplainedTree
from app.ml.numerics.trees.forest import Trees, total
from app.ml.numerics.trees.growth import UNLIMITED, Grower, Grown, Rules, planted
from app.ml.numerics.trees.linear_forms import MEANS, NONE, Bounded, Forms, predictions
from app.ml.numerics.trees.oblique import grow as grow_oblique
from app.ml.numerics.trees.oblique import linear_leaves, used
from app.ml.numerics.trees.one_tree import column_shares, depth, importances, with_prior
from app.ml.numerics.trees.path_contributions import TreeScores, shares_of
from app.ml.numerics.trees.pruning import prune
from app.ml.numerics.trees.tree_labellings import log_labellings
from app.ml.numerics.trees.tree_nodes import TreeNodes

EXACT = 50_000
"""Up to so many rows every value may divide a column, unless `bins` states otherwise."""


class DecisionTree(Params):
    """Decision tree for regression and classification."""

    criterion: Literal["entropy", "gini"] = Field(
        "gini", description="Impurity of classes; numbers always use the variance."
    )
    max_depth: int | None = Field(None, ge=0, le=1000, description="Maximum depth of a tree; null: unlimited.")
    max_leaf_nodes: int | None = Field(
        None, ge=2, le=1_000_000, description="Maximum number of leaves; null: unlimited."
    )
    min_samples_leaf: float = Field(
        3.0,
        gt=0,
        le=1e100,
        description="Smallest weight of the training rows of a leaf; a row of weight 1 counts as one.",
    )
    min_samples_split: float = Field(
        2.0, gt=0, le=1e100, description="Smallest weight of the training rows of a node that is split."
    )
    min_impurity_decrease: float = Field(
        0.0,
        ge=0,
        le=1e300,
        description="Smallest decrease of impurity for which a node is split; the decrease counts by the node's share "
        "of the weight of all training rows.",
    )
    ccp_alpha: float = Field(
        0.0,
        ge=0,
        le=1e300,
        description="Cost of a leaf in minimal cost-complexity pruning: a split is kept where it lowers the impurity, "
        "weighted by the shares of rows, by more than this for each further leaf; 0 prunes nothing.",
    )
    oblique: int | None = Field(
        None,
        ge=2,
        le=1000,
        description="Largest number of numeric columns in the weighted sum of an oblique split; null: every "
        "split uses one column.",
    )
    prior_weight: float = Field(
        8.0,
        ge=0,
        le=1e9,
        description="Weight of rows with the class shares of all training rows in each leaf; 0: its own alone.",
    )
    leaf_model: Literal["mean", "linear"] = Field(
        "mean", description="Prediction of a leaf in regression: the mean, or a linear function of numeric columns."
    )
    missing: Literal["branch", "both"] = Field(
        "branch", description="Treatment of missing values: a branch of their own where that gains, or both branches."
    )
    missing_exceptions: list[str] = Field(
        [], max_length=10_000, description="Inputs by name for which the opposite of `missing` holds."
    )
    splits: Literal["auto", "exact", "binned"] = Field(
        "auto",
        description="Candidate thresholds of a column: every value, or those between 255 bins. auto: bins "
        "beyond 50,000 rows.",
    )


class State(NamedTuple):
    trees: Trees
    """One tree of N nodes; `values` has a row for each: the shares of the classes with the prior, or the mean."""
    classes: int
    """0 for numbers."""
    weight: Vector
    """(N,) of the training rows that reach the node."""
    impurity: Vector
    """(N,)"""
    gain: Vector
    """(N,) impurity × weight that the split takes away."""
    splits: Forms = NONE
    """Weighted sums of columns; nodes test them as columns beyond the last."""
    leaves: Bounded = MEANS


def fit(params: DecisionTree, data: Data, context: Context) -> Fit[State]:
    grown, splits = _grown(params, data, context)
    levels = np.append(data.levels, np.zeros(splits.size, np.intp))
    if params.ccp_alpha:
        grown, splits = used(prune(grown, levels, params.ccp_alpha), splits, data.levels.size)
    values = with_prior(grown, params.prior_weight) if data.task is Task.CLASSIFICATION else grown.value
    trees = planted(grown, levels[: data.levels.size + splits.size], values)
    linear = data.task is Task.REGRESSION and params.leaf_model == "linear"
    leaves = linear_leaves(data, trees, splits) if linear else MEANS
    context.progress(1.0)
    classes = data.targets.shape[1] if data.task is Task.CLASSIFICATION else 0
    state = State(trees, classes, grown.weight, grown.impurity, grown.gain, splits, leaves)
    return Fit(state, iterations=depth(trees))


def _grown(params: DecisionTree, data: Data, context: Context) -> tuple[Grown, Forms]:
    how, exact = rules(params, data), params.splits == "exact" or _small(params, data)
    if params.oblique is None:
        return grow(data, how, exact=exact), NONE
    return grow_oblique(data, how, params.oblique, exact=exact, report=context.progress)


def faults(params: DecisionTree, inputs: Inputs) -> Iterator[Fault]:
    """Exceptions that are no inputs."""
    for place, name in enumerate(params.missing_exceptions):
        if name not in inputs.kinds:
            yield Fault(
                f"/missing_exceptions/{place}",
                no_such("The inputs have no column", name, inputs.kinds),
                "unknown_column",
            )


def rules(params: DecisionTree, data: Data) -> Rules:
    criterion = {"entropy": ENTROPY, "gini": GINI}[params.criterion] if data.task is Task.CLASSIFICATION else VARIANCE
    other = np.isin(np.array(data.names or [""] * data.levels.size, np.str_), params.missing_exceptions)
    return Rules(
        criterion,
        max_depth=UNLIMITED if params.max_depth is None else params.max_depth,
        max_leaves=params.max_leaf_nodes or 0,
        min_samples_split=params.min_samples_split,
        min_samples_leaf=params.min_samples_leaf,
        min_gain=params.min_impurity_decrease * float(data.weights.sum()),
        missing_branch=other != (params.missing == "branch"),
    )


def grow(data: Data, rules: Rules, *, exact: bool) -> Grown:
    return (Grower(data, *ranked(data)) if exact and data.levels.size else Grower(data, binned(data))).grow(
        data.weights, rules
    )


def _small(params: DecisionTree, data: Data) -> bool:
    return params.splits == "auto" and len(data.x) <= EXACT


def predict(params: DecisionTree, state: State, x: Matrix) -> NDArray[np.float64]:
    plain = not (state.splits.size or state.leaves.forms.size)
    result = total(state.trees, x) if plain else predictions(state.trees, state.splits, state.leaves, x)
    return result if state.classes else result[:, 0]


def explain(params: DecisionTree, state: State, x: Matrix) -> list[JSON]:
    """For each row the splits on its path with their results, and the leaf: its training rows and its prediction.

    A column is given by its number, categories by their codes, rows by their weight; of a weighted sum the columns with
    their coefficients. Where a row goes to both children the path ends, and the prediction is that of all leaves below.
    """
    wide = np.column_stack([x, state.splits.project(x)])
    tree = ExplainedTree(state.trees, state.splits, state.leaves, state.weight)
    return [tree.path(row, predicted) for row, predicted in zip(wide, predict(params, state, x), strict=True)]


def nodes(params: DecisionTree, state: State) -> TreeNodes:
    """The tree, with the weight, the impurity and the gain of every node."""
    facts = {"rows": state.weight, "impurity": state.impurity, "gain": state.gain}
    return TreeNodes(state.trees, state.splits, state.leaves, facts)


def scores(params: DecisionTree, state: State) -> TreeScores:
    """The number, or the share of each class, of a leaf. Raises NoContributions where splits or leaves are of several
    columns.
    """
    if state.splits.size or state.leaves.forms.size:
        raise NoContributions("A tree with oblique splits or linear leaves has no contributions of single columns.")
    k = max(1, state.classes)
    shares = shares_of(state.trees, state.weight)
    return TreeScores(state.trees, shares, np.zeros(k), np.ones(k), "share" if state.classes else "target")


def summary(params: DecisionTree, state: State) -> JSON:
    """Size, number of splits of sums and of leaves with a linear fit, and each column's share in the gain of all
    splits, largest first.
    """
    shares = importances(state.trees, state.gain, state.splits)
    return {
        "depth": depth(state.trees),
        "nodes": len(state.trees.column),
        "leaves": int((state.trees.column < 0).sum()),
        "oblique": state.splits.size,
        "lines": int((np.diff(state.leaves.forms.start) > 0).sum()),
        "importances": [{"column": j, "importance": share} for j, share in shares.items()],
    }


def capacity(_params: DecisionTree, state: State, data: Data) -> Capacity:
    """Nothing is known of oblique splits, and of missing values, which may go both ways."""
    if state.splits.size or np.isnan(data.x).any():
        return Capacity()
    leaves = int((state.trees.column < 0).sum())
    return Capacity(log_labellings=log_labellings(leaves, data.levels, state.classes))


def _memory(params: DecisionTree, size: Size) -> float:
    """Ranks or bins of rows, and the tree."""
    exact = params.splits == "exact" or (params.splits == "auto" and size.rows <= EXACT)
    tree = grown_bytes(size, min_samples_leaf=params.min_samples_leaf, depth=params.max_depth)
    forms = 24 if params.oblique is not None or params.leaf_model == "linear" else 0
    return 2 * tree + size.cells * (forms + (32 if exact else 3)) + size.rows * (100.0 + 16 * size.classes)


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    params=DecisionTree,
    state=State,
    fit=fit,
    predict=predict,
    graph=formed_tree,
    seconds=lambda params, size: growing(size, depth=params.max_depth),
    memory=_memory,
    explain=explain,
    summary=summary,
    importances=lambda _: lambda state: column_shares(state.trees, state.gain, state.splits),
    capacity=capacity,
    queries={"tree": nodes, "contributions": scores},
    accepts={Accepts.MISSING, Accepts.CATEGORIES},
    faults=faults,
    breaks={Symmetry.COLUMN_ORDER: "of splits with the same gain, that of the lowest column is taken."},
)
