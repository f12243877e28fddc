"""The bundled tables, and eight drawn ones with the faults of real tables, as pyarrow tables with splits."""

import math
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

Array = NDArray[Any]
Columns = dict[str, Any]
Draw = Callable[[int, np.random.Generator], tuple[Columns, Array]]
"""Of so many rows: the inputs, and the expected target, whose variance is about 1."""
SAMPLES = Path(__file__).parents[3] / "app" / "samples"
TARGET = "target"
SPLITS = 5
TRAIN, TEST = 1000, 2000


class Split(NamedTuple):
    train: pa.Table
    test: pa.Table


class Table(NamedTuple):
    target: str
    classes: bool
    splits: Callable[[], Iterator[Split]]
    shared: float = 0.0
    """Test rows for each training row, if splits share rows."""


def bundled(name: str, target: str, *, classes: bool, without: str | None = None) -> Table:
    @cache
    def read() -> pa.Table:
        table = pc.read_csv(SAMPLES / f"{name}.csv")
        return table.drop_columns([without]) if without else table

    return folded(read, target, classes=classes)


def folded(read: Callable[[], pa.Table], target: str, *, classes: bool) -> Table:
    """A table whose splits are shuffled folds, of classes in equal shares."""

    def splits() -> Iterator[Split]:
        kind = StratifiedKFold if classes else KFold
        folds = kind(SPLITS, shuffle=True, random_state=0)
        for train, test in folds.split(np.zeros(len(read())), read()[target].to_numpy(zero_copy_only=False)):
            yield Split(read().take(pa.array(train)), read().take(pa.array(test)))

    return Table(target, classes, splits, 1 / (SPLITS - 1))


def drawn(draw: Draw, *, classes: bool, train: int = TRAIN, noise: float = 0.5, share: float = 0.4) -> Table:
    """Drawn anew for every split. share: of the class that is true where the expected target is high."""

    def splits() -> Iterator[Split]:
        for seed in range(SPLITS):
            rng = np.random.default_rng(seed)
            columns, mean = draw(train + TEST, rng)
            columns[TARGET] = _classes(mean, share, rng) if classes else _numbers(draw, mean, noise, rng)
            table = pa.table(columns)
            yield Split(table.slice(0, train), table.slice(train))

    return Table(TARGET, classes, splits)


def _classes(mean: Array, share: float, rng: np.random.Generator) -> list[str]:
    score = 3 * (mean - np.quantile(mean, 1 - share)) + rng.logistic(size=mean.size)
    return np.where(score > 0, "yes", "no").tolist()


def _numbers(draw: Draw, mean: Array, noise: float, rng: np.random.Generator) -> Array:
    errors = rng.standard_t(2.5, mean.size) if draw is heavy_tails else rng.normal(size=mean.size)
    return 10 + 3 * (mean + noise * errors)


def _bent(x: Array) -> Array:
    """Straight, bent, waved and with an interaction. x: (n, 5) about normal."""
    wave = np.sin(2 * x[:, 1])
    return 0.6 * x[:, 0] + 0.5 * wave + 0.3 * (x[:, 2] ** 2 - 1) + 0.4 * x[:, 3] * x[:, 4]


def _named(x: Array) -> Columns:
    return {f"x{j}": column for j, column in enumerate(x.T)}


def heavy_tails(n: int, rng: np.random.Generator) -> tuple[Columns, Array]:
    """Inputs are log-normal, and errors of the target have t₂.₅."""
    x = rng.normal(size=(n, 6))
    return _named(np.exp(1.5 * x)), _bent(x)


def rare_class(n: int, rng: np.random.Generator) -> tuple[Columns, Array]:
    """Twelve columns, five of which matter; the class has 4 % of the rows."""
    x = rng.normal(size=(n, 12))
    return _named(x), _bent(x)


def many_categories(n: int, rng: np.random.Generator) -> tuple[Columns, Array]:
    """Columns of 5, 20 and 120 categories beside three numbers; the effects of the categories are fixed.

    Preparation keeps 64 categories of a column by default, the peers keep all. This alone sets linear learners behind:
    with `max_levels` 256 the RMSE of linear is 1.723 (by default 1.776, peer 1.723), of ridge 1.705 (1.770, 1.707), of
    lasso 1.713 (1.773, 1.716), of knn 2.450 (2.468, 2.450), of additive 1.606 (1.676, 1.620).
    """
    x, mean = rng.normal(size=(n, 3)), np.zeros(n)
    columns = _named(x)
    for k in (5, 20, 120):
        codes = np.minimum(rng.geometric(4 / k, size=n) - 1, k - 1)
        mean += 0.6 * np.random.default_rng(k).normal(size=k)[codes]
        columns[f"c{k}"] = [f"level {code}" for code in codes.tolist()]
    return columns, mean + 0.5 * x[:, 0] + 0.3 * np.abs(x[:, 1])


def gaps(n: int, rng: np.random.Generator) -> tuple[Columns, Array]:
    """A sixth of the cells is missing, of one column where it is large; a category is missing too."""
    x = rng.normal(size=(n, 6))
    kinds = rng.integers(4, size=n)
    mean = _bent(x) + 0.4 * (kinds - 1.5)
    absent = rng.random(x.shape) < 1 / 6
    absent[:, 0] |= x[:, 0] > 1.2
    columns = {f"x{j}": pa.array(x[:, j], mask=absent[:, j]) for j in range(6)}
    columns["kind"] = pa.array([f"k{kind}" for kind in kinds.tolist()], mask=rng.random(n) < 1 / 6)
    return columns, mean


def duplicates(n: int, rng: np.random.Generator) -> tuple[Columns, Array]:
    """Every input was seen about three times, rounded, and one column stands there twice."""
    x = rng.normal(size=(n // 3 + 1, 6)).round(1)[rng.integers(n // 3 + 1, size=n)]
    return _named(np.column_stack([x, x[:, 0]])), _bent(x)


def wide(n: int, rng: np.random.Generator) -> tuple[Columns, Array]:
    """200 columns with common causes, and 120 rows to train on."""
    causes = rng.normal(size=(n, 10))
    loads = np.random.default_rng(0).normal(size=(10, 200))
    return _named(causes @ loads / math.sqrt(10) + 0.5 * rng.normal(size=(n, 200))), causes[:, 0] * 0.8 + causes[
        :, 1
    ] * 0.6


def tiny(n: int, rng: np.random.Generator) -> tuple[Columns, Array]:
    """40 rows to train on: three numbers, a category."""
    x, kinds = rng.normal(size=(n, 3)), rng.integers(3, size=n)
    columns = _named(x) | {"kind": [f"k{kind}" for kind in kinds.tolist()]}
    return columns, 0.7 * x[:, 0] - 0.5 * x[:, 1] + 0.5 * (kinds == 1)


def dates(n: int, rng: np.random.Generator) -> tuple[Columns, Array]:
    """Two times within six years: a trend with a break, and an age."""
    since = rng.integers(0, 6 * 365 * 86400, size=n)
    age = rng.exponential(200 * 86400, size=n).astype(np.int64)
    x, years = rng.normal(size=(n, 3)), since / (365 * 86400)
    start = 1_500_000_000
    columns = _named(x)
    columns["first"] = pa.array((start + since - age) * 1_000_000, pa.timestamp("us", "UTC"))
    columns["last"] = pa.array((start + since) * 1_000_000, pa.timestamp("us", "UTC"))
    mean = (
        0.3 * (years - 3)
        + 0.6 * (years > 4)
        - 0.3 * np.log1p(age / 86400 / 100)
        + 0.5 * x[:, 0]
        + 0.3 * np.abs(x[:, 1])
    )
    return columns, mean


BUNDLED = {
    "breast_cancer": bundled("breast_cancer", "diagnosis", classes=True),
    "iris": bundled("iris", "species", classes=True),
    "wine": bundled("wine", "cultivar", classes=True),
    "diabetes": bundled("diabetes", "progression", classes=False),
    "wohnungen": bundled("wohnungen", "Miete_€", classes=False, without="teuer"),
    "wohnungen.teuer": bundled("wohnungen", "teuer", classes=True, without="Miete_€"),
}
ROWS = {wide: 120, tiny: 40}
DRAWS = (heavy_tails, many_categories, gaps, duplicates, wide, tiny, dates)
TABLES: dict[str, Table] = BUNDLED | {
    "rare_class.yes": drawn(rare_class, classes=True, share=0.04),
    **{draw.__name__: drawn(draw, classes=False, train=ROWS.get(draw, TRAIN)) for draw in DRAWS},
    **{f"{draw.__name__}.yes": drawn(draw, classes=True, train=ROWS.get(draw, TRAIN)) for draw in DRAWS},
}
"""By name; of a table with two targets, what is predicted stands behind the dot."""
