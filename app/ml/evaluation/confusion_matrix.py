"""Counts of rows by true and predicted class."""

from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.labels import Label


class ConfusionCell(Wire):
    """Some of the rows behind one count."""

    truth: int = Field(description="Index of the true class.")
    assigned: int = Field(description="Index of the predicted class.")
    count: int = Field(description="Number of rows in the cell.")
    rows: list[int] = Field(description="Numbers of its rows in the dataset, from 0: the first of them.")


class ConfusionMatrix(Wire):
    """Rows are the true classes, columns the assigned ones."""

    classes: list[Label] = Field(description="Classes in the order of rows and columns.")
    counts: list[list[int]] = Field(
        description="Number of rows: one list for each true class, one number for each predicted class."
    )
    cells: list[ConfusionCell] | None = Field(
        None, description="Rows behind each count, mistakes before hits; null where none were requested."
    )
