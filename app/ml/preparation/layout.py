"""The columns of the matrix that a preparation makes: which there are, their names, levels, units and codes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from sys import intern
from typing import Self

import numpy as np
import pyarrow as pa
import scipy

from app.ml.contract.algorithm import Affine, Labels, Matrix, Vector
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.preparation.arrow_columns import UNSEEN
from app.ml.preparation.functions import Basis, Function, Powers
from app.ml.preparation.state import PreparationState, Truths
from app.ml.preparation.target_encoding import Encoding, OutOfFold


@dataclass(frozen=True)
class Layout:
    inputs: tuple[InputColumn, ...]
    learned: PreparationState
    keeps_missing: bool = False
    """Missing numbers stay NaN: the algorithm takes them."""
    keeps_categories: bool = False
    """The algorithm takes the raw matrix itself, with UNSEEN as NaN: no scaling, no indicators."""
    functions: tuple[Function, ...] = ()
    keeps_inputs: bool = True
    """Inputs that formulas read stay columns of the matrix."""
    encodings: tuple[Encoding, ...] = ()
    """Categorical inputs that numbers stand for; their columns are the last of the matrix."""
    out_of_fold: OutOfFold | None = field(default=None, repr=False, compare=False)
    """Those columns of the training rows; not stored."""

    @cached_property
    def basis(self) -> Basis:
        return Basis(tuple(column.name for column in self.inputs), self.functions)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the matrix's columns: "age", "log(age)", "plan=pro", "plan=(missing)"."""
        return self._named([*(column.name for column in self.inputs), *self.basis.names])

    @cached_property
    def plain_names(self) -> tuple[str, ...]:
        """Of the columns z of `affine`: those of `names`, but for powers, which are those of the inputs themselves."""
        return self._named(self.basis.plain_names)

    def _named(self, wide: list[str]) -> tuple[str, ...]:
        encoded = [f"{self.inputs[one.place].name}{suffix}" for one in self.encodings for suffix in one.suffixes]
        if self.keeps_categories:
            return (*(name for name, used in zip(wide, self._used, strict=True) if used), *encoded)
        names = [wide[place] for place in self._measured]
        for place in self._indicated:
            column = self.inputs[place]
            extra = (("(other)", self._other), ("(missing)", self._missing))
            levels = [*(column.levels or ()), *(name for name, has in extra if has[place])]
            names += [f"{column.name}={level}" for level in levels]
        return (*names, *encoded)

    @cached_property
    def numbers(self) -> tuple[str, ...] | None:
        """The names, interned, of the inputs if all are numbers and may be missing: then rows can be a matrix."""
        plain = all(c.kind == ColumnKind.NUMERIC and c.nullable for c in self.inputs)
        return tuple(intern(c.name) for c in self.inputs) if plain else None

    @cached_property
    def units(self) -> tuple[Vector, Vector]:
        """Offset and scale (d,) of the matrix's columns: a number of the table is there (number - offset) / scale."""
        offset, scale = np.zeros(self.width), np.ones(self.width)
        if not self.keeps_categories:
            offset[: self._measured.size], scale[: self._measured.size] = self._offset, self._scale
        return offset, scale

    def affine(self) -> Affine:
        """The matrix's columns from their values in the table's own units."""
        offset, scale = self.units
        wide = np.flatnonzero(self._used) if self.keeps_categories else self._measured
        matrix, shift = self.basis.affine()
        own = scipy.sparse.csr_array(matrix[wide][:, wide])
        indicators = scipy.sparse.eye_array(self.width - wide.size)
        shift = np.append(shift[wide], np.zeros(self.width - wide.size))
        columns = scipy.sparse.block_diag([own, indicators], "csr")
        return Affine(scipy.sparse.csr_array(columns.multiply(1 / scale[:, None])), (shift - offset) / scale)

    def codes(self, place: int, levels: Sequence[str]) -> Vector:
        """The code that each of these values of a categorical input has, and that of any other value."""
        own = {level: float(code) for code, level in enumerate(self.inputs[place].levels or ())}
        other = float(self._absent[place])
        return np.array([*(own.get(level, other) for level in levels), other])

    @cached_property
    def width(self) -> int:
        """d, the number of columns of the matrix."""
        return self._plain_width + sum(len(one.suffixes) for one in self.encodings)

    @cached_property
    def _plain_width(self) -> int:
        """Columns of the matrix before the encoded ones."""
        return int(self._used.sum()) if self.keeps_categories else self._measured.size + int(self._sizes.sum())

    @cached_property
    def levels(self) -> Labels:
        """(d,) of the matrix's columns: the number of level codes, 0 for numbers. What `Data.levels` wants."""
        if not self.keeps_categories:
            return np.zeros(self.width, np.intp)
        levels = np.where(self._categorical, np.maximum(self._kept + self._other, 1), 0)
        plain = np.append(levels, np.zeros(self.basis.width, np.intp))[self._used]
        return np.append(plain, np.zeros(self.width - plain.size, np.intp))

    def checked(self) -> Self:
        """Itself; raises ValueError where the parts do not fit together."""
        shape = (len(self.inputs) + self.basis.width,)
        if any(part.shape != shape for part in self.learned) or (self.learned.scale == 0).any():
            raise ValueError("the parts of a preparation do not fit together")
        if any(column.levels is None and not ColumnKind(column.kind).measured for column in self.inputs):
            raise ValueError("a categorical input has no levels")
        numbers = {column.name for column in self.inputs if column.levels is None}
        if any(not one.columns or not numbers.issuperset(one.columns) for one in self.functions):
            raise ValueError("a function reads what is no number")
        if any(not self._encodes(one) for one in self.encodings):
            raise ValueError("an encoding does not fit its input")
        if self._words and self.names:  # made here: levels that are no texts are found now, not at a prediction
            return self
        raise ValueError("a preparation without inputs")

    def _encodes(self, one: Encoding) -> bool:
        inside = 0 <= one.place < len(self.inputs) and bool(self._categorical[one.place])
        return inside and one.is_sound(int((self._kept + self._other)[one.place]))

    @cached_property
    def _words(self) -> tuple[pa.Array | None, ...]:
        return tuple(None if c.levels is None else pa.array(c.levels, pa.string()) for c in self.inputs)

    @cached_property
    def _categorical(self) -> Truths:
        return np.array([column.levels is not None for column in self.inputs], np.bool_)

    @cached_property
    def _used(self) -> Truths:
        """(p + f,) columns of the wide matrix that the matrix has, itself or as indicators."""
        kept = {name for one in self.functions if isinstance(one, Powers) for name in one.columns}
        read = {name for one in self.functions if not isinstance(one, Powers) for name in one.columns}
        dropped = set() if self.keeps_inputs else read - kept
        dropped |= {self.inputs[one.place].name for one in self.encodings}
        return np.array([c.name not in dropped for c in self.inputs] + [True] * self.basis.width, np.bool_)

    @cached_property
    def _other(self) -> Truths:
        return self.learned.other[: len(self.inputs)]

    @cached_property
    def _missing(self) -> Truths:
        return self.learned.missing[: len(self.inputs)]

    @cached_property
    def _kept(self) -> Labels:
        return np.array([len(column.levels or ()) for column in self.inputs], np.intp)

    @cached_property
    def _absent(self) -> Vector:
        """(p,) the code of a value that is not a kept level; a NaN, equal to nothing, for measured inputs."""
        return np.where(self._categorical, np.where(self._other, self._kept, UNSEEN), np.nan)

    @cached_property
    def _measured(self) -> Labels:
        """Of the wide matrix: numbers that the matrix has."""
        return np.flatnonzero(np.append(~self._categorical, np.ones(self.basis.width, np.bool_)) & self._used)

    @cached_property
    def _indicated(self) -> Labels:
        encoded = [one.place for one in self.encodings]
        return np.setdiff1d(np.flatnonzero(self._categorical), encoded).astype(np.intp)

    @cached_property
    def _offset(self) -> Matrix:
        return self.learned.offset[None, self._measured]

    @cached_property
    def _scale(self) -> Matrix:
        return self.learned.scale[None, self._measured]

    @cached_property
    def _filled(self) -> Matrix:
        return (self.learned.fill[self._measured] - self._offset) / self._scale

    @cached_property
    def _sizes(self) -> Labels:
        """Indicators of each categorical input."""
        return (self._kept + self._other + self._missing)[self._indicated]

    @cached_property
    def _starts(self) -> Labels:
        """The matrix column of each categorical input's first indicator."""
        return self._measured.size + np.cumsum(self._sizes) - self._sizes

    @cached_property
    def _code_of_missing(self) -> Vector:
        own = (self._kept + self._other)[self._indicated]
        return np.where(self._missing[self._indicated], own, UNSEEN)
