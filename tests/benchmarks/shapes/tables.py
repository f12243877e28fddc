"""Tables of a kind and a shape, drawn from a seed: the same in every process."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy

KINDS = ("dense", "correlated", "missing", "one_hot", "text")
ROWS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 50_000_000)
COLUMNS = (3, 30, 300, 1_000, 2_000, 5_000)
CELLS_OF_QUICK = 2_000_000
CELLS_OF_ALL = 2 * 10**9 // 8
"""Largest dense table, 2 GB: two sides hold one at the same time."""
CATEGORIES_PER_COLUMN = 50
WORDS_PER_TEXT = 40
MISSING_SHARE = 0.1


class Shape(NamedTuple):
    kind: str
    """One of `KINDS`."""
    rows: int
    columns: int
    """Of the matrix: indicators where the columns are categories, terms where they are texts."""

    @property
    def name(self) -> str:
        return f"{self.kind} {self.rows:,} x {self.columns:,}"

    @property
    def numbers(self) -> int:
        """Numbers that a table of this shape holds."""
        per_row = {"one_hot": -(-self.columns // CATEGORIES_PER_COLUMN), "text": WORDS_PER_TEXT}
        return self.rows * per_row.get(self.kind, self.columns)

    @property
    def quick(self) -> bool:
        return self.numbers <= CELLS_OF_QUICK


class Table(NamedTuple):
    shape: Shape
    x: Any
    """(n, d) array, NaN where a cell is missing; (n, c) codes of categories; list of n texts."""
    y: Any
    """(n,) regression target: a weighted sum of some columns, with noise."""
    classes: Any
    """(n,) 0 or 1: the sign of y less its median."""
    labels: Any
    """(n,) cluster that each row was drawn from, where rows lie in clusters; else zeros."""

    def csr(self) -> Any:
        """(n, d) sparse indicators of a table of categories, all columns of each, as rivals hold them."""
        n, c = self.x.shape
        columns = self.x + CATEGORIES_PER_COLUMN * np.arange(c)
        shape = (n, CATEGORIES_PER_COLUMN * c)
        return scipy.sparse.csr_array((np.ones(n * c), columns.ravel(), np.arange(n + 1) * c), shape=shape)


def grid(*kinds: str, cells: int = CELLS_OF_ALL) -> Iterator[Shape]:
    """Shapes of these kinds, of all rows and columns, with at most so many numbers."""
    for kind in kinds:
        for rows in ROWS:
            for columns in COLUMNS:
                shape = Shape(kind, rows, columns)
                if kind in {"one_hot", "text"} and columns < CATEGORIES_PER_COLUMN:
                    continue
                if shape.numbers <= cells:
                    yield shape


def draw(shape: Shape, seed: int = 0) -> Table:
    rng = np.random.default_rng([seed, KINDS.index(shape.kind), shape.rows, shape.columns])
    return {"one_hot": categories, "text": texts}.get(shape.kind, numbers)(shape, rng)


def numbers(shape: Shape, rng: np.random.Generator) -> Table:
    """Ten clusters of normal rows. Correlated: twenty factors in all columns, and a tenth of noise of their own."""
    n, d = shape.rows, shape.columns
    labels = rng.integers(10, size=n)
    if shape.kind == "correlated":
        factors = rng.normal(size=(n, 20)) + rng.normal(size=(10, 20))[labels]
        x = factors @ rng.normal(size=(20, d))
        x += 0.1 * rng.standard_normal((n, d))
    else:
        x = rng.standard_normal((n, d))
        x += rng.normal(size=(10, d))[labels]
    used = rng.permutation(d)[: max(1, min(20, d // 2))]
    signal = x[:, used] @ rng.normal(size=used.size)
    if shape.kind == "missing":
        x[rng.random(x.shape, np.float32) < MISSING_SHARE] = np.nan
    return targets(shape, x, signal, labels, rng)


def categories(shape: Shape, rng: np.random.Generator) -> Table:
    """Columns of `CATEGORIES_PER_COLUMN` categories each, common and rare ones as 1/rank."""
    count = max(1, round(shape.columns / CATEGORIES_PER_COLUMN))
    share = 1 / np.arange(1, CATEGORIES_PER_COLUMN + 1)
    edges = np.cumsum(share / share.sum())[:-1]
    x = np.column_stack([np.searchsorted(edges, rng.random(shape.rows)) for _ in range(count)])
    effects = rng.normal(size=(count, CATEGORIES_PER_COLUMN))
    signal = effects[np.arange(count), x].sum(axis=1)
    return targets(shape, x, signal, np.zeros(shape.rows, np.int64), rng)


def texts(shape: Shape, rng: np.random.Generator) -> Table:
    """Texts of words that are rare as in language, of two topics."""
    labels = rng.integers(2, size=shape.rows)
    common = 1 / np.arange(1, shape.columns + 1)
    lines = np.empty(shape.rows, object)
    for label in range(2):
        share = common * rng.gamma(0.3, size=shape.columns) + 0.5 * common
        edges = np.cumsum(share / share.sum())[:-1]
        for row in np.flatnonzero(labels == label):
            words = np.searchsorted(edges, rng.random(WORDS_PER_TEXT))
            lines[row] = " ".join(f"w{word}" for word in words)
    return targets(shape, lines.tolist(), 2.0 * labels, labels, rng)


def targets(shape: Shape, x: Any, signal: Any, labels: Any, rng: np.random.Generator) -> Table:
    y = signal + (signal.std() or 1.0) * 0.5 * rng.normal(size=shape.rows)
    return Table(shape, x, y, (y > np.median(y)).astype(np.int64), labels)
