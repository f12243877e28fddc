"""Finite classes of hypotheses with the labels 0 and 1: given as a table, or by name.

A class divides the rows into cells within which no hypothesis distinguishes them; its table (c, m) holds the
predictions of all m hypotheses in each.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Literal, TypeAlias

import numpy as np
from pydantic import Field, PrivateAttr
from typing_extensions import TypeAliasType

from app.base.faults import Fault
from app.base.wire import Body
from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.columns import ColumnKind
from app.ml.numerics.online_learning.compiled.class_rounds import Predictions
from app.ml.numerics.rules.conditions import OPS, Condition

MOST_HYPOTHESES = 4096
LARGEST_TABLE = 1 << 22
"""Predictions of a table."""
MOST_DISJOINED = 8
"""Columns of the class of all disjunctions, of which there are 2^d."""
NONE = np.zeros(0, np.bool_)
Tests: TypeAlias = tuple[Condition, ...]


class _Class(Body):
    _tables: dict[int, Predictions] = PrivateAttr(default_factory=dict)

    def faults(self, kinds: Sequence[str]) -> Iterator[Fault]:
        """Faults of the class for inputs of these kinds."""
        raise NotImplementedError

    def levels(self) -> tuple[str, ...]:
        """Categories of its input, ascending; none where it is not categorical."""
        return ()

    def table(self, width: int) -> Predictions:
        """(c, m) for so many inputs; made once."""
        if width not in self._tables:
            self._tables[width] = self._made(width)
        return self._tables[width]

    def _made(self, width: int) -> Predictions:
        raise NotImplementedError

    def cells(self, x: Matrix) -> Labels:
        """(n,) for rows (n, width)."""
        raise NotImplementedError

    def regions(self, values: Vector) -> Iterator[tuple[Tests, float]]:
        """Conditions that part the rows by values (c,) of their cells, each with its value; where it is 0, none."""
        raise NotImplementedError


class _OfNumbers(_Class):
    grid: list[float] = Field(min_length=1, max_length=2047, description="Numbers, ascending.")

    def faults(self, kinds: Sequence[str]) -> Iterator[Fault]:
        if list(kinds) != [ColumnKind.NUMERIC]:
            yield Fault("/inputs", "This class needs exactly one input, which is numeric.", "wrong_inputs")
        if any(low >= high for low, high in pairwise(self.grid)):
            yield Fault("/learner/hypotheses/grid", "Each number must be larger than the one before.", "not_ascending")

    def regions(self, values: Vector) -> Iterator[tuple[Tests, float]]:
        edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
        for begin, end in pairwise(edges):
            if values[begin] > 0:
                yield tuple(self._tests(begin, end - 1)), float(values[begin])

    def _tests(self, first: int, last: int) -> Iterator[Condition]:
        """Conditions of the cells from one to another."""
        raise NotImplementedError


class ThresholdClass(_OfNumbers):
    """1 from a number of the grid on, and nowhere: one hypothesis more than the grid has numbers."""

    name: Literal["thresholds"] = Field(description="Name of the class.")

    def _made(self, width: int) -> Predictions:  # noqa: ARG002 - of every class
        m = len(self.grid) + 1
        return np.tri(m, m, -1, dtype=np.uint8)

    def cells(self, x: Matrix) -> Labels:
        return np.searchsorted(self.grid, x[:, 0], side="right")

    def _tests(self, first: int, last: int) -> Iterator[Condition]:
        if first > 0:
            yield compared(">=", self.grid[first - 1])
        if last < len(self.grid):
            yield compared("<", self.grid[last])


class IntervalClass(_OfNumbers):
    """1 from one number of the grid to another, both included, and nowhere: m(m + 1)/2 + 1 hypotheses."""

    name: Literal["intervals"] = Field(description="Name of the class.")

    def faults(self, kinds: Sequence[str]) -> Iterator[Fault]:
        yield from super().faults(kinds)
        m = len(self.grid)
        if m * (m + 1) // 2 + 1 > MOST_HYPOTHESES:
            detail = f"The grid of {m} numbers has more than {MOST_HYPOTHESES} intervals: take at most 90 numbers."
            yield Fault("/learner/hypotheses/grid", detail, "too_large")

    def _made(self, width: int) -> Predictions:  # noqa: ARG002 - of every class
        low, high = np.triu_indices(len(self.grid))
        cells = np.arange(2 * len(self.grid) + 1)[:, None]
        inside = (2 * low + 1 <= cells) & (cells <= 2 * high + 1)
        return np.ascontiguousarray(np.pad(inside, ((0, 0), (1, 0))), np.uint8)

    def cells(self, x: Matrix) -> Labels:
        """Odd on a number of the grid, even between two."""
        return np.searchsorted(self.grid, x[:, 0], side="left") + np.searchsorted(self.grid, x[:, 0], side="right")

    def _tests(self, first: int, last: int) -> Iterator[Condition]:
        if first > 0:
            yield compared(">=" if first % 2 else ">", self.grid[(first - 1) // 2])
        if last < 2 * len(self.grid):
            yield compared("<=" if last % 2 else "<", self.grid[last // 2])


class PredictionTableClass(_Class):
    """A table of predictions: of each hypothesis for each of some categories."""

    name: Literal["table"] = Field(description="Name of the class.")
    points: list[str] = Field(
        min_length=1, max_length=MOST_HYPOTHESES, description="Categories of the input, each once, in any order."
    )
    predictions: list[list[bool]] = Field(
        min_length=1,
        max_length=MOST_HYPOTHESES,
        description="Hypotheses, each a list of its predictions for the points in their order: true is the second "
        "label.",
    )

    def faults(self, kinds: Sequence[str]) -> Iterator[Fault]:
        if list(kinds) != [ColumnKind.CATEGORICAL]:
            yield Fault("/inputs", "This class needs exactly one input, which is categorical.", "wrong_inputs")
        if len(set(self.points)) < len(self.points):
            yield Fault("/learner/hypotheses/points", "A point is there more than once.", "duplicate_point")
        for place, hypothesis in enumerate(self.predictions):
            if len(hypothesis) != len(self.points):
                detail = f"The hypothesis has {len(hypothesis)} predictions for {len(self.points)} points."
                yield Fault(f"/learner/hypotheses/predictions/{place}", detail, "wrong_length")
        if len(self.points) * len(self.predictions) > LARGEST_TABLE:
            detail = f"The table has more than {LARGEST_TABLE} predictions."
            yield Fault("/learner/hypotheses/predictions", detail, "too_large")

    def levels(self) -> tuple[str, ...]:
        return tuple(sorted(self.points))

    def _made(self, width: int) -> Predictions:  # noqa: ARG002 - of every class
        order = np.argsort(np.array(self.points, object), kind="stable")
        return np.ascontiguousarray(np.array(self.predictions, np.uint8).T[order])

    def cells(self, x: Matrix) -> Labels:
        return x[:, 0].astype(np.intp)

    def regions(self, values: Vector) -> Iterator[tuple[Tests, float]]:
        for value in np.unique(values[values > 0]).tolist():
            yield (Condition(0, OPS.index("in"), 0.0, values == value),), value


class DisjunctionClass(_Class):
    """1 where one of some boolean inputs is true: all 2^d sets of d inputs."""

    name: Literal["disjunctions"] = Field(description="Name of the class.")

    def faults(self, kinds: Sequence[str]) -> Iterator[Fault]:
        yield from boolean_faults(kinds)
        if len(kinds) > MOST_DISJOINED:
            detail = f"There are 2^{len(kinds)} disjunctions: take at most {MOST_DISJOINED} inputs, or `disjunction`."
            yield Fault("/inputs", detail, "too_large")

    def _made(self, width: int) -> Predictions:
        sets = np.arange(1 << width)
        return np.ascontiguousarray((sets[:, None] & sets) != 0, np.uint8)

    def cells(self, x: Matrix) -> Labels:
        """The pattern of the inputs, the first the lowest bit."""
        return (x @ (1 << np.arange(x.shape[1]))).astype(np.intp)

    def regions(self, values: Vector) -> Iterator[tuple[Tests, float]]:
        width = len(values).bit_length() - 1
        for cell in np.flatnonzero(values > 0).tolist():
            tests = (compared(">" if cell >> j & 1 else "<=", 0.5, j) for j in range(width))
            yield tuple(tests), float(values[cell])


class ExpertClass(_Class):
    """The boolean inputs themselves, each the prediction of an expert: as many hypotheses as inputs."""

    name: Literal["experts"] = Field(description="Name of the class.")

    def faults(self, kinds: Sequence[str]) -> Iterator[Fault]:
        yield from boolean_faults(kinds)


def boolean_faults(kinds: Sequence[str]) -> Iterator[Fault]:
    """Faults of inputs of these kinds that are not boolean."""
    for place, kind in enumerate(kinds):
        if kind != ColumnKind.BOOLEAN:
            yield Fault(f"/inputs/{place}/kind", "This learner takes boolean inputs only.", "wrong_inputs")


def compared(op: str, value: float, column: int = 0) -> Condition:
    """Condition on a number."""
    return Condition(column, OPS.index(op), value, NONE)


Hypotheses = TypeAliasType(
    "Hypotheses",
    Annotated[
        ThresholdClass | IntervalClass | PredictionTableClass | DisjunctionClass | ExpertClass,
        Field(discriminator="name"),
    ],
)
"""The component `Hypotheses` of the OpenAPI document."""
