"""Columns of a table, for the core and for everyone who sends it rows.

A table is a `pyarrow.Table` whose column types give the kind:

    numeric      int64 or float64 (a NaN in the file is a missing value: Arrow null)
    boolean      bool
    categorical  string          text  string (distinguished by the data sheet)
    datetime     timestamp("us", "UTC")
"""

from enum import StrEnum
from typing import Literal, NamedTuple

from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.notation import CellTexts, Notation, OtherNotation


class ColumnKind(StrEnum):
    NUMERIC = "numeric"
    CATEGORICAL = "categorical"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATETIME = "datetime"

    @property
    def measured(self) -> bool:
        """True if values become one number each: booleans 0 and 1, datetimes seconds since 1970 in UTC."""
        return self in {ColumnKind.NUMERIC, ColumnKind.BOOLEAN, ColumnKind.DATETIME}


class TableColumn(NamedTuple):
    """Column of a dataset for a plan: its data sheet in short."""

    name: str
    kind: str
    """A `ColumnKind`."""
    missing: int
    """Rows without a value."""
    distinct: int | None
    """Different values; None where there were too many to count."""
    identifier_like: bool = False
    minimum: float | None = None
    """Smallest number; None of other kinds and where nothing is known."""
    maximum: float | None = None
    notation: Notation | None = None
    """Notation of its cells in text; None: the plain one."""
    mostly_numbers: str | None = None
    """Sentence of the data sheet about a column of texts most of which are numbers; None for any other."""
    source_kind: str | None = None
    """The kind that the dataset has it as, where it is used as another; None: as it is."""
    other_notation: OtherNotation | None = None
    """Another notation that all of its text cells have."""
    converted: Notation | None = None
    """The notation in which the dataset has its cells, where they are used in the other one; None: as it is."""
    levels: tuple[str, ...] = ()
    """The most frequent categories."""
    markers: tuple[str, ...] = ()
    """Values that stand for a missing one where it is used."""
    cell_texts: CellTexts | None = None
    """Texts of its values in the file, where they are not the usual ones."""
    read_as: str | None = None
    """The kind as which texts are read before they become categories; None: they are categories as they are."""


class InputColumn(Wire):
    """One input column of a model, as it was at training time."""

    name: str = Field(description="Name of the column.")
    kind: str = Field(description="Kind of the column: numeric, categorical, boolean, datetime or text.")
    minimum: float | None = Field(
        None,
        description="Smallest training value; smaller ones are flagged, but not of a date of which only months, "
        "weekdays or hours are read, all of which the training rows had.",
    )
    maximum: float | None = Field(None, description="Largest training value; datetimes in seconds since 1970, UTC.")
    levels: list[str] | None = Field(None, description="Categories that the model distinguishes; others are flagged.")
    strict_levels: bool | None = Field(
        None,
        description="True where a row must have one of the `levels`, as of a model of items; null: other categories "
        "are flagged.",
    )
    nullable: bool = Field(True, description="True where a row may leave it null (missing).")
    complete: bool | None = Field(
        None,
        description="True where every training row had a value, so that a missing one is flagged; null: some rows "
        "lacked it, or it is not known.",
    )
    notation: Notation | None = Field(
        None,
        description="Notation of the text cells of the training data, and of those of a CSV body; null: the "
        "plain way, as in 1234.5 and 2024-12-31.",
    )
    source_kind: str | None = Field(
        None,
        description="Kind of the column in the training data, where the model uses it as another kind; null: the same "
        "kind. Of a numeric column used as categories, rows may hold the numbers or their text.",
    )
    role: Literal["exposure", "offset"] | None = Field(
        None,
        description="Role of a column that no tree splits: the `exposure` multiplies the prediction, the `offset` is "
        "added to the sum of the trees. A request may leave it out: the exposure is then 1, the offset 0. Null: an "
        "input like others.",
    )

    @property
    def assumed(self) -> float | None:
        """The value in a request that has no such column; None: a request needs it."""
        return None if self.role is None else float(self.role == "exposure")
