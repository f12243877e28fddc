"""Request of a session: the learner, its inputs and its labels; and all that follows from it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.references import JobName
from app.base.wire import Body
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.contract.labels import Class, Label
from app.ml.contract.task import TargetKind, Task
from app.ml.online_learner import Inputs, OnlineLearner
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.state import PreparationState
from app.ml.sessions.learner_catalogue import AnyLearner, learner_entries


class SessionInput(Body):
    """An input of every row."""

    name: str = Field(min_length=1, max_length=200, description="Name of the column.")
    kind: Literal["numeric", "boolean", "categorical"] = Field(
        "numeric", description="Kind of its values: numbers, truth values or texts."
    )


class SessionSpec(Body):
    """An online learner, its inputs and its labels."""

    name: JobName | None = Field(None, description="A name for people; null: none.")
    learner: AnyLearner = Field(description="Learner with its parameters.")
    inputs: list[SessionInput] = Field(min_length=1, max_length=1000, description="Inputs of every row.")
    target: str = Field(min_length=1, max_length=200, description="Name of the column that holds the label of a row.")
    labels: list[Label] | None = Field(
        None,
        min_length=2,
        max_length=2,
        description="The two labels: the learner's 0 and 1. Null: false and true; numbers, if the learner predicts "
        "numbers.",
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of all draws: the same seed and rounds give the same bytes.")


@dataclass(frozen=True)
class OnlineSession:
    """A session whose request has no fault."""

    spec: SessionSpec

    @classmethod
    def of(cls, spec: SessionSpec) -> Self:
        """Raises InvalidRequest with every fault."""
        made = cls(spec)
        faults = [*made._faults()]
        if faults:
            raise InvalidRequest(faults=faults)
        return made

    @property
    def learner(self) -> OnlineLearner[Any, Any]:
        return learner_entries()[self.spec.learner.name].learner

    @property
    def numeric(self) -> bool:
        """True if labels are numbers."""
        return self.learner.numeric(self.spec.learner)

    @property
    def task(self) -> Task:
        """The task of the model that a publication makes."""
        return Task.of_target(TargetKind.NUMBERS if self.numeric else TargetKind.CLASSES)

    @property
    def inputs(self) -> Inputs:
        return Inputs(
            tuple(input_.name for input_ in self.spec.inputs), tuple(input_.kind for input_ in self.spec.inputs)
        )

    @property
    def classes(self) -> tuple[Class, ...] | None:
        """Labels by code; None: they are numbers."""
        return None if self.numeric else tuple(self.spec.labels or (False, True))

    @cached_property
    def columns(self) -> tuple[InputColumn, ...]:
        """The inputs, none of which may be missing."""
        levels = list(self.learner.levels(self.spec.learner))
        return tuple(
            InputColumn(name=name, kind=kind, nullable=False)
            if kind != ColumnKind.CATEGORICAL
            else InputColumn(name=name, kind=kind, nullable=False, levels=levels, strict_levels=True)
            for name, kind in zip(*self.inputs, strict=True)
        )

    @cached_property
    def label_column(self) -> InputColumn:
        """The label; null: it comes later."""
        first = (self.classes or (0.0,))[0]
        if isinstance(first, str):
            levels = sorted(map(str, self.classes or ()))
            return InputColumn(name=self.spec.target, kind=ColumnKind.CATEGORICAL, levels=levels, strict_levels=True)
        kind = ColumnKind.BOOLEAN if isinstance(first, bool) else ColumnKind.NUMERIC
        return InputColumn(name=self.spec.target, kind=kind)

    @cached_property
    def preparation(self) -> Preparation:
        """Rows as they are: nothing is scaled or imputed."""
        return self.prepared(self.columns)

    def prepared(self, columns: Sequence[InputColumn], *, categories: bool = False) -> Preparation:
        """categories: whether the algorithm takes missing values and categories itself."""
        size = len(columns)
        none = np.zeros(size, np.bool_)
        state = PreparationState(np.zeros(size), np.zeros(size), np.ones(size), none, none)
        return Preparation(tuple(columns), state, keeps_missing=categories, keeps_categories=categories)

    def _faults(self) -> Iterator[Fault]:
        spec, names = self.spec, Counter(input_.name for input_ in self.spec.inputs)
        for place, input_ in enumerate(spec.inputs):
            if names[input_.name] > 1:
                yield Fault(f"/inputs/{place}/name", "Another input has the same name.", "duplicate_column")
            if input_.name == spec.target:
                yield Fault(f"/inputs/{place}/name", "It is the name of the target.", "duplicate_column")
        if spec.labels is not None:
            yield from self._label_faults(spec.labels)
        yield from self.learner.faults(spec.learner, self.inputs.kinds)

    def _label_faults(self, labels: Sequence[Class]) -> Iterator[Fault]:
        if self.numeric:
            yield Fault("/labels", "This learner predicts numbers: leave the labels out.")
        elif labels[0] == labels[1] or len({_kind(label) for label in labels}) > 1:
            yield Fault("/labels", "The two labels are different, and both texts, numbers or truth values.")


def _kind(label: Class) -> type:
    return float if type(label) is int else type(label)
