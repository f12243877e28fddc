"""Reviews on the wire: rows that a classifier rejected, for a person to label."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import Field

from app.base.references import NAME_LENGTH
from app.base.wire import Body, Wire
from app.ml.contract.labels import Label
from app.ml.contract.model_reference import Name


class ReviewState(StrEnum):
    """State of a review."""

    WAITING = "waiting"
    LABELLED = "labelled"
    EXPORTED = "exported"


class Review(Wire):
    """One row that a version of a classifier rejected."""

    id: UUID = Field(description="Id of the review.")
    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version that rejected the row, counted from 1.")
    state: ReviewState = Field(description="waiting for a label, labelled, or exported to a dataset.")
    created_at: datetime = Field(description="Time of the first prediction that filed the row, in UTC.")
    row: dict[str, Any] = Field(
        description="Values of the inputs of the model by column, as they were sent; null is a missing value."
    )
    target: str = Field(description="Column that is predicted.")
    classes: list[Label] = Field(description="Classes of the version, in the order of the probabilities.")
    probabilities: list[float] = Field(description="Probability of each class by the version.")
    label: Label | None = Field(None, description="Class that a person gave the row; null: it has none yet.")
    labelled_at: datetime | None = Field(None, description="Time of the last label, in UTC; null: it has none.")
    dataset: UUID | None = Field(None, description="Id of the dataset that it was exported to; null: it was not.")


class ReviewPage(Wire):
    """Page of reviews, newest first."""

    items: list[Review] = Field(description="Items of this page.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")


class ReviewLabel(Body):
    """The class of a row, by a person."""

    label: Label | None = Field(
        description="Class of the row, one of those of the version; null: the row waits for a label again."
    )


class ReviewExport(Body):
    """The reviews that become a dataset."""

    model: Name = Field(description="The model whose labelled rows are exported, of all its versions.")
    name: str = Field(
        "reviews",
        min_length=1,
        max_length=NAME_LENGTH,
        description="A name for the dataset: 1 to 200 printable characters that do not read as a UUID.",
    )
    again: bool = Field(
        False, description="Exports rows again that are in a dataset already; if false, those that are in none."
    )
