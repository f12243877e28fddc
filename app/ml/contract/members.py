"""Members: learners inside a learner, and the sizes of the fits that they make."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from app.ml.contract.columns import ColumnKind
from app.ml.contract.params import Learner
from app.ml.contract.relations import Form
from app.ml.contract.task import Task


class Size(NamedTuple):
    """Task of a fit."""

    rows: float
    columns: float
    classes: int = 0
    """Number of classes in classification; 0 in other tasks."""
    indicators: float = 0.0
    """Columns that are indicators of categories."""

    @property
    def cells(self) -> float:
        return self.rows * self.columns


class Inputs(NamedTuple):
    """Facts of a table before any row is read."""

    kinds: Mapping[str, str]
    """`ColumnKind` of each input, and of functions of inputs, by name."""
    size: Size
    relations: Form | None = None
    """Form in which relations between rows are given; None: there are none."""
    offset: str | None = None
    """`exposure` or `offset`, where a column is part of the score; None: there is none."""
    target_ends: tuple[float, ...] = ()
    """The smallest and the largest target of a regression, as the fit has it; none where they are not known."""

    @property
    def texts(self) -> bool:
        """True if there are columns of text among them."""
        return ColumnKind.TEXT in self.kinds.values()


def _once(size: Size) -> tuple[float, Size]:
    return 1.0, size


class Member(NamedTuple):
    """A learner inside a learner."""

    pointer: str
    """Its place among the parameters: "/estimator", "/estimators/2"."""
    spec: Learner
    task: Task
    """Its purpose."""
    fits: Callable[[Size], tuple[float, Size]] = _once
    """About how often a fit of this size fits it, and what each of its own fits is of."""
    above: bool = False
    """Its inputs are the predictions of other members, not the columns."""
