"""Dry run of a training: the task, columns, memory, time and warnings that a request would have."""

from pydantic import Field

from app.ml.contract.task import DESCRIPTION as TASK
from app.ml.job import Estimate
from app.ml.training.plan import Plan


class TrainEstimate(Estimate):
    """Estimate of a training."""

    task: str = Field(description=TASK)
    features: list[str] = Field(description="Columns to learn from.")
    rows: int = Field(description="Number of rows.")
    memory_bytes: int = Field(description="Rough peak of the training process.")
    seconds: float = Field(description="Rough time from start to end.")


def estimate(planned: Plan, rows: int) -> TrainEstimate:
    """rows: of the dataset."""
    return TrainEstimate(
        task=planned.task,
        features=list(planned.features),
        rows=rows,
        memory_bytes=planned.memory_bytes,
        seconds=round(planned.seconds + planned.halvings, 2),
        warnings=list(planned.warnings),
    )
