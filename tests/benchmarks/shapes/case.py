"""A case: one table, ours and the rivals on it, and the measures by which both did the same work."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from .tables import Shape, Table


class Side(NamedTuple):
    """The work of one side, ready to begin."""

    run: Callable[[], Any]
    """Does the work that is measured."""
    work: Callable[[Any], Mapping[str, float]]
    """Maps its result to measures, outside the time: as a rule the same function for both sides."""


class Measure(NamedTuple):
    """When the measures of two sides are equal."""

    tolerance: float
    """Share of the rival's measure by which ours may be worse; with `equal`, differ."""
    better: Literal["lower", "higher", "equal"] = "lower"
    absolute: float = 0.0
    """The same as a number, added."""

    def accepts(self, ours: float, rival: float) -> bool:
        worse = {"lower": ours - rival, "higher": rival - ours, "equal": abs(ours - rival)}[self.better]
        return worse <= self.tolerance * abs(rival) + self.absolute  # False of NaN


class Case(NamedTuple):
    algorithm: str
    shape: Shape
    ours: Callable[[Table], Side]
    """Everything before `Side.run` is preparation that both sides have, outside the time."""
    rivals: Mapping[str, Callable[[Table], Side]]
    """By name. The fastest that came to the same result counts; one that came to a worse one has lost."""
    measures: Mapping[str, Measure]
    """By name; each side's `work` has all of these, and perhaps others that are only shown."""
    stage: str = "fit"
    """Part of the work: fit, predict, or variants of these."""
    exception: str = ""
    """Reason why a ratio above 1 is accepted; empty: it is not."""

    @property
    def name(self) -> str:
        return f"{self.algorithm} {self.stage} {self.shape.name}"
