"""Validation of a model: rows held out, folds, leave-one-out, resamples."""

from typing import Literal, Self

from pydantic import Field

from app.base.wire import Body
from app.ml.contract.task import Task


class Validation(Body):
    """Validation of the model."""

    method: Literal["holdout", "kfold", "loo", "bootstrap"] = Field(
        "holdout",
        description="Validation on the training rows, besides the test rows: in K folds; each row by a fit of the "
        "others "
        "(loo); or those that a bootstrap resample leaves out.",
    )
    test_fraction: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="Share of rows that are held out and evaluated once; 0: none, and nothing is promised of new rows. "
        "Null: 0.2, but 0 for clustering and projection, where every row belongs in the result.",
    )
    folds: int = Field(5, ge=2, le=100, description="K of kfold.")
    resamples: int = Field(50, ge=10, le=1000, description="Number of resamples of the bootstrap.")
    group: str | None = Field(
        None,
        description="A column that names rows which belong together, such as a patient: all rows with one value of it "
        "are on the same side of every split into training and test rows, folds and resamples, so that the metrics are "
        "those of new groups. A row without a value is a group of its own. The column is not a feature unless "
        "`features` names it. Rows that an algorithm holds out within a fit, as for early stopping, are drawn row by "
        "row. Null: rows are split one by one.",
    )

    time: str | None = Field(
        None,
        description="A column of dates or numbers by which rows are ordered: the latest rows are held out, and each "
        "fold of kfold is tested by a fit of all rows before it, so that the metrics are those of a model that "
        "predicts what comes later. Rows of the same time stay together; no row is shuffled, and classes are not "
        "balanced between the sides. The column is not a feature unless `features` names it. Null: rows are split at "
        "random.",
    )

    @property
    def held_out(self) -> float:
        """Share of rows that are held out, once it follows from the task."""
        return self.test_fraction or 0.0

    def of(self, task: Task) -> Self:
        """With the share of rows that the task holds out by default."""
        share = task.record.test_fraction if self.test_fraction is None else self.test_fraction
        return self.model_copy(update={"test_fraction": share})

    def fits(self, rows: int) -> int:
        """Largest number of models fitted on a table of so many rows. rows: or groups, where these are split."""
        trained = round(rows * (1 - self.held_out))
        return 1 + {"holdout": 0, "kfold": self.folds, "loo": trained, "bootstrap": self.resamples}[self.method]
