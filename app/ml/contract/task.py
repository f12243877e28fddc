"""Tasks: what a model learns from, in which form it predicts, and what ranks models of one task."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class TargetKind(StrEnum):
    """Values of the target that a task learns from."""

    NUMBERS = "numbers"
    CLASSES = "classes"


class PredictionKind(StrEnum):
    """Form of the predictions for n rows."""

    NUMBER = "number"
    """(n,)."""
    PROBABILITIES = "probabilities"
    """(n, k) of the classes."""
    LABEL = "label"
    """(n,) whole numbers from 0, without an order."""
    COORDINATES = "coordinates"
    """(n, p)."""
    LOG_DENSITY = "log_density"
    """(n,)."""


class TaskRecord(NamedTuple):
    """Properties of a task."""

    target: TargetKind | None
    """None: there is no target."""
    prediction: PredictionKind
    measure: str
    """Metric that ranks candidates, unless a request names another."""
    test_fraction: float = 0.2
    """Share of rows that are held out, unless a request names another; 0 where every row belongs in the result."""


class Task(StrEnum):
    REGRESSION = "regression"
    CLASSIFICATION = "classification"
    CLUSTERING = "clustering"
    PROJECTION = "projection"
    DENSITY = "density"

    @classmethod
    def of_target(cls, kind: TargetKind) -> "Task":
        """The task that learns from targets of this kind."""
        return next(task for task, record in RECORDS.items() if record.target is kind)

    @property
    def record(self) -> TaskRecord:
        return RECORDS[self]

    @property
    def supervised(self) -> bool:
        """True if there is a target."""
        return self.record.target is not None

    @property
    def of_numbers(self) -> bool:
        """True if the target holds numbers."""
        return self.record.target is TargetKind.NUMBERS

    @property
    def of_classes(self) -> bool:
        """True if the target holds classes."""
        return self.record.target is TargetKind.CLASSES

    @property
    def labels(self) -> bool:
        """True if predictions are labels without an order, of clusters."""
        return self.record.prediction is PredictionKind.LABEL


RECORDS: Mapping[Task, TaskRecord] = {
    Task.REGRESSION: TaskRecord(TargetKind.NUMBERS, PredictionKind.NUMBER, "rmse"),
    Task.CLASSIFICATION: TaskRecord(TargetKind.CLASSES, PredictionKind.PROBABILITIES, "log_loss"),
    Task.CLUSTERING: TaskRecord(None, PredictionKind.LABEL, "silhouette", test_fraction=0.0),
    Task.PROJECTION: TaskRecord(None, PredictionKind.COORDINATES, "reconstruction_error", test_fraction=0.0),
    Task.DENSITY: TaskRecord(None, PredictionKind.LOG_DENSITY, "log_density"),
}

*_FIRST, _LAST = Task
DESCRIPTION = f"Task: {', '.join(_FIRST)} or {_LAST}."
"""Description of a field that holds a task."""
