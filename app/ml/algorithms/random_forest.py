r"""Random forest: many trees that differ by chance, and the vote or the mean of what they answer.

Every tree grows from rows drawn with replacement, to the end and without pruning, and at each node asks the best
question about a few columns drawn anew. A drawn column of categories offers its best subset of them, as in
`decision_tree`; or, as in the book, one random subset, which needs many trees before it says much. Numbers are first
put into at most `bins` bins. A class's probability is the share of the trees that vote for it; a number is the mean of
the trees' answers, and the spread of these gives its bars. A missing value goes to the side where those that the node
saw gain more: as one more category, or below or above the threshold. A branch of their own, in trees that grow to the
end, leaves too few rows for the next question. Where the node saw none, or with `missing` set to both, the row goes
both ways and its answers count by the training rows that went there.

That majorities of trees that differ are surer than they look, or less sure, the rows that they have not seen can tell:
`calibrated` probabilities are those that had the best likelihood among them. The likeliest class remains the same.

The rows that a tree has not drawn, a share of 1/e of them, are new to it: their votes give the out-of-bag error, and
its growth when a column is permuted among them says how much that column matters.

In short: Many deep trees learn from random resamples of the rows, and each question chooses among a few random
columns. The answer is their average or vote. Rows a tree has not seen tell error and importance of columns.

Use when: the best answer for no tuning is wanted, columns are many or of mixed kinds, and reasons matter less.

The forest's probability is the share of its trees: of 1000 trees of which 300 say sun and 700 say rain, rain has 0.7.

>>> votes = np.repeat([[1.0, 0.0], [0.0, 1.0]], [300, 700], axis=0)
>>> (votes.sum(axis=0) / len(votes)).tolist()
[0.3, 0.7]

References: Breiman (2001), Machine Learning 45:5; Ho (1995), ICDAR: 278; Battiti & Brunato, The LION Way, ch. 6;
Boström (2008), ICMLA: 121 (calibrated).
"""

import math
from functools import partial
from typing import Literal, NamedTuple

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
    Labels,
    Matrix,
    Params,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.numerics import calibration
from app.ml.numerics.binning import MOST, binned
from app.ml.numerics.growth import DEEPEST, Grower, Grown, Rules, planted, together
from app.ml.numerics.kernels.out_of_bag import permuted, tell
from app.ml.numerics.kernels.questions import ENTROPY, GINI, VARIANCE
from app.ml.numerics.tree_seconds import growing
from app.ml.numerics.trees import Trees, each, total

JUDGES = 2000
"""Rows, at most, that each tree tells the columns' importance by, and that each point of the curve is of."""
POINTS = 50
"""Of the curve of the out-of-bag error, at most: one for each grove."""


class RandomForest(Params):
    """Random forest for regression and classification."""

    trees: int = Field(100, ge=1, le=10_000, description="How many trees.")
    columns: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Columns drawn for each question; absent: √d for classes, d/3 for numbers, rounded up.",
    )
    criterion: Literal["gini", "entropy"] = Field(
        "gini", description="Impurity of classes; numbers always use the variance."
    )
    subsets: Literal["best", "random"] = Field(
        "best", description="Which subset of its categories a drawn column offers."
    )
    missing: Literal["side", "branch", "both"] = Field(
        "side",
        description="Whether missing values go where they gain more, may have a branch of their own, or go both ways.",
    )
    vote: Literal["class", "shares"] = Field(
        "class", description="Whether a tree votes for its leaf's most frequent class, or with the shares of all."
    )
    probability: Literal["shares", "calibrated"] = Field(
        "shares", description="Of a class: the share of its votes, or what that meant for rows that trees had not seen."
    )
    max_depth: int | None = Field(None, ge=0, le=1000, description="Questions asked on any way; absent: no limit.")
    min_samples_leaf: float = Field(1.0, gt=0, le=1e100, description="Weight of drawn rows that every leaf must have.")
    bins: int = Field(MOST, ge=2, le=MOST, description="Bins, at most, that the values of a column are put into.")
    importance: bool = Field(True, description="Whether to find out how much each column matters.")


class State(NamedTuple):
    trees: Trees
    classes: int
    """0 for numbers."""
    out_of_bag: float
    """Error rate, or mean squared error, of rows answered by the trees that have not seen them; NaN without such."""
    deviation: float
    """Its standard error."""
    judged: int
    """Rows that some tree has not seen."""
    alone: float
    """The trees' own error on rows they have not seen, on average."""
    importance: Vector
    """(d,) by how much that grows when the column is permuted; empty if that was not asked for."""
    importance_deviation: Vector
    """(d,) its standard error over the trees."""
    powers: Vector = calibration.NONE
    """(2,) by which votes become probabilities; empty if these are the shares."""


class Ground(NamedTuple):
    """What all trees grow from."""

    params: RandomForest
    data: Data
    grower: Grower
    rules: Rules
    classes: Matrix | None
    """(k, k) the votes there are; None where every leaf has an answer of its own."""


class Grove(NamedTuple):
    """Some of the trees, and what they say of rows that they have not seen."""

    trees: tuple[Trees, ...]
    told: Matrix
    """(n, k) the sum of their answers."""
    seen: Vector
    """(n,) how many of them have answered."""
    increases: Matrix
    """(t, 1 + d), a row for each that has; see `_increases`."""


def fit(params: RandomForest, data: Data, context: Context) -> Fit[State]:
    n, d = data.x.shape
    numbers = data.task is Task.REGRESSION
    classes = None if numbers or params.vote == "shares" else np.eye(data.targets.shape[1])
    rules = _rules(params, d, numbers=numbers)
    ground = Ground(params, data, Grower(data, binned(data, params.bins)), rules, classes)
    size = -(-params.trees // POINTS)
    counts = [min(size, params.trees - before) for before in range(0, params.trees, size)]
    rngs = context.rng.spawn(len(counts))
    trees: list[Trees] = []
    increases, curve = [], []
    told, seen = np.zeros(data.targets.shape), np.zeros(n)
    works = [partial(_grove, ground, count, rng) for count, rng in zip(counts, rngs, strict=True)]
    for grove in context.each(Grove, works):
        trees += grove.trees if classes is None else [tree._replace(answer=classes) for tree in grove.trees]
        increases.append(grove.increases)
        told, seen = told + grove.told, seen + grove.seen
        error, _ = _error(data, told, seen, -(-n // JUDGES))
        curve.append(error)
        context.progress(len(trees) / params.trees, **({} if math.isnan(error) else {"out_of_bag": error}))
    error, deviation = _error(data, told, seen)
    alone, importance, spread = _importance(np.concatenate(increases))
    kinds = 0 if numbers else data.targets.shape[1]
    calibrated = not numbers and params.probability == "calibrated"
    powers = calibration.learned(told, seen, data.targets, data.weights) if calibrated else calibration.NONE
    state = State(together(trees), kinds, error, deviation, int((seen > 0).sum()), alone, importance, spread, powers)
    return Fit(state, iterations=params.trees, curves={"out_of_bag": curve})


def _grove(ground: Ground, count: int, rng: np.random.Generator) -> Grove:
    """So many trees, without the votes that they share."""
    params, data, grower, rules, classes = ground
    n, d = data.x.shape
    trees, increases = [], [np.empty((0, 1 + d))]
    told, seen = np.zeros(data.targets.shape), np.zeros(n)
    for _ in range(count):
        drawn = np.bincount(rng.integers(0, n, n), minlength=n)
        grown = grower.grow(drawn * data.weights, rules, int(rng.integers(2**63)))
        tree = _planted(grown, data.levels, classes)
        trees.append(tree if classes is None else tree._replace(answer=classes[:0]))
        rows = np.flatnonzero(drawn == 0).astype(np.int32)
        tell(data.x, rows, *tree[1:], told)
        seen[rows] += 1
        if params.importance and rows.size:
            increases.append(_increases(data, tree, rows, rng)[None])
    return Grove(tuple(trees), told, seen, np.concatenate(increases))


def _planted(grown: Grown, levels: Labels, classes: NDArray[np.float64] | None) -> Trees:
    if classes is None:
        return planted(grown, levels, grown.value)
    return planted(grown, levels, classes, grown.value.argmax(axis=1))


def _rules(params: RandomForest, d: int, *, numbers: bool) -> Rules:
    criterion = VARIANCE if numbers else {"gini": GINI, "entropy": ENTROPY}[params.criterion]
    return Rules(
        criterion,
        max_depth=DEEPEST if params.max_depth is None else params.max_depth,
        min_samples_leaf=params.min_samples_leaf,
        columns=params.columns or math.ceil(d / 3 if numbers else math.sqrt(d)),
        draws_subsets=params.subsets == "random",
        missing_branch=params.missing == "branch",
        missing_side=params.missing == "side",
    )


def _error(data: Data, told: Matrix, seen: Vector, step: int = 1) -> tuple[float, float]:
    """Of the rows that some tree has not seen, every `step`-th: the error, and its standard error."""
    rows = np.flatnonzero(seen[::step] > 0) * step
    if not rows.size:
        return math.nan, math.nan
    if data.task is Task.CLASSIFICATION:
        errors = (told[rows].argmax(axis=1) != data.codes[rows]) * 1.0
    else:
        errors = (told[rows, 0] / seen[rows] - data.y[rows]) ** 2
    parts = data.weights[rows] / data.weights[rows].sum()
    error = float(parts @ errors)
    return error, float(np.sqrt((parts**2) @ (errors - error) ** 2))


def _increases(data: Data, tree: Trees, rows: NDArray[np.int32], rng: np.random.Generator) -> Vector:
    """The tree's error on rows it has not seen, and by how much each column's permutation raises it: (1 + d,)."""
    judges = rows[:: -(-rows.size // JUDGES)].copy()
    found = np.empty(1 + data.x.shape[1])
    numbers = data.task is Task.REGRESSION
    seed = np.uint64(rng.integers(2**63))
    found[0] = permuted(data.x, data.y, data.weights, numbers, judges, seed, *tree[1:], found[1:])
    return found


def _importance(increases: Matrix) -> tuple[float, Vector, Vector]:
    """Means over the trees, and the standard errors of the columns' means."""
    t = len(increases)
    if not t:
        return math.nan, np.zeros(0), np.zeros(0)
    mean, spread = increases.mean(axis=0), increases.std(axis=0, ddof=1 if t > 1 else 0) / math.sqrt(t)
    return float(mean[0]), mean[1:], spread[1:]


def predict(params: RandomForest, state: State, x: Matrix) -> NDArray[np.float64]:
    votes = total(state.trees, x)
    if state.powers.size:
        return calibration.probabilities(votes, state.trees.root.size, state.powers)
    answers = votes / state.trees.root.size
    return answers if state.classes else answers[:, 0]


def interval(params: RandomForest, state: State, x: Matrix, confidence: float) -> Matrix:
    """Percentiles of the trees' answers (n, 2), widened to hold their mean. Bars of the forest's opinion, not of y."""
    answers = each(state.trees, x)
    outside = (1 - confidence) / 2
    low, high = np.quantile(answers, [outside, 1 - outside], axis=1)
    mean = answers.mean(axis=1)
    return np.stack([np.minimum(low, mean), np.maximum(high, mean)], axis=1)


def summary(params: RandomForest, state: State) -> JSON:
    """Sizes, the out-of-bag error, and how much each column matters: the rise of the trees' error, largest first."""
    leaves = int((state.trees.column < 0).sum())
    percent = 100 / state.alone if state.alone > 0 else None
    order = np.argsort(-state.importance, kind="stable")
    return {
        "trees": state.trees.root.size,
        "leaves": leaves,
        "calibration": dict(zip(("exponent", "power"), state.powers.tolist(), strict=True))
        if state.powers.size
        else None,
        "out_of_bag": {
            "error": _finite(state.out_of_bag),
            "standard_error": _finite(state.deviation),
            "rows": state.judged,
        },
        "importances": [
            {
                "column": int(j),
                "increase": float(state.importance[j]),
                "standard_error": float(state.importance_deviation[j]),
                "percent": None if percent is None else percent * float(state.importance[j]),
            }
            for j in order
        ],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _seconds(params: RandomForest, size: Size) -> float:
    drawn = params.columns or math.ceil(math.sqrt(size.columns) if size.classes else size.columns / 3)
    grown = growing(size._replace(columns=min(drawn, size.columns)), depth=params.max_depth)
    return params.trees * (grown + 1e-7 * size.rows)


ALGORITHM = Algorithm(
    tasks={Task.REGRESSION, Task.CLASSIFICATION},
    params=RandomForest,
    state=State,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    rowwise=True,
    interval=interval,
    summary=summary,
    accepts={Accepts.MISSING, Accepts.CATEGORIES},
    breaks={
        Symmetry.ROW_ORDER: "rows are drawn by their place.",
        Symmetry.COLUMN_ORDER: "columns are drawn by their place.",
        Symmetry.WEIGHTS: "a row of weight 2 is drawn or left out as one, not as two.",
    },
)
