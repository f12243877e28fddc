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

That majorities of trees that differ are surer than they look, or less sure, the rows that they have not seen can tell:
`calibrated` probabilities are those that had the best likelihood among them. The likeliest class remains the same.

The rows that a tree has not drawn, a share of 1/e of them, are new to it: their votes give the out-of-bag error, and
its growth when a column is permuted among them says how much that column matters.

In short: Many deep trees are fitted to random resamples of the rows, and each split chooses among a few random columns.
The prediction is their average or vote. The rows that a tree has not seen give the error and the importance of columns.

Use when: the best prediction without tuning is wanted, columns are many or of mixed kinds, and reasons matter less.

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
from app.ml.numerics.ensembles import calibration
from app.ml.numerics.sampling.resampled_rows import times_drawn
from app.ml.numerics.trees.binning import MOST, binned
from app.ml.numerics.trees.column_importance import importances, permuted_increases, ranked
from app.ml.numerics.trees.compiled.column_split import ENTROPY, GINI, VARIANCE
from app.ml.numerics.trees.cost import growing
from app.ml.numerics.trees.forest import Trees, spread, stages, total
from app.ml.numerics.trees.forest_builder import ForestBuilder
from app.ml.numerics.trees.growth import DEEPEST, Grower, Rules, chosen, planted
from app.ml.numerics.trees.out_of_bag import MOST_ROWS, OutOfBag, Unseen, always_seen, unseen
from app.ml.numerics.trees.tree_nodes import TreeNodes

POINTS = 50
"""Of the curve of the out-of-bag error, at most."""
FEW = 4
"""Trees, at most, that grow as one task: it keeps where their rows end."""


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
        "best", description="Which subset of its categories a drawn column offers."
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
    max_bins: int = Field(MOST, ge=2, le=MOST, description="Maximum number of histogram bins of a column.")
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


class GrowthInputs(NamedTuple):
    """Inputs that all trees grow from."""

    params: RandomForest
    data: Data
    grower: Grower
    rules: Rules
    classes: Matrix | None
    """(k, k) the votes there are; None where every leaf has a value of its own."""


class GrownForest(NamedTuple):
    """Some of the trees, without the votes that they share, with their leaves of rows that they have not seen."""

    trees: tuple[Trees, ...]
    unseen: tuple[Unseen, ...]
    increases: Matrix
    """(t, 1 + d), a row for each tree; see `permuted_increases`. NaN if there are no such rows."""


def fit(params: RandomForest, data: Data, context: Context) -> Fit[State]:
    trees, votes, increases, curve = _grown(params, data, context)
    error, deviation = votes.error()
    alone, importance, spread = importances(increases)
    classes = data.targets.shape[1] if data.task is Task.CLASSIFICATION else 0
    calibrated = classes > 0 and params.probability == "calibrated"
    powers = votes.calibrated() if calibrated else calibration.NONE
    state = State(trees, classes, error, deviation, votes.evaluated_rows, alone, importance, spread, powers)
    warnings = always_seen(len(data.x) - votes.evaluated_rows)
    return Fit(state, iterations=params.n_estimators, curves={"out_of_bag": curve}, warnings=warnings)


def _grown(params: RandomForest, data: Data, context: Context) -> tuple[Trees, OutOfBag, Matrix, list[float]]:
    """The trees, and their votes for rows they have not seen: `increases` as in `GrownForest`, and the curve."""
    n, d = data.x.shape
    numbers = data.task is Task.REGRESSION
    classes = None if numbers or params.voting == "soft" else np.eye(data.targets.shape[1])
    if classes is not None:
        classes.setflags(write=False)
    grower, rules = Grower(data, binned(data, params.max_bins)), _rules(params, d, numbers=numbers)
    ground = GrowthInputs(params, data, grower, rules, classes)
    size = min(FEW, -(-params.n_estimators // POINTS))
    counts = [min(size, params.n_estimators - before) for before in range(0, params.n_estimators, size)]
    rngs = context.rng.spawn(len(counts))
    works = [partial(_batch, ground, count, rng) for count, rng in zip(counts, rngs, strict=True)]
    votes = OutOfBag(data, params.n_estimators, counted=classes is not None)
    builder, curve = ForestBuilder(params.n_estimators), list[float]()

    def kept(batch: GrownForest) -> Matrix:
        for tree, part in zip(batch.trees, batch.unseen, strict=True):
            whole = tree if classes is None else tree._replace(values=classes)
            votes.add(whole, part)
            builder.add(whole, kept=False)
        return batch.increases

    increases = []
    for number, rises in enumerate(map(kept, context.each(GrownForest, works)), 1):  # where no batch outlives its turn
        increases.append(rises)
        if number % -(-len(counts) // POINTS) == 0 or number == len(counts):
            error, _ = votes.error(-(-n // MOST_ROWS))
            curve.append(error)
            done = sum(counts[:number]) / params.n_estimators
            context.progress(done, **({} if math.isnan(error) else {"out_of_bag": error}))
    return builder.trees(), votes, np.concatenate(increases), curve


def _batch(ground: GrowthInputs, count: int, rng: np.random.Generator) -> GrownForest:
    trees, parts, increases = zip(*(_tree(ground, rng) for _ in range(count)), strict=True)
    return GrownForest(trees, parts, np.array(increases))


def _tree(ground: GrowthInputs, rng: np.random.Generator) -> tuple[Trees, Unseen, Vector]:
    params, data, _, _, classes = ground
    tree, rows = _with_unseen(ground, rng)
    rises = (
        permuted_increases(data, tree, rows, rng)
        if params.importance and rows.size
        else np.full(1 + data.x.shape[1], np.nan)
    )
    return tree if classes is None else tree._replace(values=classes[:0]), unseen(data, tree, rows), rises


def _with_unseen(ground: GrowthInputs, rng: np.random.Generator) -> tuple[Trees, NDArray[np.int32]]:
    """A tree, and the rows that it has not seen."""
    _, data, grower, rules, classes = ground
    times = times_drawn(len(data.x), rng)
    vote = classes is not None
    grown = grower.grow(data.weights, rules, int(rng.integers(2**63)), times, bare=True, vote=vote)
    tree = planted(grown, data.levels, grown.value if classes is None else classes, kept=False)
    return tree, chosen(times.size, lambda some: times[some] == 0)


def _rules(params: RandomForest, d: int, *, numbers: bool) -> Rules:
    criterion = VARIANCE if numbers else {"gini": GINI, "entropy": ENTROPY}[params.criterion]
    return Rules(
        criterion,
        max_depth=DEEPEST if params.max_depth is None else params.max_depth,
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
    """For each row what every tree says: a number, or its votes for the classes."""
    result = stages(state.trees, x)
    return [{"trees": row} for row in (result if state.classes else result[:, :, 0]).swapaxes(0, 1).tolist()]


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
    grown = growing(size._replace(columns=drawn), depth=params.max_depth)
    return params.n_estimators * (grown + 1e-7 * size.rows)


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    params=RandomForest,
    state=State,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    rowwise=True,
    interval=interval,
    own_interval=lambda params: params.interval_of == "mean",
    interval_of_mean=lambda params: params.interval_of == "mean",
    explain=explain,
    summary=summary,
    queries={"tree": lambda _, state: TreeNodes(state.trees)},
    accepts={Accepts.MISSING, Accepts.CATEGORIES},
    breaks={
        Symmetry.ROW_ORDER: "rows are drawn by their place.",
        Symmetry.COLUMN_ORDER: "columns are drawn by their place.",
        Symmetry.WEIGHTS: "a row of weight 2 is drawn or left out as one, not as two.",
    },
)
