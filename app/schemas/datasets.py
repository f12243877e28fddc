"""Datasets on the wire: what a table holds, column by column."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import Field

from app.ml.sheet import Column, Level
from app.ml.spread import Bin
from app.wire import Wire

__all__ = ["Bin", "Column", "Dataset", "DatasetPage", "FileFormat", "Level", "Rows"]


class FileFormat(StrEnum):
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    JSONL = "jsonl"
    NPY = "npy"


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
