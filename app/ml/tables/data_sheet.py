"""Data sheet of a column as it travels, and what its file remarks on it."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
from pydantic import Field
from typing_extensions import TypeAliasType

from app.base.wire import Wire
from app.ml.contract.columns import ColumnKind
from app.ml.contract.notation import CellTexts, Notation, OtherNotation
from app.ml.statistics.histogram_and_box_plot import Bin, Percentile, Whiskers
from app.ml.statistics.metric_value import Metric

Chunks = Callable[[], Iterator[pa.Array]]
"""Passes over one column, as often as needed; types as in `app.ml.contract.columns`."""

Extreme = TypeAliasType("Extreme", float | str)
"""The smallest or largest value of a column."""


class Level(Wire):
    """Value of a categorical column."""

    value: str = Field(description="The value.")
    count: int = Field(description="Number of rows with this value.")


class Offer(Wire):
    """Another reading of a column, to be had by uploading the file again with these options."""

    sentence: str = Field(description="Effect of the options.")
    kinds: dict[str, str] | None = Field(
        None, description="Value for the option `kinds` of the upload: kinds by column; null: the option is not needed."
    )
    missing: list[str] | None = Field(
        None, description="Values for the option `missing` of the upload; null: the option is not needed."
    )


class Column(Wire):
    """The data sheet of one column. Quartiles follow the linear rule (Hyndman & Fan type 7)."""

    name: str = Field(description="Name of the column.")
    kind: str = Field(description="numeric, categorical, boolean, text or datetime.")
    count: int = Field(description="Rows that have a value.")
    missing: int = Field(description="Number of missing values.")
    distinct: int | None = Field(None, description="Different values; absent where there were too many to count.")
    minimum: Extreme | None = Field(None, description="Smallest value: a number, or a time as ISO 8601 in UTC.")
    first_quartile: float | None = Field(None, description="First quartile; null where the column has no numbers.")
    median: float | None = Field(None, description="Median; null where the column has no numbers.")
    third_quartile: float | None = Field(None, description="Third quartile; null where the column has no numbers.")
    maximum: Extreme | None = Field(None, description="Largest value: a number, or a time as ISO 8601 in UTC.")
    mean: float | None = Field(None, description="Arithmetic mean; null where the column has no numbers.")
    standard_deviation: float | None = Field(None, description="Standard deviation, with n - 1 in the denominator.")
    lower_whisker: float | None = Field(None, description="Smallest value within 1.5 interquartile ranges of the box.")
    upper_whisker: float | None = Field(None, description="Largest value that is no outlier; null without numbers.")
    outliers: int | None = Field(None, description="Values beyond the whiskers.")
    outlier_rows: list[int] | None = Field(
        None, description="Their rows, from 0, those farthest out first; at most 100. Absent without outliers."
    )
    other_whiskers: list[Whiskers] | None = Field(None, description="Box plots by other rules.")
    percentiles: list[Percentile] | None = Field(None, description="Beside the quartiles.")
    histogram: list[Bin] | None = Field(None, description="Histogram of the numbers, in ascending order.")
    top_levels: list[Level] | None = Field(None, description="Most frequent first; long values are cut.")
    identifier_like: bool = Field(
        False, description="Names rows rather than describing them; not a feature by default."
    )
    smoothness: Metric | None = Field(
        None,
        description="Likeness of this column in rows that are near each other in the other columns, in a sample of "
        "rows. 1: they are alike; 0: no more than any two rows, which does not rule out a good model where few of many "
        "columns matter. Null: too few values vary.",
    )
    notation: Notation | None = Field(
        None,
        description="Notation of the text cells of the file; null: the plain one, 1234.5 and 2024-12-31.",
    )
    other_notation: OtherNotation | None = Field(
        None, description="Another notation that all text cells of the file have, too; null: there is none."
    )
    cell_texts: CellTexts | None = Field(
        None,
        description="Texts of the values in the file; null: the usual ones, such as 5 and true, too many to be listed, "
        "or the file had no texts.",
    )
    mostly_numbers: str | None = Field(
        None,
        description="Sentence on a column of texts or categories most of whose values are numbers, with the lines of "
        "those that are not; null: it is no such column.",
    )
    offers: list[Offer] = Field([], description="Other readings of the column that the uploaded file allows.")
    warnings: list[str] = Field([], description="Sentences on what was noticed in the column.")


class Remark(NamedTuple):
    """Notation of a column in its file, for the data sheet."""

    warnings: Sequence[str] = ()
    offers: Sequence[Offer] = ()
    notation: Notation | None = None
    kind: ColumnKind | None = None
    """The kind that was chosen for a column of strings; None: its values decide."""
    mostly_numbers: str | None = None
    """Sentence about a column that was not read as numbers, though most of its values are; None for any other."""
    other_notation: OtherNotation | None = None
    """Another notation that all of its cells have."""
    cell_texts: CellTexts | None = None
    """Texts of its values in the file, where they are not the usual ones."""
