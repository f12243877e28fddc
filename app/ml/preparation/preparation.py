"""Table → raw matrix → matrix, learned from the training rows once and kept with the model (LION 4.7).

The raw matrix (n, p) has one column per input: numbers as they are, booleans 0 and 1, datetimes seconds
since 1970 in UTC, categories the code of their level; NaN is missing, and UNSEEN a category without a code.
The matrix (n, d) is what the algorithm gets: missing numbers imputed, numbers scaled, a 0/1 column per level,
in this order: all measured inputs, the functions of them (`app.ml.preparation.functions`), then the indicators of each
categorical input. Parts of a date replace the date itself. Row weights play no part.

A categorical input keeps at most `max_levels` levels. If training had more, the most frequent stay (ties: the
first by code point) and every other value, then and later, counts as one more level, `other`. Training rows
without a value give the input a level of their own, `missing`. A value that has no level (unseen, or missing
where training had none missing) is represented by indicators that are all 0, and flagged `unseen_category` or
`missing_category`; the former is every later value that counts as `other`, since which rare ones training saw is not
kept. A number that is missing where training lacked none is flagged, too: `imputed`, or `missing_number` by an
algorithm that takes missing values.

A categorical input that is encoded by the target (`app.ml.preparation.target_encoding`) has columns of its own, the
last ones.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from sys import intern
from types import MappingProxyType
from typing import ClassVar, Literal, Self, TypeAlias, cast

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import Accepts, Labels, Matrix, Vector
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.contract.notation import number_markers
from app.ml.contract.offset_column import OffsetColumn
from app.ml.numerics.row_blocks import blocks
from app.ml.numerics.scaling import Spread, spread
from app.ml.preparation.arrow_columns import UNSEEN, Raw, codes, measured, refuse_no_exposure, refuse_unseen
from app.ml.preparation.compiled.columns import EMPTY, repeated, standardise
from app.ml.preparation.date_ranges import ranged
from app.ml.preparation.flags import CODES, Flagged, RowFlags
from app.ml.preparation.functions import Basis, Function
from app.ml.preparation.imputation import filled, learned_fills
from app.ml.preparation.layout import Layout
from app.ml.preparation.level_codes import LevelCodes
from app.ml.preparation.matrix_writer import MatrixWriter, near
from app.ml.preparation.request import Preprocessing
from app.ml.preparation.scaling import Scaling
from app.ml.preparation.state import PreparationState, Truths, learn, scaling
from app.ml.preparation.target_encoding import Encoding, Outcome, OutOfFold, encode
from app.ml.preparation.training_rows import code_tables, coded

MAX_DENSITY = 0.1
"""Largest share of numbers that are not 0 in sparse rows."""
MIN_SPARSE_COLUMNS, MIN_SPARSE_CELLS = 200, 2**20
"""Columns, and numbers in a table, below which an array is as quick."""
Way: TypeAlias = Literal["raw", "scaled", "written"]
"""The matrix is the raw one, or that shifted and scaled, or has to be written."""


@dataclass(frozen=True)
class Preparation:
    """Columns become the matrix of the layout."""

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
    fills: Vector | None = field(default=None, compare=False)
    """(p,) what stands for a missing value of a named input in the raw matrix, NaN of others; None: none is named."""
    out_of_fold: OutOfFold | None = field(default=None, repr=False, compare=False)
    """Those columns of the training rows; not stored."""
    restorable: ClassVar = True
    """The inputs of a row can be read off its matrix."""
    sparse: ClassVar = False
    """The matrix is sparse, and a raw matrix no array."""

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
        spreads: Mapping[str, Spread] = MappingProxyType({}),
    ) -> Self:
        """Learn from these rows of a table; `centred`: scaling may move a column's 0, as an intercept makes up for it.

        outcome: of these rows, what columns of more categories than `max_levels` are encoded by, if they are. An
        algorithm that accepts categories, and missing values too, gets neither scaling nor indicators. spreads: by
        name, moments of columns of more rows than these, where these are a sample.
        """
        keeps_missing = Accepts.MISSING in accepts
        keeps_categories = keeps_missing and Accepts.CATEGORIES in accepts
        scaled = not keeps_categories
        fills, encodes = learned_fills(how.imputation, raw, rows, spreads), outcome is not None
        inputs, basis, learned = learn(raw, rows, how, fills, spreads, encodes=encodes, scaled=scaled, centred=centred)
        made = cls(tuple(inputs), learned, keeps_missing, keeps_categories, basis.functions, how.keep_inputs)
        made = replace(made, fills=made.codes.filling(fills))
        if outcome is None:
            return made

        def scale(values: Vector) -> tuple[float, float]:
            return scaling(spread(values), how, centred=centred) if scaled else (0.0, 1.0)

        levels = made.codes.counts
        places = np.flatnonzero(levels > how.max_levels)
        if not places.size:
            return made
        codes = filled(coded(raw, rows, code_tables(made.codes, raw)), made.fills)[:, places]
        encodings, fold_values = encode(
            places.tolist(), levels[places].tolist(), codes, outcome, rows=rows, scaled=scale
        )
        return replace(made, encodings=encodings, out_of_fold=OutOfFold.of(raw.values, rows, fold_values))

    @cached_property
    def codes(self) -> LevelCodes:
        p = len(self.inputs)
        return LevelCodes(self.inputs, self.learned.other[:p], self.learned.missing[:p])

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """(d,) the levels by code, where the algorithm takes categories; none of a numeric column."""
        if not self.keeps_categories:
            return ()
        levels = {column.name: tuple(column.levels or ()) for column in self.inputs}
        return tuple(levels.get(name, ()) for name in self.layout.names)

    @property
    def offset(self) -> OffsetColumn | None:
        """The column that is part of the score of a row; None: there is none."""
        named = [
            (self.layout.names.index(column.name), column.role == "exposure") for column in self.inputs if column.role
        ]
        return OffsetColumn(*named[0]) if named else None

    @property
    def indicated(self) -> int:
        """Number of inputs that have an indicator for each level."""
        if self.keeps_categories:
            return 0
        return sum(column.levels is not None for column in self.inputs) - len(self.encodings)

    @property
    def categories(self) -> Labels | None:
        """(d,) as `Data.categories` has them."""
        return None if self.keeps_categories else self.layout.categories

    @cached_property
    def basis(self) -> Basis:
        return Basis(tuple(column.name for column in self.inputs), self.functions)

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.codes, self.basis, self.encodings, self.keeps_categories, self.keeps_inputs)

    @cached_property
    def scaling(self) -> Scaling:
        return Scaling(self.layout, self.learned)

    @cached_property
    def _writer(self) -> MatrixWriter:
        return MatrixWriter(self.layout, self.scaling, self.keeps_missing, self.fills)

    @cached_property
    def numbers(self) -> tuple[str, ...] | None:
        """The names, interned, of the inputs if all are numbers that may be missing, none of which stands for a missing
        one: then rows can be a matrix.
        """
        kinds = all(c.kind == ColumnKind.NUMERIC and c.nullable and c.role is None for c in self.inputs)
        plain = kinds and not any(number_markers(c.notation) for c in self.inputs)
        return tuple(intern(c.name) for c in self.inputs) if plain else None

    def raw(self, table: pa.Table) -> Matrix:
        """The raw matrix (n, p) of a table with these inputs among its columns.

        Raises InvalidData for infinities, and for other than the levels of an input that is strict.
        """
        raw = np.empty((table.num_rows, len(self.inputs)))
        for place, (column, words) in enumerate(zip(self.inputs, self.codes.vocabularies, strict=True)):
            cells = table.column(column.name)
            absent = self.codes.absent[place]
            raw[:, place] = measured(cells, column.name) if words is None else codes(cells, words, absent)
            if column.strict_levels:
                refuse_unseen(raw[:, place], column.name)
            if column.role == "exposure":
                refuse_no_exposure(raw[:, place], column.name)
        return raw

    def prepared(self, raw: Matrix) -> tuple[tuple[Flagged, ...], Matrix]:
        """Flags of the doubtful rows of a raw matrix (n, p), with reasons; and its matrix (n, d). Raises ValueError."""
        raw = np.ascontiguousarray(raw, np.float64)
        doubts, way, inputs, offset, scale = self._usual
        if raw.shape[1] != inputs:
            raise ValueError("a raw matrix has a column for each input")
        if way == "scaled" and standardise.ready:
            x, inside = np.empty(raw.shape), np.empty(raw.shape, np.bool_)
            outside_count = standardise.lean(raw, doubts.first, doubts.last, inside, offset, scale, x)
            flags = doubts.of(raw, inside, outside_count) if outside_count else ()
            return flags, self._matrix(raw) if _imputed(flags) else near(x) if outside_count else x
        flags = doubts.flags(raw)
        if way == "raw":
            return flags, raw
        return (*flags, *self._undefined(raw)), self._matrix(raw, seen=not (flags or self.functions))

    def matrix(self, raw: Matrix) -> Matrix:
        """The matrix (n, d) of a raw matrix (n, p)."""
        return self._matrix(np.ascontiguousarray(raw))

    def last_raw(self, raw: Matrix) -> Matrix:
        """The raw matrix that the columns of the matrix are made of: the same, unless a projection comes between."""
        return raw

    @property
    def listed(self) -> "Preparation":
        """The part of which a report lists the columns: all, but for terms of texts, which are too many."""
        return self

    @property
    def beside(self) -> int:
        """Bytes that it keeps beside its arrays."""
        return 0

    @property
    def no_values(self) -> Matrix:
        """The raw matrix of one row in which everything is missing."""
        return np.full((1, len(self.inputs)), np.nan)

    def _matrix(self, raw: Matrix, *, seen: bool = False) -> Matrix:
        """seen: all numbers are there, and within the range seen in training."""
        if self._way == "raw":
            return raw
        shape = len(raw), self.layout.width
        x = np.zeros(shape) if self.layout.indicated.size else np.empty(shape)
        for block in blocks(*shape):
            self._writer.write(raw[block], x[block], seen=seen)
        return x

    def of(self, raw: Raw, rows: Labels) -> Matrix:
        """The matrix of rows read for training: the same as `matrix(self.raw(…))` of those rows of the table."""
        x, tables = np.zeros((rows.size, self.layout.width)), code_tables(self.codes, raw)
        for block in blocks(rows.size, max(len(self.inputs), self.layout.width)):
            self._writer.write(coded(raw, rows[block], tables), x[block])
        if self.out_of_fold is not None:
            self.out_of_fold.put(raw.values, rows, x[:, self.layout.plain_width :])
        return x

    def sparse_of(self, raw: Raw, rows: Labels) -> Matrix:
        """The matrix of rows read for training as sparse rows, typed as every matrix is."""
        return cast("Matrix", self._writer.sparse_rows(coded(raw, rows, code_tables(self.codes, raw))))

    def mostly_zero(self, rows: int) -> bool:
        """True if sparse rows take far less time and memory for so many rows."""
        if type(self).of is not Preparation.of or self.encodings or self.keeps_categories:
            return False  # columns that are not indicators are among them
        layout = self.layout
        nonzero = layout.direct.size + layout.indicated.size
        wide = nonzero <= MAX_DENSITY * layout.width and layout.width >= MIN_SPARSE_COLUMNS
        return wide and rows * layout.width >= MIN_SPARSE_CELLS

    def raw_of(self, raw: Raw, rows: Labels) -> Matrix:
        """The raw matrix of rows read for training."""
        return coded(raw, rows, code_tables(self.codes, raw))

    def _undefined(self, raw: Matrix) -> tuple[Flagged, ...]:
        """Functions without a value."""
        if not self.basis.partial:
            return ()
        raw = filled(raw, self.fills)
        doubt = self.basis.undefined(raw, self.basis.of(raw))
        places = np.flatnonzero(doubt.any(axis=0)).tolist()
        return tuple(Flagged("undefined", self.basis.names[j], np.flatnonzero(doubt[:, j])) for j in places)

    @cached_property
    def _usual(self) -> tuple[RowFlags, Way, int, Vector, Vector]:
        """The parts that a prediction needs, together: to look up one takes as long as to compare a hundred numbers."""
        inputs = ranged(self.inputs, self.functions)
        flags = RowFlags.about(inputs, self.codes.absent, self._lacked, self._imputes)
        offset, scale = repeated(self.scaling.offset[0]), repeated(self.scaling.scale[0])
        return flags, self._way, len(self.inputs), offset, scale

    @property
    def _lacked(self) -> Truths:
        """(p,) whether training rows may have lacked a value."""
        complete = np.array([column.complete is True for column in self.inputs], np.bool_)
        lacked: Truths = ~complete & (self.codes.missing | ~self.codes.categorical)
        return lacked

    @property
    def _imputes(self) -> Truths:
        """(p,) whether a value stands for a missing one, which is flagged; a category that no row had is unseen."""
        fills = np.full(len(self.inputs), np.nan) if self.fills is None else self.fills
        named: Truths = ~np.isnan(fills) & ~(self.codes.categorical & (fills == UNSEEN))
        return named if self.keeps_missing else named | ~self.codes.categorical

    @property
    def _way(self) -> Way:
        if self.functions or self.layout.indicated.size or self.encodings:
            return "written"
        if self.keeps_categories and self.fills is not None:
            return "written"
        return "raw" if self.keeps_categories else "scaled"


def _imputed(flags: Sequence[Flagged]) -> bool:
    """True if any number was."""
    return len(flags) > 0 and flags[-1].code == CODES[EMPTY]
