"""Goals over the predictions of models: what is maximised, minimised, hit or kept within a limit."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.ml.contract.algorithm import Matrix, Task, Vector
from app.ml.contract.labels import UNKNOWN, Label, codes_of
from app.ml.contract.model_reference import ModelRef
from app.ml.decisions.design import Design, ModelRows
from app.ml.kinds.job import Loaded
from app.ml.models.header import Header

Aim = Literal["maximise", "minimise", "target", "at_least", "at_most"]
LIMITS = {"at_least", "at_most"}
"""Aims that are limits, which a solution has to keep."""


class Goal(ModelRef):
    """A goal over the predictions of one model version."""

    aim: Aim = Field(
        "maximise",
        description="maximise or minimise the prediction, bring it to a target, or keep it at_least or at_most at a "
        "value. The last two are limits that a solution has to keep.",
    )
    value: float | None = Field(
        None, ge=-1e100, le=1e100, description="Value of a target or a limit; null for maximise and minimise."
    )
    label: Label | None = Field(
        None, description="Class whose probability is the prediction of a classifier; null for a regression."
    )
    confidence: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Confidence of an interval whose worse end counts in place of the prediction, so that the goal is "
        "reached in spite of the error of the model; null: the prediction counts.",
    )
    weight: float = Field(
        1.0,
        ge=-1e100,
        le=1e100,
        description="Weight in the sum of goals, per unit of the prediction, where they are combined by weighted_sum: "
        "such as a weight that a preference has learned.",
    )

    @model_validator(mode="after")
    def _of_aim(self) -> "Goal":
        if (self.value is None) != (self.aim in {"maximise", "minimise"}):
            raise ValueError("target, at_least and at_most have a value, maximise and minimise have none.")
        return self

    @property
    def is_limit(self) -> bool:
        return self.aim in LIMITS


def goal_faults(goals: Sequence[Goal], headers: Sequence[Header]) -> Iterator[Fault]:
    for place, (goal, header) in enumerate(zip(goals, headers, strict=True)):
        pointer, task = f"/goals/{place}", Task(header.task)
        yield from goal.choice_faults(pointer)
        if task.of_classes:
            if goal.label is None:
                yield Fault(
                    f"{pointer}/label", "A classifier's goal is the probability of a class: name it.", "missing"
                )
            elif codes_of([goal.label], header.classes or ())[0] == UNKNOWN:
                yield Fault(f"{pointer}/label", "The model has no such class.", "unknown_class")
            if goal.confidence is not None:
                yield Fault(f"{pointer}/confidence", "Probabilities have no intervals.", "not_offered")
        elif not task.of_numbers:
            yield Fault(
                f"{pointer}/model", f"It does {header.task}: goals are of regressions and classifiers.", "not_offered"
            )
        elif goal.label is not None:
            yield Fault(f"{pointer}/label", "A regression has no classes.")
    if all(goal.is_limit for goal in goals):
        yield Fault("/goals", "Limits alone choose nothing: maximise, minimise or target something.", "missing")


class Reached(NamedTuple):
    """Predictions for n points by g goals."""

    predicted: Matrix
    """(n, g)."""
    lower: Matrix
    """(n, g) ends of intervals, the prediction where a goal has no confidence."""
    upper: Matrix

    def gains(self, goals: Sequence[Goal]) -> Matrix:
        """(n, k) of the goals that are no limits, larger is better: the worse end, or minus the miss of a target."""
        return np.column_stack([self._gain(goal, place) for place, goal in enumerate(goals) if not goal.is_limit])

    def demands(self, goals: Sequence[Goal]) -> Matrix:
        """(n, m) of the limits: at least 0 where they are kept."""
        limits = [self._demand(goal, place) for place, goal in enumerate(goals) if goal.is_limit]
        return np.column_stack([np.zeros((len(self.predicted), 0)), *limits])

    def _gain(self, goal: Goal, place: int) -> Vector:
        lower, upper = self.lower[:, place], self.upper[:, place]
        if goal.aim == "target":
            return -np.maximum(np.abs(lower - (goal.value or 0.0)), np.abs(upper - (goal.value or 0.0)))
        return lower if goal.aim == "maximise" else -upper

    def _demand(self, goal: Goal, place: int) -> Vector:
        value = goal.value or 0.0
        return self.lower[:, place] - value if goal.aim == "at_least" else value - self.upper[:, place]


class Aims(NamedTuple):
    """Goals with their models, each of which predicts a batch of points once."""

    goals: tuple[Goal, ...]
    rows: tuple[ModelRows, ...]
    """Different models."""
    places: tuple[int, ...]
    """(g,) place of the model of each goal."""

    @classmethod
    def of(cls, goals: Sequence[Goal], loaded: Sequence[Loaded], design: Design) -> "Aims":
        """loaded: the model of each goal. Raises NoInterval where one is needed."""
        digests = [member.version.digest for member in loaded]
        first = [digests.index(digest) for digest in digests]
        different = sorted(set(first))
        for goal, member in zip(goals, loaded, strict=True):
            if goal.confidence is not None:
                _ = member.model.interval
        rows = tuple(ModelRows.of(loaded[place].model, design) for place in different)
        return cls(tuple(goals), rows, tuple(different.index(place) for place in first))

    def reached(self, points: Matrix) -> Reached:
        predicted, lower, upper = (np.empty((len(points), len(self.goals))) for _ in range(3))
        raw = [rows.raw(points) for rows in self.rows]
        for place, (goal, row_index) in enumerate(zip(self.goals, self.places, strict=True)):
            model_output = self.rows[row_index].model.predict_raw(raw[row_index], goal.confidence)
            values = model_output.values
            if model_output.probabilities is not None and model_output.classes is not None and goal.label is not None:
                values = model_output.probabilities[:, codes_of([goal.label], model_output.classes)].ravel()
            predicted[:, place] = lower[:, place] = upper[:, place] = values
            if model_output.intervals is not None:
                lower[:, place], upper[:, place] = model_output.intervals.T
        return Reached(predicted, lower, upper)


def demand_bounded(reached: Reached, goals: Sequence[Goal]) -> None:
    """Raises InvalidRequest for intervals without an end on the side that counts."""
    faults = []
    for place, goal in enumerate(goals):
        ends = {
            "maximise": reached.lower,
            "at_least": reached.lower,
            "minimise": reached.upper,
            "at_most": reached.upper,
        }
        end = ends.get(goal.aim, reached.upper - reached.lower)[:, place]
        if goal.confidence is not None and not np.isfinite(end).any():
            detail = "The intervals of the model have no end at this confidence: lower it, or hold out more rows."
            faults.append(Fault(f"/goals/{place}/confidence", detail, "unbounded"))
    if faults:
        raise InvalidRequest(faults=faults)
