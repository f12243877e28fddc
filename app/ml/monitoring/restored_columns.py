"""Effect of a column's drift on predictions: the column is put back to the distribution of the reference."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import Labels, Vector
from app.ml.models.model import Model, Predicted
from app.ml.monitoring.column_bins import ReferenceColumn, column_values, count_values

MAX_ROWS = 2_000


def prediction_changes(
    model: Model, table: pa.Table, columns: list[ReferenceColumn], rng: np.random.Generator
) -> Iterator[tuple[str, float]]:
    """Name of each column and the mean absolute change of the predictions of these rows, `MAX_ROWS` of them at most."""
    if table.num_rows > MAX_ROWS:
        table = table.take(pa.array(np.sort(rng.choice(table.num_rows, MAX_ROWS, replace=False))))
    before = model.predict(table)
    places = {name: place for place, name in enumerate(table.column_names)}
    for column in columns:
        cells = table.column(column.name)
        restored = restored_cells(column, cells, rng)
        if restored is not None:
            changed = table.set_column(places[column.name], column.name, restored)
            yield column.name, mean_change(before, model.predict(changed))


def restored_cells(column: ReferenceColumn, cells: pa.ChunkedArray, rng: np.random.Generator) -> pa.Array | None:
    """The cells with the distribution of the reference: numbers keep their ranks, and no more categories change than
    have to. Missing values stay. None: the reference has no values.
    """
    values = column_values(column, cells).copy()
    present = np.flatnonzero(~np.isnan(values))
    if column.kind == "categorical":
        return _restored_levels(column, cells, values, present, rng)
    if not column.quantiles or pa.types.is_boolean(cells.type):
        return _restored_flags(column, cells, values, present, rng) if column.quantiles else None
    ranks = np.empty(present.size)
    ranks[np.lexsort((rng.random(present.size), values[present]))] = np.arange(present.size)
    shares = (ranks + 0.5) / max(present.size, 1)
    values[present] = np.interp(shares, np.linspace(0, 1, len(column.quantiles)), column.quantiles)
    return pa.array(values, pa.float64(), mask=np.isnan(values)).cast(cells.type, safe=False)


def _restored_flags(
    column: ReferenceColumn, cells: pa.ChunkedArray, values: Vector, present: Labels, rng: np.random.Generator
) -> pa.Array:
    """Truth values with the reference's share of true ones."""
    share = float(np.mean(column.quantiles))
    order = present[np.lexsort((rng.random(present.size), values[present]))]
    flags = np.zeros(values.size, np.bool_)
    flags[order[present.size - round(share * present.size) :]] = True
    return pa.array(flags, mask=np.isnan(values)).cast(cells.type)


def _restored_levels(
    column: ReferenceColumn, cells: pa.ChunkedArray, values: Vector, present: Labels, rng: np.random.Generator
) -> pa.Array | None:
    """Rows of levels that are too frequent get, at random, levels that are too rare. Levels without a bin of their own
    stand for each other.
    """
    wanted, counts = np.array(column.counts), count_values(column, values).counts
    if not wanted.sum() or not counts.sum():
        return None
    surplus = counts / counts.sum() - wanted / wanted.sum()
    chances = np.where(counts > 0, np.maximum(surplus, 0) / np.maximum(counts / counts.sum(), 1e-300), 0.0)
    lacking = np.maximum(-surplus[:-1], 0)  # there is no name for the other levels
    texts = np.array(cells.to_pylist(), object)
    if lacking.sum() > 0:
        bins = np.where((values >= 0) & (values < len(column.levels)), values, len(column.levels))[present]
        moved = present[rng.random(present.size) < chances[bins.astype(np.intp)]]
        texts[moved] = np.array(column.levels, object)[rng.choice(lacking.size, moved.size, p=lacking / lacking.sum())]
    return pa.array(texts, pa.string(), mask=np.isnan(values)).cast(cells.type)


def mean_change(before: Predicted, after: Predicted) -> float:
    """Mean absolute difference of numbers; of probabilities, half its sum over classes; share of labels that differ."""
    if before.probabilities is not None and after.probabilities is not None:
        return float(np.abs(before.probabilities - after.probabilities).sum(axis=1).mean() / 2)
    if np.issubdtype(before.values.dtype, np.integer):
        return float((before.values != after.values).mean())
    difference = np.abs(np.asarray(before.values, np.float64) - after.values)
    return float(np.nanmean(difference)) if np.isfinite(difference).any() else 0.0
