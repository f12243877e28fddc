"""Tasks: what a model learns from, in which form it predicts, and what ranks models of one task."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class TargetKind(StrEnum):
    """Values of the target that a task learns from."""

    NUMBERS = "numbers"
    CLASSES = "classes"


class TargetUse(StrEnum):
    """Use of a target by an algorithm in a task."""

    NEVER = "never"
    """A target is refused."""
    OPTIONAL = "optional"
    """The fit does not need it. A projection may learn from it; clusters are only compared with it."""
    NEEDED = "needed"
    """The fit learns from it."""

    def takes(self, *, has_target: bool) -> bool:
        """given: whether there is a target."""
        return self is TargetUse.OPTIONAL or has_target is (self is TargetUse.NEEDED)


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
    """Values that a fit learns from. None: there is no target."""
    prediction: PredictionKind
    measure: str
    """Metric that ranks candidates, unless a request names another."""
    datatype: str | None = "FP64"
    """Datatype of `predict` in the Open Inference Protocol; None: that of the labels of the classes."""
    tensors: tuple[str, ...] = ("predict",)
    """Names of the outputs in that protocol."""
    test_fraction: float = 0.2
    """Share of rows that are held out, unless a request names another; 0 where every row belongs in the result."""
    compared: TargetKind | None = None
    """Values of a target that predictions are compared with, unseen by the fit; None: there is no such comparison."""


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
    Task.CLASSIFICATION: TaskRecord(
        TargetKind.CLASSES, PredictionKind.PROBABILITIES, "log_loss", None, ("predict", "predict_proba")
    ),
    Task.CLUSTERING: TaskRecord(
        None, PredictionKind.LABEL, "silhouette", "INT64", test_fraction=0.0, compared=TargetKind.CLASSES
    ),
    Task.PROJECTION: TaskRecord(None, PredictionKind.COORDINATES, "trustworthiness", test_fraction=0.0),
    Task.DENSITY: TaskRecord(None, PredictionKind.LOG_DENSITY, "log_density"),
}

*_FIRST, _LAST = Task
DESCRIPTION = f"Task: {', '.join(_FIRST)} or {_LAST}."
"""Description of a field that holds a task."""
