"""Bagged trees: each grows from rows drawn with replacement, and votes for the rows that it has not seen."""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Context, Data, Matrix, Vector
from app.ml.numerics.sampling.resampled_rows import times_drawn
from app.ml.numerics.trees.column_importance import permuted_increases
from app.ml.numerics.trees.forest import Trees
from app.ml.numerics.trees.forest_builder import ForestBuilder
from app.ml.numerics.trees.growth import Grower, Rules, chosen, planted
from app.ml.numerics.trees.out_of_bag import MOST_ROWS, OutOfBag, Unseen, unseen

POINTS = 50
"""Largest number of points of the curve of the out-of-bag error."""
MAX_TREES_PER_TASK = 4
"""Trees, at most, that grow as one task: it keeps where their rows end."""


class GrowthInputs(NamedTuple):
    """Inputs that all trees grow from."""

    data: Data
    grower: Grower
    rules: Rules
    classes: Matrix | None
    """(k, k) the votes there are; None where every leaf has a value of its own."""
    importance: bool
    """True if columns are permuted among the rows that a tree has not seen."""


class GrownForest(NamedTuple):
    """Some of the trees, without the votes that they share, with their leaves of rows that they have not seen."""

    trees: tuple[Trees, ...]
    unseen: tuple[Unseen, ...]
    increases: Matrix
    """(t, 1 + d), a row for each tree; see `permuted_increases`. NaN if there are no such rows."""


class BaggedTrees(NamedTuple):
    """All trees, with their votes for the rows that they have not seen."""

    trees: Trees
    votes: OutOfBag
    increases: Matrix
    """(T, 1 + d) as in `GrownForest`."""
    curve: list[float]
    """Out-of-bag error of growing numbers of trees."""


def grown(inputs: GrowthInputs, n_estimators: int, context: Context) -> BaggedTrees:
    """So many trees, a few at a time, each few with a generator of its own."""
    classes, step = inputs.classes, -(-len(inputs.data.x) // MOST_ROWS)
    size = min(MAX_TREES_PER_TASK, -(-n_estimators // POINTS))
    counts = [min(size, n_estimators - before) for before in range(0, n_estimators, size)]
    rngs = context.rng.spawn(len(counts))
    tasks = [partial(_batch, inputs, count, rng) for count, rng in zip(counts, rngs, strict=True)]
    votes = OutOfBag(inputs.data, n_estimators, counted=classes is not None)
    builder, curve = ForestBuilder(n_estimators), list[float]()

    def rises_of(batch: GrownForest) -> Matrix:
        for tree, part in zip(batch.trees, batch.unseen, strict=True):
            whole = tree if classes is None else tree._replace(values=classes)
            votes.add(whole, part)
            builder.add(whole, keep=False)
        return batch.increases

    increases = []
    for number, rises in enumerate(
        map(rises_of, context.each(GrownForest, tasks)), 1
    ):  # where no batch outlives its turn
        increases.append(rises)
        if number % -(-len(counts) // POINTS) == 0 or number == len(counts):
            error, _ = votes.error(step)
            curve.append(error)
            done = sum(counts[:number]) / n_estimators
            context.progress(done, **({} if math.isnan(error) else {"out_of_bag": error}))
    return BaggedTrees(builder.trees(), votes, np.concatenate(increases), curve)


def _batch(inputs: GrowthInputs, count: int, rng: np.random.Generator) -> GrownForest:
    trees, parts, increases = zip(*(_tree(inputs, rng) for _ in range(count)), strict=True)
    return GrownForest(trees, parts, np.array(increases))


def _tree(inputs: GrowthInputs, rng: np.random.Generator) -> tuple[Trees, Unseen, Vector]:
    data, classes = inputs.data, inputs.classes
    tree, rows = _with_unseen(inputs, rng)
    rises = (
        permuted_increases(data, tree, rows, rng)
        if inputs.importance and rows.size
        else np.full(1 + data.x.shape[1], np.nan)
    )
    return tree if classes is None else tree._replace(values=classes[:0]), unseen(data, tree, rows), rises


def _with_unseen(inputs: GrowthInputs, rng: np.random.Generator) -> tuple[Trees, NDArray[np.int32]]:
    """A tree, and the rows that it has not seen."""
    data, grower, rules, classes, _ = inputs
    times = times_drawn(len(data.x), rng)
    vote = classes is not None
    tree = grower.grow(data.weights, rules, int(rng.integers(2**63)), times, bare=True, vote=vote)
    trees = planted(tree, data.levels, tree.value if classes is None else classes, keep=False)
    return trees, chosen(times.size, lambda some: times[some] == 0)
