"""Datasets on the wire: what a table holds, column by column."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import Field

from app.wire import Wire


class FileFormat(StrEnum):
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    JSONL = "jsonl"
    NPY = "npy"


class Bin(Wire):
    """One bar of a histogram: from `lower` (included) to `upper` (excluded, but for the last)."""

    lower: float
    upper: float
    count: int


class Level(Wire):
    value: str
    count: int


class Column(Wire):
    """The data sheet of one column. Quartiles follow the linear rule (Hyndman & Fan type 7)."""

    name: str
    kind: str = Field(description="numeric, categorical, boolean, text or datetime.")
    count: int = Field(description="Rows that have a value.")
    missing: int
    distinct: int | None = Field(None, description="Different values; absent where there were too many to count.")
    minimum: float | str | None = None
    first_quartile: float | None = None
    median: float | None = None
    third_quartile: float | None = None
    maximum: float | str | None = None
    mean: float | None = None
    standard_deviation: float | None = Field(None, description="With n - 1 in the denominator.")
    lower_whisker: float | None = Field(None, description="Smallest value within 1.5 interquartile ranges of the box.")
    upper_whisker: float | None = None
    outliers: int | None = Field(None, description="Values beyond the whiskers.")
    histogram: list[Bin] | None = None
    top_levels: list[Level] | None = None
    identifier_like: bool = Field(
        False, description="Names rows rather than describing them; not a feature by default."
    )
    warnings: list[str] = []


class Dataset(Wire):
    """One immutable table."""

    id: UUID
    name: str
    file_format: str
    created_at: datetime
    size_bytes: int = Field(description="Size of the file as it was uploaded (before unpacking).")
    rows: int
    digest: str = Field(description="sha256: of the uploaded bytes.")
    columns: list[Column]
    warnings: list[str] = []


class DatasetPage(Wire):
    items: list[Dataset]
    next_cursor: str | None = None


class Rows(Wire):
    """A window of a table: columns once, then values row by row; a missing value is null."""

    columns: list[str]
    data: list[list[Any]]
    offset: int
    total: int
