r"""Random forest: many trees that differ by chance, and the vote or the mean of their predictions.

Every tree grows from rows drawn with replacement, to the end and without pruning, and at each node has the best split
of a few columns drawn anew. A drawn column of categories offers its best subset of them, as in `decision_tree`; or, as
in the book, one random subset, which needs many trees before it gains much. Numbers are first put into at most
`max_bins` bins. A class's probability is the share of the trees that vote for it; a number is the mean of the trees'
predictions, and the spread of these gives its interval. A missing value goes to the side where those that the node saw
gain more: as one more category, or below or above the threshold. A branch of their own, in trees that grow to the end,
leaves too few rows for the next split. Where the node saw none, or with `missing` set to both, the row takes both
branches, and their predictions count by the training rows that went there.

Of numbers each node tries half of the columns: beside a third (Breiman's choice) the RMSE was 0.2 to 1.9 % lower on
six tables and 0.4 to 0.7 % higher on four, for 9 to 32 % more time. All columns (scikit-learn's default) gain up to
8 % where most columns mean nothing, and lose up to 3.7 % where columns are redundant or errors have heavy tails.

That majorities of trees that differ are surer than they look, or less sure, the rows that they have not seen can show:
`calibrated` probabilities are those that had the best likelihood among them. The likeliest class remains the same.

The rows that a tree has not drawn, a share of 1/e of them, are new to it: their votes give the out-of-bag error, and
its growth when a column is permuted among them is a measure of how much that column matters.

In short: Many deep trees are fitted to random resamples of the rows, and each split chooses among a few random columns.
The prediction is their average or vote. The rows that a tree has not seen give the error and the importance of columns.

Use when: the best prediction without tuning is wanted, columns are many or of mixed kinds, and reasons matter less.

The forest's probability is the share of its trees: of 1000 trees of which 300 predict sun and 700 rain, rain has 0.7.

>>> votes = np.repeat([[1.0, 0.0], [0.0, 1.0]], [300, 700], axis=0)
>>> (votes.sum(axis=0) / len(votes)).tolist()
[0.3, 0.7]

References: Breiman (2001), Machine Learning 45:5; Ho (1995), ICDAR: 278; Battiti & Brunato, The LION Way, ch. 6;
Boström (2008), ICMLA: 121 (calibrated).
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
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
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.params import MaxFeatures, feature_count
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.ensembles import calibration
from app.ml.numerics.tensor_graphs.class_tensors import calibrated_votes
from app.ml.numerics.tensor_graphs.tree_tensors import tree_totals
from app.ml.numerics.trees.bagged_trees import BaggedTrees, GrowthInputs, grown
from app.ml.numerics.trees.binning import MAX_BYTE_BINS, binned
from app.ml.numerics.trees.column_importance import importances, ranked
from app.ml.numerics.trees.compiled.column_split import ENTROPY, GINI, VARIANCE
from app.ml.numerics.trees.cost import growing, grown_bytes
from app.ml.numerics.trees.forest import Trees, spread, stages, total
from app.ml.numerics.trees.growth import UNLIMITED, Grower, Rules
from app.ml.numerics.trees.out_of_bag import always_seen
from app.ml.numerics.trees.path_contributions import TreeScores, shares_of
from app.ml.numerics.trees.tree_nodes import TreeNodes


class RandomForest(Params):
    """Random forest for regression and classification."""

    n_estimators: int = Field(100, ge=1, le=10_000, description="Number of trees.")
    max_features: MaxFeatures | None = Field(
        None,
        description="Columns for each split: a number of them (5), or a share of all (0.5). Null: √d for classes, "
        "d/2 for numbers, rounded up.",
    )
    criterion: Literal["gini", "entropy"] = Field(
        "gini", description="Impurity of classes; numbers always use the variance."
    )
    subsets: Literal["best", "random"] = Field(
        "best", description="Subset of its categories that a drawn column offers."
    )
    missing: Literal["side", "branch", "both"] = Field(
        "side",
        description="Treatment of missing values: the branch of more gain, a branch of their own, or both branches.",
    )
    voting: Literal["hard", "soft"] = Field(
        "hard",
        description="Vote of a tree. `hard`: the most frequent class of its leaf; `soft`: the shares of all classes.",
    )
    probability: Literal["shares", "calibrated"] = Field(
        "shares", description="Probability of a class: its share of votes, or that share calibrated on unseen rows."
    )
    max_depth: int | None = Field(None, ge=0, le=1000, description="Maximum depth of a tree; null: unlimited.")
    min_samples_leaf: float = Field(1.0, gt=0, le=1e100, description="Smallest weight of the drawn rows of a leaf.")
    max_bins: int = Field(
        MAX_BYTE_BINS, ge=2, le=MAX_BYTE_BINS, description="Maximum number of histogram bins of a column."
    )
    importance: bool = Field(True, description="Measures how much each column matters.")
    interval_of: Literal["mean", "observation"] = Field(
        "observation",
        description="Target of a prediction interval: `observation`, a new row, by the errors on rows held out, or "
        "`mean`, the forest's own prediction, by percentiles of its trees' predictions.",
    )


class State(NamedTuple):
    trees: Trees
    classes: int
    """0 for numbers."""
    out_of_bag: float
    """Error rate, or mean squared error, of rows by the trees that have not seen them; NaN without such."""
    deviation: float
    """Its standard error."""
    evaluated_rows: int
    """Rows that some tree has not seen."""
    alone: float
    """The trees' own error on rows they have not seen, on average."""
    importance: Vector
    """(d,) by how much that grows when the column is permuted; empty unless `importance` is set."""
    importance_deviation: Vector
    """(d,) its standard error over the trees."""
    powers: Vector = calibration.NONE
    """(2,) by which votes become probabilities; empty if these are the shares."""


def fit(params: RandomForest, data: Data, context: Context) -> Fit[State]:
    trees, votes, increases, curve = _grown(params, data, context)
    error, deviation = votes.error()
    alone, importance, spread = importances(increases)
    classes = data.targets.shape[1] if data.task is Task.CLASSIFICATION else 0
    calibrated = classes > 0 and params.probability == "calibrated"
    powers = votes.calibrated() if calibrated else calibration.NONE
    state = State(trees, classes, error, deviation, votes.evaluated_rows, alone, importance, spread, powers)
    return Fit(
        state,
        iterations=params.n_estimators,
        curves={"out_of_bag": curve},
        warnings=always_seen(len(data.x) - votes.evaluated_rows),
        gibbs=votes.gibbs(params.n_estimators),
    )


def _grown(params: RandomForest, data: Data, context: Context) -> BaggedTrees:
    numbers = data.task is Task.REGRESSION
    classes = None if numbers or params.voting == "soft" else np.eye(data.targets.shape[1])
    if classes is not None:
        classes.setflags(write=False)
    grower, rules = Grower(data, binned(data, params.max_bins)), _rules(params, data.x.shape[1], numbers=numbers)
    return grown(GrowthInputs(data, grower, rules, classes, params.importance), params.n_estimators, context)


def _rules(params: RandomForest, d: int, *, numbers: bool) -> Rules:
    criterion = VARIANCE if numbers else {"gini": GINI, "entropy": ENTROPY}[params.criterion]
    return Rules(
        criterion,
        max_depth=UNLIMITED if params.max_depth is None else params.max_depth,
        min_samples_leaf=params.min_samples_leaf,
        columns=_drawn_columns(params, d, numbers=numbers),
        draws_subsets=params.subsets == "random",
        missing_branch=params.missing == "branch",
        missing_side=params.missing == "side",
    )


def _drawn_columns(params: RandomForest, d: float, *, numbers: bool) -> int:
    return feature_count(params.max_features or math.ceil(d / 2 if numbers else math.sqrt(d)), d)


def predict(params: RandomForest, state: State, x: Matrix) -> NDArray[np.float64]:
    votes, trees = total(state.trees, x), state.trees.root.size
    if state.powers.size:
        return calibration.probabilities(votes, trees, state.powers)
    shares = votes / float(trees)  # a whole number would take numpy longer
    return shares if state.classes else shares[:, 0]


def interval(params: RandomForest, state: State, x: Matrix, confidence: float) -> Matrix:
    """Percentiles of the trees' predictions (n, 2), widened to hold their mean: of the forest's opinion, not of y."""
    return spread(state.trees, x, confidence)


def explain(params: RandomForest, state: State, x: Matrix) -> list[JSON]:
    """For each row the prediction of every tree: a number, or its votes for the classes."""
    result = stages(state.trees, x)
    return [{"trees": row} for row in (result if state.classes else result[:, :, 0]).swapaxes(0, 1).tolist()]


def scores(params: RandomForest, state: State) -> TreeScores:
    """The mean of the trees' numbers, or of their votes for each class, before any calibration."""
    trees, k = state.trees, max(1, state.classes)
    unit = "share" if state.classes else "target"
    return TreeScores(trees, shares_of(trees), np.zeros(k), np.full(k, 1 / trees.root.size), unit)


def summary(params: RandomForest, state: State) -> JSON:
    """Sizes, the out-of-bag error, and how much each column matters: the rise of the trees' error, largest first."""
    leaves = int((state.trees.column < 0).sum())
    return {
        "trees": state.trees.root.size,
        "leaves": leaves,
        "calibration": dict(zip(("exponent", "power"), state.powers.tolist(), strict=True))
        if state.powers.size
        else None,
        "out_of_bag": {
            "error": _finite(state.out_of_bag),
            "standard_error": _finite(state.deviation),
            "rows": state.evaluated_rows,
        },
        "importances": ranked(state.importance, state.importance_deviation, state.alone),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _seconds(params: RandomForest, size: Size) -> float:
    drawn = _drawn_columns(params, size.columns, numbers=not size.classes)
    each = growing(size._replace(columns=drawn), depth=params.max_depth)
    return params.n_estimators * (each + 1e-7 * size.rows)


def _memory(params: RandomForest, size: Size) -> float:
    """Bins and votes of rows; and the trees, which are as large as all their leaves."""
    tree = grown_bytes(size, min_samples_leaf=params.min_samples_leaf, depth=params.max_depth)
    return params.n_estimators * tree + size.rows * (3 * size.columns + 100 + 24 * size.classes)


def to_tensor(params: RandomForest, state: State, x: Tensor) -> Tensor:
    votes, trees = tree_totals(state.trees, x), state.trees.root.size
    return calibrated_votes(votes, trees, state.powers) if state.powers.size else votes / float(trees)


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    params=RandomForest,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    seconds=_seconds,
    memory=_memory,
    rowwise=True,
    interval=interval,
    own_interval=lambda params: params.interval_of == "mean",
    interval_of_mean=lambda params: params.interval_of == "mean",
    explain=explain,
    summary=summary,
    importances=lambda params: (lambda state: state.importance) if params.importance else None,
    queries={"tree": lambda _, state: TreeNodes(state.trees), "contributions": scores},
    accepts={Accepts.MISSING, Accepts.CATEGORIES},
    breaks={
        Symmetry.ROW_ORDER: "rows are drawn by their place.",
        Symmetry.COLUMN_ORDER: "columns are drawn by their place.",
        Symmetry.WEIGHTS: "a row of weight 2 is drawn or left out as one, not as two.",
    },
)
