"""Datasets on the wire: what a table holds, column by column."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import Field

from app.base.wire import Wire
from app.ml.statistics.histogram_and_box_plot import Bin
from app.ml.tables.data_sheet import Column, Level

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
    ARFF = "arff"
    SVMLIGHT = "svmlight"


class FileReading(Wire):
    """Reading options of a dataset's file: another file of the same origin is read alike."""

    file_format: str = Field(description="Format of the file, given or detected.")
    delimiter: str | None = Field(None, description="Character between the fields of a row; null: not a CSV file.")
    encoding: str | None = Field(None, description="Encoding of the text; null: not a text file.")
    header: bool | None = Field(
        None,
        description="True where the first row held the names of the columns; null: the format has names of its own.",
    )
    missing: list[str] = Field(
        [], description="Cells given at upload as markers of a missing value, beside the usual ones."
    )
    decimal: str | None = Field(
        None, description="Decimal mark of the numbers of a text file; null: no number has one, or they differ."
    )
    comment: str | None = Field(None, description="Beginning of lines that hold no rows; null: none was given.")
    quoted: bool = Field(True, description="False where the quotes of a CSV file are letters of its cells.")


class Dataset(Wire):
    """One immutable table."""

    id: UUID = Field(description="Id of the dataset.")
    name: str = Field(description="Name that was given at upload; null: none.")
    file_format: str = Field(description="Format of the uploaded file.")
    created_at: datetime = Field(description="Time of creation, in UTC.")
    size_bytes: int = Field(description="Size of the file as it was uploaded (before unpacking).")
    rows: int = Field(description="Number of rows.")
    digest: str = Field(description="sha256: of the uploaded bytes.")
    columns: list[Column] = Field(description="Data sheet of each column.")
    reading: FileReading | None = Field(
        None, description="Options with which the file was read; null for datasets of earlier releases."
    )
    warnings: list[str] = Field(
        [], description="Sentences on what a careful reader should know; empty where there is none."
    )


class DatasetPage(Wire):
    """Page of datasets, newest first."""

    items: list[Dataset] = Field(description="Items of this page.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")


class Rows(Wire):
    """A window of a table: columns once, then values row by row; a missing value is null."""

    columns: list[str] = Field(description="Names of the columns.")
    data: list[list[Any]] = Field(description="Rows, each a list of values in the order of `columns`.")
    offset: int = Field(description="Number of rows before the first one.")
    total: int = Field(description="Number of rows of the dataset.")
