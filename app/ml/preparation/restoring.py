"""Rows of the matrix back in the units and categories of the table, as for centres of clusters and decoded rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import JSON, Matrix, Vector
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.preparation.arrow_columns import UNSEEN
from app.ml.preparation.date_parts import DAY, DateParts, part_names
from app.ml.preparation.preparation import Preparation

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RestoredRow(Wire):
    """A row in the units and categories of the table."""

    values: dict[str, Any] = Field(
        description="Value of each input. Null: a missing value, an input that the model reads in formulas only, "
        "or a date of which it reads parts without `elapsed_days`."
    )
    shares: dict[str, float] = Field(
        {},
        description="Share, from 0 to 1, of the value of each categorical or boolean input: 1 in a row of a table, "
        "less in a mean of rows that differ.",
    )


def restore(preparation: Preparation, x: Matrix) -> list[RestoredRow]:
    """The rows that a matrix (n, d) stands for: scaling and indicators undone, the most probable category of each.

    An input that is encoded by the target is null, as its categories cannot be read off means.
    """
    columns = {column.name: _restored(preparation, place, x) for place, column in enumerate(preparation.inputs)}
    return [
        RestoredRow(
            values={name: values[i] for name, (values, _) in columns.items()},
            shares={name: float(shares[i]) for name, (_, shares) in columns.items() if shares is not None},
        )
        for i in range(len(x))
    ]


def written(column: InputColumn, value: float) -> JSON:
    """A mean of an input in JSON: of a date a point in time, of a boolean the share of true; None: not finite."""
    if not np.isfinite(value):
        return None
    return _moment(float(value)) if column.kind == ColumnKind.DATETIME else float(value)


def imputed(preparation: Preparation) -> dict[str, JSON]:
    """Replacement of a missing value of each input, in the units and categories of the table; None: nothing does."""
    return {column.name: _imputed(preparation, place) for place, column in enumerate(preparation.inputs)}


def _imputed(preparation: Preparation, place: int) -> JSON:
    column, codes, fills = preparation.inputs[place], preparation.codes, preparation.fills
    named = fills is not None and not np.isnan(fills[place])
    if column.levels is not None:
        code = fills[place] if fills is not None and named else codes.of_missing[place]
        return None if code == UNSEEN else codes.names(place)[int(code)]
    replaced = any(
        isinstance(function, DateParts) and function.date == column.name for function in preparation.functions
    )
    if not named and (preparation.keeps_missing or replaced):
        return None
    value = float(preparation.learned.fill[place])
    return _moment(value) if column.kind == ColumnKind.DATETIME else value


def _restored(preparation: Preparation, place: int, x: Matrix) -> tuple[list[JSON], Vector | None]:
    """The values of an input, and the share of each in the row where it is a category."""
    layout, column = preparation.layout, preparation.inputs[place]
    if place in layout.indicated and not layout.keeps_categories:
        position = int(np.flatnonzero(layout.indicated == place)[0])
        names = layout.codes.names(place)
        start = int(layout.starts[position])
        return _likeliest(names, x[:, start : start + len(names)])
    wide = place if place in layout.direct else _elapsed(preparation, place)
    if wide is None:
        return [None] * len(x), None
    position = int(np.flatnonzero(layout.direct == wide)[0])
    if column.levels is not None:
        return _likeliest(layout.codes.names(place), x[:, position, None] == np.arange(len(layout.codes.names(place))))
    offset, scale = preparation.scaling.units
    with np.errstate(over="ignore"):  # what is not finite is null
        return _measured(
            column, (x[:, position] * scale[position] + offset[position]) * (1.0 if wide == place else DAY)
        )


def _elapsed(preparation: Preparation, place: int) -> int | None:
    """Column of the wide matrix with the elapsed days of a date; None where there is none."""
    wide, name = len(preparation.inputs), preparation.inputs[place].name
    for function in preparation.functions:
        if isinstance(function, DateParts) and function.date == name and "elapsed_days" in function.parts:
            return wide + function.names.index(part_names(name, ["elapsed_days"])[0])
        wide += len(function.names)
    return None


def _likeliest(names: list[str], shares: NDArray[Any]) -> tuple[list[JSON], Vector]:
    """shares: (n, k) of the categories. A row without any has no category."""
    if not names:
        return [None] * len(shares), np.zeros(len(shares))
    codes, largest = shares.argmax(axis=1), np.clip(shares.max(axis=1), 0.0, 1.0)
    called = [None if name == "(missing)" else name for name in names]
    return [called[code] if share > 0 else None for code, share in zip(codes, largest, strict=True)], largest


def _measured(column: InputColumn, values: Vector) -> tuple[list[JSON], Vector | None]:
    if column.kind == ColumnKind.BOOLEAN:
        shares = np.stack([1 - values, values], axis=1)
        codes = shares.argmax(axis=1)
        truths = [None if np.isnan(value) else bool(code) for code, value in zip(codes, values, strict=True)]
        return truths, np.nan_to_num(np.clip(shares.max(axis=1), 0.0, 1.0))
    cells = [value if np.isfinite(value) else None for value in values.tolist()]
    if column.kind == ColumnKind.DATETIME:
        return [None if value is None else _moment(value) for value in cells], None
    return cells, None


def _moment(seconds: float) -> str | None:
    """A point in time as ISO 8601; None beyond the calendar."""
    try:
        return (EPOCH + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return None
