"""Table → raw matrix → matrix, learned from the training rows once and kept with the model (B4.11).

The raw matrix (n, p) has one column per input: numbers as they are, booleans 0 and 1, datetimes seconds
since 1970 in UTC, categories the code of their level; NaN is missing, and UNSEEN a category without a code.
The matrix (n, d) is what the algorithm gets: missing numbers imputed, numbers scaled, a 0/1 column per level,
in this order: all measured inputs, then the indicators of each categorical input. Row weights play no part.

A categorical input keeps at most `max_levels` levels. If training had more, the most frequent stay (ties: the
first by code point) and every other value, then and later, counts as one more level, `other`. Training rows
without a value give the input a level of their own, `missing`. A value that has no level (unseen, or missing
where training had none missing) is answered by indicators that are all 0, and flagged `unseen_category`; so is
every later value that counts as `other`, since which rare ones training saw is not kept.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract import Accepts, Labels, Matrix, Vector
from app.ml.numerics.spread import Spread, spread
from app.ml.raw import UNSEEN, Raw, codes, measured
from app.ml.schema import ColumnKind, InputColumn
from app.wire import Body

Truths = NDArray[np.bool_]
BLOCK = 1 << 18
"""Numbers worked on at a time, so that temporaries stay small whatever the table."""


class Preprocessing(Body):
    """How columns become numbers. Learned on the training rows, kept with the model, applied alike ever after."""

    scaling: Literal["standard", "minmax", "none"] = Field("standard", description="Of numeric inputs.")
    imputation: Literal["mean", "median"] = Field(
        "mean", description="Of missing numbers; missing categories get a level of their own."
    )
    max_levels: int = Field(
        64, ge=2, le=1024, description="Categories kept per column; beyond them the rarest count as one, other."
    )


class Flagged(NamedTuple):
    """Rows whose answer deserves doubt."""

    code: str
    """unseen_category, outside_range, imputed or unknown."""
    column: str | None
    """None: the row as a whole."""
    rows: Labels


class Learned(NamedTuple):
    """What training rows taught: an entry per input (p,), neutral where it does not apply."""

    fill: Vector
    offset: Vector
    scale: Vector
    other: Truths
    """Categorical inputs with a level for everything rare."""
    missing: Truths
    """Categorical inputs with a level for missing values."""


@dataclass(frozen=True)
class Preparation:
    inputs: tuple[InputColumn, ...]
    learned: Learned
    keeps_missing: bool = False
    """Missing numbers stay NaN: the algorithm takes them."""
    keeps_categories: bool = False
    """The algorithm takes the raw matrix itself, with UNSEEN as NaN: no scaling, no indicators."""

    @classmethod
    def fit(cls, raw: Raw, rows: Labels, how: Preprocessing, accepts: Collection[Accepts] = ()) -> Self:
        """Learn from these rows of a table.

        An algorithm that accepts missing values and categories gets neither scaling nor indicators; categories
        alone are not enough, for a category without a level is told as NaN.
        """
        keeps_missing = Accepts.MISSING in accepts
        keeps_categories = keeps_missing and Accepts.CATEGORIES in accepts
        inputs, facts = [], []
        for place, column in enumerate(raw.columns):
            values, words = raw.values[rows, place], raw.vocabularies[place]
            if words is None:
                found = spread(values)
                inputs.append(_measured_input(column.name, column.kind, found))
                offset, scale = (0.0, 1.0) if keeps_categories else _scaling(found, how)
                facts.append((_fill(values, found, how), offset, scale, False, False))
            else:
                levels, other = _levels(values, words, how.max_levels)
                inputs.append(InputColumn(name=column.name, kind=column.kind, levels=levels))
                facts.append((0.0, 0.0, 1.0, other, bool(np.isnan(values).any())))
        fill, offsets, scales = (np.array([fact[i] for fact in facts], np.float64) for i in range(3))
        others, missing = (np.array([fact[i] for fact in facts], np.bool_) for i in (3, 4))
        learned = Learned(fill, offsets, scales, others, missing)
        return cls(tuple(inputs), learned, keeps_missing, keeps_categories)

    def raw(self, table: pa.Table) -> Matrix:
        """The raw matrix (n, p) of a table with these inputs among its columns. Raises InvalidData for infinities."""
        raw = np.empty((table.num_rows, len(self.inputs)))
        for place, (column, words) in enumerate(zip(self.inputs, self._words, strict=True)):
            cells = table.column(column.name)
            raw[:, place] = measured(cells, column.name) if words is None else codes(cells, words, self._absent[place])
        return raw

    def matrix(self, raw: Matrix) -> Matrix:
        """The matrix (n, d) of a raw matrix (n, p)."""
        x = np.zeros((raw.shape[0], self.width))
        self._write(raw, x)
        return x

    def of(self, raw: Raw, rows: Labels) -> Matrix:
        """The matrix of rows read for training: the same as `matrix(self.raw(…))` of those rows of the table."""
        own_codes = {
            place: codes(words, self._words[place], self._absent[place])
            for place, words in enumerate(raw.vocabularies)
            if words is not None
        }
        x = np.zeros((rows.size, self.width))
        for block in _blocks(rows.size, max(len(self.inputs), self.width)):
            piece = raw.values[rows[block]]
            for place, table in own_codes.items():
                present = ~np.isnan(piece[:, place])
                piece[present, place] = table[piece[present, place].astype(np.intp)]
            self._write(piece, x[block])
        return x

    def _write(self, raw: Matrix, x: Matrix) -> None:
        """The matrix of `raw` into `x`, which holds zeros."""
        if self.keeps_categories:
            x[...] = raw
            x[(raw == UNSEEN) & self._categorical] = np.nan
            return
        numbers = x[:, : self._measured.size]
        np.subtract(raw[:, self._measured] if self._indicated.size else raw, self._offset, out=numbers)
        numbers /= self._scale
        if not self.keeps_missing:
            np.copyto(numbers, self._filled, where=np.isnan(numbers))
        if self._indicated.size:
            levels = raw[:, self._indicated]
            np.copyto(levels, self._code_of_missing, where=np.isnan(levels))
            rows, places = np.nonzero(levels != UNSEEN)
            x[rows, self._starts[places] + levels[rows, places].astype(np.intp)] = 1.0

    def flags(self, raw: Matrix) -> tuple[Flagged, ...]:
        """Which rows of a raw matrix deserve doubt, and why."""
        if not self._indicated.size and ((raw >= self._low) & (raw <= self._high)).all():
            return ()  # NaN is within nothing: none is missing either
        empty = np.isnan(raw)
        unknown = (raw == self._absent) | (empty & ~self.learned.missing)
        doubts = {
            "unseen_category": unknown & self._categorical,
            "outside_range": (raw < self._low) | (raw > self._high),
            "imputed": empty & (not self.keeps_missing) & ~self._categorical,
        }
        return tuple(
            Flagged(code, self.inputs[place].name, np.flatnonzero(doubt[:, place]))
            for code, doubt in doubts.items()
            for place in np.flatnonzero(doubt.any(axis=0)).tolist()
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the matrix's columns: "age", "plan=pro", "plan=(missing)"."""
        if self.keeps_categories:
            return tuple(column.name for column in self.inputs)
        names = [self.inputs[place].name for place in self._measured]
        for place in self._indicated:
            column = self.inputs[place]
            extra = (("(other)", self.learned.other), ("(missing)", self.learned.missing))
            levels = [*(column.levels or ()), *(name for name, has in extra if has[place])]
            names += [f"{column.name}={level}" for level in levels]
        return tuple(names)

    @cached_property
    def numbers(self) -> tuple[str, ...] | None:
        """The names of the inputs if all of them are numbers and may be missing: what `app.ml.plain` reads."""
        plain = all(c.kind == ColumnKind.NUMERIC and c.nullable for c in self.inputs)
        return tuple(c.name for c in self.inputs) if plain else None

    @cached_property
    def units(self) -> tuple[Vector, Vector]:
        """Offset and scale (d,) of the matrix's columns: a number of the table is there (number - offset) / scale."""
        offset, scale = np.zeros(self.width), np.ones(self.width)
        if not self.keeps_categories:
            offset[: self._measured.size], scale[: self._measured.size] = self._offset, self._scale
        return offset, scale

    @cached_property
    def width(self) -> int:
        """d, the number of columns of the matrix."""
        return len(self.inputs) if self.keeps_categories else self._measured.size + int(self._sizes.sum())

    @cached_property
    def levels(self) -> Labels:
        """(d,) of the matrix's columns: the number of level codes, 0 for numbers. What `Data.levels` wants."""
        if not self.keeps_categories:
            return np.zeros(self.width, np.intp)
        return np.where(self._categorical, np.maximum(self._kept + self.learned.other, 1), 0)

    def checked(self) -> Self:
        """Itself; raises ValueError where the parts do not fit together."""
        shape = (len(self.inputs),)
        if any(part.shape != shape for part in self.learned) or (self.learned.scale == 0).any():
            raise ValueError("the parts of a preparation do not fit together")
        if any(column.levels is None and not ColumnKind(column.kind).measured for column in self.inputs):
            raise ValueError("a categorical input has no levels")
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
    def _kept(self) -> Labels:
        return np.array([len(column.levels or ()) for column in self.inputs], np.intp)

    @cached_property
    def _absent(self) -> Vector:
        """(p,) the code of a value that is not a kept level; a NaN, equal to nothing, for measured inputs."""
        return np.where(self._categorical, np.where(self.learned.other, self._kept, UNSEEN), np.nan)

    @cached_property
    def _low(self) -> Vector:
        return np.array([-np.inf if c.minimum is None else c.minimum for c in self.inputs])

    @cached_property
    def _high(self) -> Vector:
        return np.array([np.inf if c.maximum is None else c.maximum for c in self.inputs])

    @cached_property
    def _measured(self) -> Labels:
        return np.flatnonzero(~self._categorical)

    @cached_property
    def _indicated(self) -> Labels:
        return np.flatnonzero(self._categorical)

    @cached_property
    def _offset(self) -> Vector:
        return self.learned.offset[self._measured]

    @cached_property
    def _scale(self) -> Vector:
        return self.learned.scale[self._measured]

    @cached_property
    def _filled(self) -> Vector:
        return (self.learned.fill[self._measured] - self._offset) / self._scale

    @cached_property
    def _sizes(self) -> Labels:
        """Indicators of each categorical input."""
        return (self._kept + self.learned.other + self.learned.missing)[self._indicated]

    @cached_property
    def _starts(self) -> Labels:
        """The matrix column of each categorical input's first indicator."""
        return self._measured.size + np.cumsum(self._sizes) - self._sizes

    @cached_property
    def _code_of_missing(self) -> Vector:
        own = (self._kept + self.learned.other)[self._indicated]
        return np.where(self.learned.missing[self._indicated], own, UNSEEN)


def _measured_input(name: str, kind: ColumnKind, found: Spread) -> InputColumn:
    if kind is ColumnKind.BOOLEAN or not found.rows:
        return InputColumn(name=name, kind=kind)
    return InputColumn(name=name, kind=kind, minimum=found.low, maximum=found.high)


def _fill(values: Vector, found: Spread, how: Preprocessing) -> float:
    if how.imputation == "mean" or not found.rows:
        return found.mean
    return float(np.nanmedian(values))


def _scaling(found: Spread, how: Preprocessing) -> tuple[float, float]:
    """Offset and scale. A constant column becomes 0 by its offset alone."""
    if how.scaling == "none":
        return 0.0, 1.0
    offset, scale = (found.mean, found.deviation) if how.scaling == "standard" else (found.low, found.high - found.low)
    return (offset, scale) if found.deviation > 0 else (found.mean, 1.0)


def _levels(values: Vector, words: pa.Array, limit: int) -> tuple[list[str], bool]:
    """The levels kept, ascending, and whether some were not."""
    counts = np.bincount(values[~np.isnan(values)].astype(np.intp), minlength=len(words))
    order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
    kept = np.sort(order[:limit] if order.size <= limit else order[: limit - 1])
    return words.take(pa.array(kept)).to_pylist(), order.size > limit


def _blocks(rows: int, width: int) -> Iterator[slice]:
    step = max(1, BLOCK // max(1, width))
    return (slice(start, start + step) for start in range(0, rows, step))
