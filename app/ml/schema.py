"""What a column is, to the core and to everyone who sends it rows.

A table is a `pyarrow.Table` whose column types say the kind:

    numeric      int64 or float64 (a NaN in the file is a missing value: Arrow null)
    boolean      bool
    categorical  string          text  string (told apart by the data sheet)
    datetime     timestamp("us", "UTC")
"""

from enum import StrEnum

from pydantic import Field

from app.wire import Wire


class ColumnKind(StrEnum):
    NUMERIC = "numeric"
    CATEGORICAL = "categorical"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATETIME = "datetime"


class InputColumn(Wire):
    """One column a model wants, as it was at training time."""

    name: str
    kind: str
    minimum: float | None = Field(None, description="Smallest training value; smaller ones are flagged.")
    maximum: float | None = None
    levels: list[str] | None = Field(None, description="Categories seen in training; others are flagged.")
    nullable: bool = Field(True, description="Whether a row may leave it null (missing).")
