"""Computations on rows as a graph of tensor operations, which a file of ONNX or a script of numpy can carry out.

The operations bear the names that ONNX has for them, and all numbers are of 64 bits. Algorithms write predictions with
the operators of `Tensor`, as they do with those of arrays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Operand: TypeAlias = "Tensor | NDArray[Any] | float | int"
COLUMNS = 1
"""The axis of columns: the first is that of rows."""


class Operation(NamedTuple):
    """One node of a graph."""

    operator: str
    """Name that ONNX has for it."""
    inputs: tuple[int, ...]
    """Places of its inputs among the values of the graph."""
    attributes: Mapping[str, Any]


class TensorGraph:
    """Values in the order of their computation: inputs by their names, constants, and results of operations."""

    def __init__(self) -> None:
        self.values: list[str | NDArray[Any] | Operation] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], int] = {}

    def input_column(self, name: str) -> "Tensor":
        """A column (n, 1) that rows bring: numbers, or texts."""
        return self._appended(name, 1)

    def constant(self, array: NDArray[Any] | float) -> "Tensor":
        """An array; equal ones are stored once."""
        array = np.asarray(array)
        key = str(array.dtype), array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = self._appended(array, 0).place
        return Tensor(self, self._constants[key], array.shape[-1] if array.ndim else 1)

    def compute(self, operator: str, inputs: Sequence[Operand], width: int, **attributes: Any) -> "Tensor":
        """The result of an operation; width: the number of its columns."""
        tensors = [self.tensor(operand) for operand in inputs]
        return self._appended(Operation(operator, tuple(tensor.place for tensor in tensors), attributes), width)

    def tensor(self, operand: Operand) -> "Tensor":
        """The operand in this graph."""
        if isinstance(operand, Tensor):
            return operand
        return self.constant(np.asarray(operand) if isinstance(operand, np.ndarray) else np.array(float(operand)))

    def _appended(self, value: str | NDArray[Any] | Operation, width: int) -> "Tensor":
        self.values.append(value)
        return Tensor(self, len(self.values) - 1, width)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of a graph: n rows, with `width` columns unless its docstring states another shape."""

    graph: TensorGraph
    place: int
    width: int
    __array_ufunc__ = None  # an array on the left leaves the operation to the tensor

    def __add__(self, other: Operand) -> "Tensor":
        return self.combine("Add", other)

    def __radd__(self, other: Operand) -> "Tensor":
        return self.graph.tensor(other).combine("Add", self)

    def __sub__(self, other: Operand) -> "Tensor":
        return self.combine("Sub", other)

    def __rsub__(self, other: Operand) -> "Tensor":
        return self.graph.tensor(other).combine("Sub", self)

    def __mul__(self, other: Operand) -> "Tensor":
        return self.combine("Mul", other)

    def __rmul__(self, other: Operand) -> "Tensor":
        return self.graph.tensor(other).combine("Mul", self)

    def __truediv__(self, other: Operand) -> "Tensor":
        return self.combine("Div", other)

    def __rtruediv__(self, other: Operand) -> "Tensor":
        return self.graph.tensor(other).combine("Div", self)

    def __neg__(self) -> "Tensor":
        return self.apply("Neg")

    def __matmul__(self, other: NDArray[np.float64]) -> "Tensor":
        """The product with an array (d, k); with one (d,) a single column."""
        array = np.ascontiguousarray(other[:, None] if other.ndim == 1 else other, np.float64)
        return self.graph.compute("MatMul", [self, array], array.shape[1])

    def __lt__(self, other: Operand) -> "Tensor":  # type: ignore[misc]  # numpy yields, by __array_ufunc__
        return self.combine("Less", other)

    def __le__(self, other: Operand) -> "Tensor":  # type: ignore[misc]  # numpy yields, by __array_ufunc__
        return self.combine("LessOrEqual", other)

    def __gt__(self, other: Operand) -> "Tensor":  # type: ignore[misc]  # numpy yields, by __array_ufunc__
        return self.combine("Greater", other)

    def __ge__(self, other: Operand) -> "Tensor":  # type: ignore[misc]  # numpy yields, by __array_ufunc__
        return self.combine("GreaterOrEqual", other)

    def __and__(self, other: "Tensor") -> "Tensor":
        return self.combine("And", other)

    def __or__(self, other: "Tensor") -> "Tensor":
        return self.combine("Or", other)

    def __invert__(self) -> "Tensor":
        return self.apply("Not")

    def __getitem__(self, columns: NDArray[np.integer[Any]] | Sequence[int]) -> "Tensor":
        """These columns."""
        places = np.asarray(columns, np.int64)
        return self.graph.compute("Gather", [self, places], places.size, axis=COLUMNS)

    def apply(self, operator: str) -> "Tensor":
        """A function of each number: `Exp`, `Log`, `Sqrt`, `Abs`, `Tanh`, `Floor`, `Sin`, `Cos`, `IsNaN`."""
        return self.graph.compute(operator, [self], self.width)

    def combine(self, operator: str, other: Operand) -> "Tensor":
        """A function of pairs of numbers: `Max`, `Min`, `Pow`, `Equal`, or one that a sign stands for."""
        right = self.graph.tensor(other)
        return self.graph.compute(operator, [self, right], max(self.width, right.width))

    def reduce(self, operator: str) -> "Tensor":
        """(n, 1) of all columns: `ReduceSum`, `ReduceMax`, `ReduceMin`, `ReduceSumSquare`."""
        return self.graph.compute(operator, [self, np.array([COLUMNS])], 1)

    def sum_in_order(self, precision: str = "float64") -> "Tensor":
        """(n, 1) the columns added one after the other, to the bit, in this precision."""
        terms = self.graph.compute("Cast", [self], self.width, to=precision)
        sums = self.graph.compute("CumSum", [terms, np.array(COLUMNS)], self.width)
        return sums[[self.width - 1]].to_numbers()

    def first_largest(self) -> "Tensor":
        """(n, 1) whole numbers: the first column with the largest number."""
        return self.graph.compute("ArgMax", [self], 1, axis=COLUMNS, keepdims=1)

    def first_smallest(self) -> "Tensor":
        """(n, 1) whole numbers: the first column with the smallest number."""
        return self.graph.compute("ArgMin", [self], 1, axis=COLUMNS, keepdims=1)

    def smallest(self, count: int) -> tuple["Tensor", "Tensor"]:
        """(n, count) the smallest numbers, ascending, and their columns; of equal ones the first."""
        values = self.graph.compute("TopK", [self, np.array([count])], count, axis=COLUMNS, largest=0, output=0)
        places = self.graph.compute("TopK", [self, np.array([count])], count, axis=COLUMNS, largest=0, output=1)
        return values, places

    def among(self, array: NDArray[Any]) -> "Tensor":
        """Entries of an array by these whole numbers (n, m): (n, m) of an array (l,), else (n, m, …)."""
        width = self.width if array.ndim == 1 else array.shape[-1]
        return self.graph.compute("Gather", [np.ascontiguousarray(array), self], width, axis=0)

    def where(self, truths: "Tensor", other: Operand) -> "Tensor":
        """These numbers where the truths hold, else the others."""
        alternative = self.graph.tensor(other)
        return self.graph.compute(
            "Where", [truths, self, alternative], max(self.width, alternative.width, truths.width)
        )

    def to_numbers(self) -> "Tensor":
        """Truths as 1 and 0, whole numbers as numbers."""
        return self.graph.compute("Cast", [self], self.width, to="float64")

    def to_integers(self) -> "Tensor":
        """Numbers without their fractions."""
        return self.graph.compute("Cast", [self], self.width, to="int64")

    def beside(self, *others: "Tensor") -> "Tensor":
        """Columns of all, in this order."""
        parts = [self, *others]
        if len(parts) == 1:
            return self
        return self.graph.compute("Concat", parts, sum(part.width for part in parts), axis=COLUMNS)

    def repeated(self, values: NDArray[np.float64]) -> "Tensor":
        """The same row (k,) for each row, whatever these numbers are."""
        zero = self[[0]].apply("IsNaN").to_numbers() * 0.0 if self.width else self.reduce("ReduceSum")
        return zero + np.asarray(values, np.float64)[None]
