"""Table → raw matrix → matrix, learned from the training rows once and kept with the model (LION 4.7).

The raw matrix (n, p) has one column per input: numbers as they are, booleans 0 and 1, datetimes seconds
since 1970 in UTC, categories the code of their level; NaN is missing, and UNSEEN a category without a code.
The matrix (n, d) is what the algorithm gets: missing numbers imputed, numbers scaled, a 0/1 column per level,
in this order: all measured inputs, the functions of them (`app.ml.preparation.functions`), then the indicators of each
categorical input. Row weights play no part.

A categorical input keeps at most `max_levels` levels. If training had more, the most frequent stay (ties: the
first by code point) and every other value, then and later, counts as one more level, `other`. Training rows
without a value give the input a level of their own, `missing`. A value that has no level (unseen, or missing
where training had none missing) is answered by indicators that are all 0, and flagged `unseen_category`; so is
every later value that counts as `other`, since which rare ones training saw is not kept.

A categorical input that is encoded by the target (`app.ml.preparation.target_encoding`) has columns of its own, the
last ones.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self, TypeAlias

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import Accepts, Labels, Matrix, Vector
from app.ml.numerics.row_blocks import blocks
from app.ml.numerics.scaling import FAR, spread
from app.ml.preparation.arrow_columns import UNSEEN, Raw, codes, measured
from app.ml.preparation.compiled.columns import EMPTY, repeated, standardise
from app.ml.preparation.flags import CODES, Flagged, RowFlags
from app.ml.preparation.layout import Layout
from app.ml.preparation.request import Preprocessing
from app.ml.preparation.state import learn, scaling
from app.ml.preparation.target_encoding import Outcome, OutOfFold, encode

Way: TypeAlias = Literal["raw", "scaled", "written"]
"""The matrix is the raw one, or that shifted and scaled, or has to be written."""


@dataclass(frozen=True)
class Preparation(Layout):
    """Columns become the matrix of the layout."""

    @classmethod
    def fit(
        cls,
        raw: Raw,
        rows: Labels,
        how: Preprocessing,
        accepts: Collection[Accepts] = (),
        outcome: Outcome | None = None,
        *,
        centred: bool = True,
    ) -> Self:
        """Learn from these rows of a table; `centred`: scaling may move a column's 0, as an intercept makes up for it.

        outcome: of these rows, what columns of more categories than `max_levels` are encoded by, if they are. An
        algorithm that accepts categories, and missing values too, gets neither scaling nor indicators.
        """
        keeps_missing = Accepts.MISSING in accepts
        keeps_categories = keeps_missing and Accepts.CATEGORIES in accepts
        scaled = not keeps_categories
        inputs, basis, learned = learn(raw, rows, how, encodes=outcome is not None, scaled=scaled, centred=centred)
        made = cls(tuple(inputs), learned, keeps_missing, keeps_categories, basis.functions, how.keep_inputs)
        if outcome is None:
            return made

        def scale(values: Vector) -> tuple[float, float]:
            return scaling(spread(values), how, centred=centred) if scaled else (0.0, 1.0)

        levels = made._kept + made._other
        places = np.flatnonzero(levels > how.max_levels)
        if not places.size:
            return made
        codes = made._coded(raw, rows, made._code_tables(raw))[:, places]
        encodings, own = encode(places.tolist(), levels[places].tolist(), codes, outcome, rows=rows, scaled=scale)
        return replace(made, encodings=encodings, out_of_fold=OutOfFold.of(raw.values, rows, own))

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
        x, tables = np.zeros((rows.size, self.width)), self._code_tables(raw)
        for block in blocks(rows.size, max(len(self.inputs), self.width)):
            self._write(self._coded(raw, rows[block], tables), x[block])
        if self.out_of_fold is not None:
            self.out_of_fold.put(raw.values, rows, x[:, self._plain_width :])
        return x

    def _code_tables(self, raw: Raw) -> dict[int, Vector]:
        """By place, the own code of each value of a categorical input."""
        return {
            place: codes(words, self._words[place], self._absent[place])
            for place, words in enumerate(raw.vocabularies)
            if words is not None
        }

    @staticmethod
    def _coded(raw: Raw, rows: Labels, tables: Mapping[int, Vector]) -> Matrix:
        """The raw matrix of rows read for training."""
        piece = raw.values[rows]
        for place, table in tables.items():
            present = ~np.isnan(piece[:, place])
            piece[present, place] = table[piece[present, place].astype(np.intp)]
        return piece

    def _write(self, raw: Matrix, x: Matrix, *, seen: bool = False) -> None:
        """The matrix of `raw` into `x`, which holds zeros where there are indicators."""
        wide = self.basis.wide(raw)
        if self.encodings:
            x[:, self._plain_width :] = np.hstack([one.of(raw[:, one.place]) for one in self.encodings])
            x = x[:, : self._plain_width]
        if self.keeps_categories:
            x[...] = wide if self._used.all() else wide[:, self._used]
            x[(x == UNSEEN) & (self.levels[: x.shape[1]] > 0)] = np.nan
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
    def _usual(self) -> tuple[RowFlags, Way, int, Vector, Vector]:
        """What a prediction looks at, together: to look up one takes as long as to compare a hundred numbers."""
        doubts = RowFlags.about(self.inputs, self._absent, self._missing, imputes=not self.keeps_missing)
        return doubts, self._way, len(self.inputs), repeated(self._offset[0]), repeated(self._scale[0])

    @property
    def _way(self) -> Way:
        if self.functions or self._indicated.size or self.encodings:
            return "written"
        return "raw" if self.keeps_categories else "scaled"


def _near(numbers: Matrix) -> Matrix:
    """The same array, its numbers at most so large that they can be computed with."""
    return np.clip(numbers, -FAR, FAR, out=numbers)


def _imputed(flags: Sequence[Flagged]) -> bool:
    """Whether any number was."""
    return len(flags) > 0 and flags[-1].code == CODES[EMPTY]
