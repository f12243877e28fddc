"""Table → raw matrix → matrix, learned from the training rows once and kept with the model (B4.11).

The raw matrix (n, p) has one column per input: numbers as they are, booleans 0 and 1, datetimes seconds
since 1970 in UTC, categories the code of their level; NaN is missing, and UNSEEN a category without a code.
The matrix (n, d) is what the algorithm gets: missing numbers imputed, numbers scaled, a 0/1 column per level,
in this order: all measured inputs, the functions of them (`app.ml.basis`), then the indicators of each categorical
input. Row weights play no part.

A categorical input keeps at most `max_levels` levels. If training had more, the most frequent stay (ties: the
first by code point) and every other value, then and later, counts as one more level, `other`. Training rows
without a value give the input a level of their own, `missing`. A value that has no level (unseen, or missing
where training had none missing) is answered by indicators that are all 0, and flagged `unseen_category`; so is
every later value that counts as `other`, since which rare ones training saw is not kept.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import intern
from typing import Literal, Self, TypeAlias

import numpy as np
import pyarrow as pa
import scipy

from app.ml.basis import Basis, Function, Powers
from app.ml.contract import Accepts, Affine, Labels, Matrix, Vector
from app.ml.doubts import CODES, Doubts, Flagged, blocks
from app.ml.learning import Learned, Truths, learn
from app.ml.numerics.kernels.columns import EMPTY, repeated, standardise
from app.ml.numerics.spread import FAR
from app.ml.preprocessing import Preprocessing
from app.ml.raw import UNSEEN, Raw, codes, measured
from app.ml.schema import ColumnKind, InputColumn

Way: TypeAlias = Literal["raw", "scaled", "written"]
"""The matrix is the raw one, or that shifted and scaled, or has to be written."""


@dataclass(frozen=True)
class Preparation:
    inputs: tuple[InputColumn, ...]
    learned: Learned
    keeps_missing: bool = False
    """Missing numbers stay NaN: the algorithm takes them."""
    keeps_categories: bool = False
    """The algorithm takes the raw matrix itself, with UNSEEN as NaN: no scaling, no indicators."""
    functions: tuple[Function, ...] = ()
    keeps_inputs: bool = True
    """Inputs that formulas read stay columns of the matrix."""

    @classmethod
    def fit(
        cls, raw: Raw, rows: Labels, how: Preprocessing, accepts: Collection[Accepts] = (), *, centred: bool = True
    ) -> Self:
        """Learn from these rows of a table; `centred`: scaling may move a column's 0, as an intercept makes up for it.

        An algorithm that accepts categories, and missing values too, gets neither scaling nor indicators.
        """
        keeps_missing = Accepts.MISSING in accepts
        keeps_categories = keeps_missing and Accepts.CATEGORIES in accepts
        inputs, basis, learned = learn(raw, rows, how, scaled=not keeps_categories, centred=centred)
        return cls(tuple(inputs), learned, keeps_missing, keeps_categories, basis.functions, how.keep_inputs)

    def raw(self, table: pa.Table) -> Matrix:
        """The raw matrix (n, p) of a table with these inputs among its columns. Raises InvalidData for infinities."""
        raw = np.empty((table.num_rows, len(self.inputs)))
        for place, (column, words) in enumerate(zip(self.inputs, self._words, strict=True)):
            cells = table.column(column.name)
            raw[:, place] = measured(cells, column.name) if words is None else codes(cells, words, self._absent[place])
        return raw

    def prepared(self, raw: Matrix) -> tuple[tuple[Flagged, ...], Matrix]:
        """Which rows of a raw matrix (n, p) deserve doubt, and why; and its matrix (n, d). Raises ValueError."""
        raw = np.ascontiguousarray(raw, np.float64)
        doubts, way, inputs, offset, scale = self._usual
        if raw.shape[1] != inputs:
            raise ValueError("a raw matrix has a column for each input")
        if way == "scaled" and standardise.ready:
            x, inside = np.empty(raw.shape), np.empty(raw.shape, np.bool_)
            found = standardise.lean(raw, doubts.first, doubts.last, inside, offset, scale, x)
            flags = doubts.of(raw, inside, found) if found else ()
            return flags, self._matrix(raw) if _imputed(flags) else _near(x) if found else x
        flags = doubts.flags(raw)
        if way == "raw":
            return flags, raw
        return (*flags, *self._undefined(raw)), self._matrix(raw, seen=not (flags or self.functions))

    def matrix(self, raw: Matrix) -> Matrix:
        """The matrix (n, d) of a raw matrix (n, p)."""
        return self._matrix(np.ascontiguousarray(raw))

    def _matrix(self, raw: Matrix, *, seen: bool = False) -> Matrix:
        """seen: all numbers are there, and within the range seen in training."""
        if self._way == "raw":
            return raw
        x = np.zeros((len(raw), self.width)) if self._indicated.size else np.empty((len(raw), self.width))
        for block in blocks(len(raw), self.width):
            self._write(raw[block], x[block], seen=seen)
        return x

    def of(self, raw: Raw, rows: Labels) -> Matrix:
        """The matrix of rows read for training: the same as `matrix(self.raw(…))` of those rows of the table."""
        own_codes = {
            place: codes(words, self._words[place], self._absent[place])
            for place, words in enumerate(raw.vocabularies)
            if words is not None
        }
        x = np.zeros((rows.size, self.width))
        for block in blocks(rows.size, max(len(self.inputs), self.width)):
            piece = raw.values[rows[block]]
            for place, table in own_codes.items():
                present = ~np.isnan(piece[:, place])
                piece[present, place] = table[piece[present, place].astype(np.intp)]
            self._write(piece, x[block])
        return x

    def _write(self, raw: Matrix, x: Matrix, *, seen: bool = False) -> None:
        """The matrix of `raw` into `x`, which holds zeros where there are indicators."""
        wide = self.basis.wide(raw)
        if self.keeps_categories:
            x[...] = wide if self._used.all() else wide[:, self._used]
            x[(x == UNSEEN) & (self.levels > 0)] = np.nan
            return
        numbers = x[:, : self._measured.size]
        used = wide if self._measured.size == wide.shape[1] else wide[:, self._measured]
        with np.errstate(over="ignore"):
            np.subtract(used, self._offset, out=numbers)
            numbers /= self._scale
        if not seen:
            if not self.keeps_missing:
                np.copyto(numbers, self._filled, where=np.isnan(numbers))
            _near(numbers)
        if self._indicated.size:
            levels = raw[:, self._indicated]
            np.copyto(levels, self._code_of_missing, where=np.isnan(levels))
            rows, places = np.nonzero(levels != UNSEEN)
            x[rows, self._starts[places] + levels[rows, places].astype(np.intp)] = 1.0

    def _undefined(self, raw: Matrix) -> tuple[Flagged, ...]:
        """Functions without a value."""
        if not self.functions:
            return ()
        doubt = self.basis.undefined(raw, self.basis.of(raw))
        places = np.flatnonzero(doubt.any(axis=0)).tolist()
        return tuple(Flagged("undefined", self.basis.names[j], np.flatnonzero(doubt[:, j])) for j in places)

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
        if self.keeps_categories:
            return tuple(name for name, used in zip(wide, self._used, strict=True) if used)
        names = [wide[place] for place in self._measured]
        for place in self._indicated:
            column = self.inputs[place]
            extra = (("(other)", self._other), ("(missing)", self._missing))
            levels = [*(column.levels or ()), *(name for name, has in extra if has[place])]
            names += [f"{column.name}={level}" for level in levels]
        return tuple(names)

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
        return int(self._used.sum()) if self.keeps_categories else self._measured.size + int(self._sizes.sum())

    @cached_property
    def levels(self) -> Labels:
        """(d,) of the matrix's columns: the number of level codes, 0 for numbers. What `Data.levels` wants."""
        if not self.keeps_categories:
            return np.zeros(self.width, np.intp)
        levels = np.where(self._categorical, np.maximum(self._kept + self._other, 1), 0)
        return np.append(levels, np.zeros(self.basis.width, np.intp))[self._used]

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
        if self._words and self.names:  # made here: levels that are no texts are found now, not at a prediction
            return self
        raise ValueError("a preparation without inputs")

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
    def _usual(self) -> tuple[Doubts, Way, int, Vector, Vector]:
        """What a prediction looks at, together: to look up one takes as long as to compare a hundred numbers."""
        doubts = Doubts.about(self.inputs, self._absent, self._missing, imputes=not self.keeps_missing)
        return doubts, self._way, len(self.inputs), repeated(self._offset[0]), repeated(self._scale[0])

    @property
    def _way(self) -> Way:
        if self.functions or self._indicated.size:
            return "written"
        return "raw" if self.keeps_categories else "scaled"

    @cached_property
    def _measured(self) -> Labels:
        """Of the wide matrix: numbers that the matrix has."""
        return np.flatnonzero(np.append(~self._categorical, np.ones(self.basis.width, np.bool_)) & self._used)

    @cached_property
    def _indicated(self) -> Labels:
        return np.flatnonzero(self._categorical)

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


def _near(numbers: Matrix) -> Matrix:
    """The same array, its numbers at most so large that they can be computed with."""
    return np.clip(numbers, -FAR, FAR, out=numbers)


def _imputed(flags: Sequence[Flagged]) -> bool:
    """Whether any number was."""
    return len(flags) > 0 and flags[-1].code == CODES[EMPTY]
