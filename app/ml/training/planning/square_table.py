"""A dataset that is a square table: a numeric column for every row, in the order of the rows."""

from collections.abc import Collection, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.algorithm import Accepts, Meaning
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.numerics.linear_algebra.definiteness import negative_spectrum
from app.ml.preparation.arrow_columns import Raw, pointer
from app.ml.preparation.request import Preprocessing
from app.ml.training.planning.feature_choice import without_role
from app.ml.training.planning.related_table import NAMED, TOLERANCE, differ
from app.ml.training.planning.relation_request import MOST_SQUARE_ROWS
from app.ml.training.planning.train_spec import TrainSpec

AS_IT_IS = Preprocessing(scaling="none")


def unprepared(spec: TrainSpec) -> TrainSpec:
    """The request for a square table, which is used as it is."""
    return spec.model_copy(update={"preprocessing": AS_IT_IS})


def square_faults(spec: TrainSpec, columns_by_name: Mapping[str, TableColumn], rows: int) -> Iterator[Fault]:
    """columns_by_name: columns of the dataset by name. rows: of the dataset."""
    pointer = "/relations/form"
    if spec.features is not None:
        yield Fault("/features", "A square table is used whole: leave features out.")
    if spec.preprocessing not in (Preprocessing(), AS_IT_IS):
        yield Fault("/preprocessing", "A square table is used as it is: leave preprocessing out.")
    columns = without_role(spec, columns_by_name.values())
    if rows > MOST_SQUARE_ROWS:
        yield Fault(pointer, f"A square table has at most {MOST_SQUARE_ROWS} rows; this one has {rows}.", "too_large")
    if len(columns) != rows:
        detail = f"A square table has a column for every row; this one has {rows} rows and {len(columns)} columns"
        yield Fault(pointer, f"{detail} besides those with another role.", "not_square")
    for column in columns:
        yield from _column_faults(column, spec, rows)


def _column_faults(column: TableColumn, spec: TrainSpec, rows: int) -> Iterator[Fault]:
    pointer, name = "/dataset", column.name
    signed = spec.relations is not None and spec.relations.meaning == "kernel"
    if column.kind != ColumnKind.NUMERIC and column.missing < rows:
        yield Fault(
            pointer, f"The column {name!r} is {column.kind}; a square table is numeric. Is it the item?", "wrong_kind"
        )
    elif not signed and column.minimum is not None and column.minimum < 0:
        yield Fault(pointer, f"The column {name!r} has values below 0.", "negative")


def check_square(
    raw: Raw, items: NDArray[np.str_] | None, meaning: Meaning, accepts: Collection[Accepts], *, definite: bool
) -> None:
    """Raises InvalidData for a table that is not a square of pairs, naming cells.

    items: names of the rows. accepts: what the algorithm does. definite: a kernel has to be positive semidefinite.
    """
    values, names = raw.values, tuple(column.name for column in raw.columns)
    if items is not None and set(names) == set(items.tolist()):
        _refuse(np.argwhere(np.array(names) != items).repeat(2, 1), names, "Rows are in another order than columns")
    if Accepts.UNKNOWN_PAIRS not in accepts:
        _refuse(np.argwhere(np.isnan(values)), names, "A value is missing, and the algorithm needs all of them")
    if meaning == Meaning.DISSIMILARITY:
        diagonal = np.flatnonzero(np.abs(np.diagonal(values)) > TOLERANCE * np.nanmax(values, initial=0.0))
        _refuse(diagonal[:, None].repeat(2, 1), names, "The dissimilarity of a row to itself is not 0")
    for start in range(0, len(values), 1024):
        some, other = values[start : start + 1024], values[:, start : start + 1024].T
        rows, columns = np.nonzero(differ(some, other) | (np.isnan(some) != np.isnan(other)))
        _refuse(
            np.column_stack((rows + start, columns)),
            names,
            "The value differs from that of the same pair the other way round",
        )
    if meaning == Meaning.KERNEL and definite:
        _demand_inner_products(values)


def _demand_inner_products(values: NDArray[np.float64]) -> None:
    """Raises InvalidData, with the smallest eigenvalue, for a symmetric kernel that is not positive semidefinite."""
    if (spectrum := negative_spectrum(values)) is not None:
        detail = (
            f"The kernel is not positive semidefinite: its smallest eigenvalue is {spectrum[0]:.6g}. Choose another, "
            "or a support vector machine with `indefinite` set to `project`."
        )
        raise InvalidData(faults=[Fault("/relations/meaning", detail, "not_positive_semidefinite")])


def _refuse(cells: NDArray[np.intp], names: tuple[str, ...], detail: str) -> None:
    if not len(cells):
        return
    raise InvalidData(
        f"The table is no square of pairs: {len(cells)} cells are at fault.",
        faults=[Fault(pointer(int(row), names[column]), f"{detail}.") for row, column in cells[:NAMED]],
    )
