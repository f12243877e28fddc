"""Datasets on the wire: what a table holds, column by column."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import Field

from app.ml.statistics.distribution import Bin
from app.ml.tables.profile import Column, Level
from app.wire import Wire

__all__ = ["Bin", "Column", "Dataset", "DatasetPage", "FileFormat", "FileReading", "Level", "Rows"]


class FileFormat(StrEnum):
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    JSONL = "jsonl"
    JSON = "json"
    NPY = "npy"
    XLSX = "xlsx"
    XLS = "xls"
    ODS = "ods"


class FileReading(Wire):
    """How the file of a dataset was read: another file of the same origin is read alike."""

    file_format: str = Field(description="Format of the file, given or detected.")
    delimiter: str | None = Field(None, description="Character between the fields of a row; null: not a CSV file.")
    encoding: str | None = Field(None, description="Encoding of the text; null: not a text file.")
    header: bool | None = Field(
        None, description="Whether the first row held the names of the columns; null: the format has names of its own."
    )
    missing: list[str] = Field(
        [], description="Cells given at upload as markers of a missing value, beside the usual ones."
    )


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
    reading: FileReading | None = Field(
        None, description="How the file was read; null for datasets of earlier releases."
    )
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
