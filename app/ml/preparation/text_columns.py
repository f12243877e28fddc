"""Preparation with columns of text: those of the other inputs first, then one for each term of each text, sparse.

The raw matrix keeps the counts of known terms beside the raw matrix of the other inputs. A text that is missing or
empty has no terms, so its numbers are all 0. Texts without a term of the vocabulary are flagged `no_known_term`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
import scipy

from app.ml.contract.algorithm import Affine, Labels, Matrix, Vector
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.contract.sparse_rows import SparseRows, beside
from app.ml.preparation.arrow_columns import Cells, Raw
from app.ml.preparation.flags import NO_KNOWN_TERM, Flagged
from app.ml.preparation.layout import Layout
from app.ml.preparation.level_codes import LevelCodes
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.scaling import Scaling
from app.ml.preparation.text_request import TextColumn
from app.ml.preparation.vocabulary import Vocabulary

BYTES_OF_A_TERM = 250
"""The string and its place, once looked up."""


class TextRows:
    """Raw rows of a table with columns of text: of the raw matrix they have the length, rows, and single inputs."""

    __slots__ = ("counts", "front")

    def __init__(self, front: Matrix, counts: Sequence[SparseRows]) -> None:
        """front: (n, p) raw matrix of the other inputs, the first ones. counts: (n, d) known terms of each text."""
        self.front, self.counts = front, tuple(counts)

    def __len__(self) -> int:
        return len(self.front)

    def __getitem__(self, key: Any) -> Any:
        """Rows by their numbers, or, by a pair, numbers of the other inputs."""
        if isinstance(key, tuple):
            return self.front[key]
        return TextRows(self.front[key], [count[key] for count in self.counts])

    def __setitem__(self, key: tuple[Any, Any], values: Any) -> None:
        self.front[key] = values


class TextLayout(NamedTuple):
    """The columns of the matrix: those of the other inputs, then a column for each term."""

    front: Layout
    texts: tuple[Vocabulary, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.front.names, *(name for text in self.texts for name in text.names))

    @property
    def plain_names(self) -> tuple[str, ...]:
        return (*self.front.plain_names, *(name for text in self.texts for name in text.names))

    @property
    def width(self) -> int:
        return self.front.width + sum(len(text.terms) for text in self.texts)

    @property
    def levels(self) -> Labels:
        return np.concatenate([self.front.levels, np.zeros(self.width - self.front.width, np.intp)])


class TextScaling(NamedTuple):
    """Numbers of terms are not scaled."""

    front: Scaling
    terms: int

    @property
    def units(self) -> tuple[Vector, Vector]:
        offset, scale = self.front.units
        return np.append(offset, np.zeros(self.terms)), np.append(scale, np.ones(self.terms))

    def affine(self) -> Affine:
        front = self.front.affine()
        matrix = scipy.sparse.block_diag([front.matrix, scipy.sparse.eye_array(self.terms)], "csr")
        return Affine(scipy.sparse.csr_array(matrix), np.append(front.shift, np.zeros(self.terms)))


@dataclass(frozen=True, kw_only=True)
class WithTexts(Preparation):
    """The inputs are those of the preparation in front, then the texts; a raw matrix is `TextRows`, a matrix sparse."""

    front: Preparation
    """The preparation of the other inputs, of which there may be none."""
    texts: tuple[Vocabulary, ...]
    restorable = False
    sparse = True

    @classmethod
    def joined(cls, front: Preparation, texts: Sequence[Vocabulary]) -> "WithTexts":
        front_fields = {field.name: getattr(front, field.name) for field in fields(Preparation)}
        inputs = tuple(InputColumn(name=text.column, kind=ColumnKind.TEXT.value) for text in texts)
        return cls(**front_fields | {"inputs": (*front.inputs, *inputs)}, front=front, texts=tuple(texts))

    @cached_property
    def codes(self) -> LevelCodes:
        return self.front.codes

    @cached_property
    def layout(self) -> Layout:
        return cast("Layout", TextLayout(self.front.layout, self.texts))

    @cached_property
    def scaling(self) -> Scaling:
        return cast("Scaling", TextScaling(self.front.scaling, self.layout.width - self.front.layout.width))

    @property
    def listed(self) -> Preparation:
        return self.front

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        return ()

    @property
    def indicated(self) -> int:
        return self.front.indicated

    @property
    def categories(self) -> None:
        return None

    @property
    def beside(self) -> int:
        return BYTES_OF_A_TERM * (self.layout.width - self.front.layout.width)

    @property
    def no_values(self) -> Matrix:
        empty = pa.array([None], pa.string())
        return _raw(self.front.no_values, [text.counts(empty) for text in self.texts])

    def raw(self, table: pa.Table) -> Matrix:
        return _raw(self.front.raw(table), [text.counts(_documents(table.column(text.column))) for text in self.texts])

    def prepared(self, raw: Matrix) -> tuple[tuple[Flagged, ...], Matrix]:
        text_rows = cast("TextRows", raw)
        flags, x = self.front.prepared(text_rows.front) if self.front.inputs else ((), text_rows.front)
        return (*flags, *self._unknown(text_rows)), self._beside(x, text_rows.counts)

    def matrix(self, raw: Matrix) -> Matrix:
        text_rows = cast("TextRows", raw)
        return self._beside(
            self.front.matrix(text_rows.front) if self.front.inputs else text_rows.front, text_rows.counts
        )

    def of(self, raw: Raw, rows: Labels) -> Matrix:
        x = self.front.of(_others(raw, self._names), rows) if self.front.inputs else np.zeros((rows.size, 0))
        return self._beside(x, self._counts(raw, rows))

    def raw_of(self, raw: Raw, rows: Labels) -> Matrix:
        return _raw(self.front.raw_of(_others(raw, self._names), rows), self._counts(raw, rows))

    @property
    def _names(self) -> frozenset[str]:
        return frozenset(text.column for text in self.texts)

    def _counts(self, raw: Raw, rows: Labels) -> list[SparseRows]:
        return [text.counts(read_documents(raw, text.column, rows)) for text in self.texts]

    def _beside(self, x: Matrix, counts: Sequence[SparseRows]) -> Matrix:
        widened = beside(x, [text.numbers(count) for text, count in zip(self.texts, counts, strict=True)])
        return cast("Matrix", widened)

    def _unknown(self, raw: TextRows) -> Iterator[Flagged]:
        """Rows whose text has no term of the vocabulary."""
        for text, counts in zip(self.texts, raw.counts, strict=True):
            rows = np.flatnonzero(np.diff(counts.csr.indptr) == 0)
            if rows.size:
                yield Flagged(NO_KNOWN_TERM, text.column, rows)


def with_texts(
    raw: Raw, rows: Labels, how: Mapping[str, TextColumn], fit: Callable[[Raw], Preparation], *, counts: bool
) -> WithTexts:
    """Learned from these rows of a table. fit: learns the preparation of the other inputs. counts: weighting of terms
    where a request leaves it open.
    """
    weighting: Literal["counts", "tfidf"] = "counts" if counts else "tfidf"
    texts = []
    for name in (column.name for column in raw.columns if column.name in how):
        settled = how[name].model_copy(update={"weighting": how[name].weighting or weighting})
        texts.append(Vocabulary.learn(name, settled, read_documents(raw, name, rows)))
    return WithTexts.joined(fit(_others(raw, how)), texts)


def read_documents(raw: Raw, name: str, rows: Labels) -> pa.Array:
    """The documents of these rows of a table read for training."""
    place = [column.name for column in raw.columns].index(name)
    documents, values = raw.vocabularies[place], raw.values[rows, place]
    missing = np.isnan(values)
    codes = np.where(missing, 0, values).astype(np.intp)
    return pa.array([], pa.string()) if documents is None else documents.take(pa.array(codes, mask=missing))


def _others(raw: Raw, texts: Collection[str]) -> Raw:
    return raw.named([column.name for column in raw.columns if column.name not in texts])


def _documents(cells: Cells) -> pa.Array:
    return cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells


def _raw(front: Matrix, counts: Sequence[SparseRows]) -> Matrix:
    """Typed as every raw matrix is: what takes it hands it back to the preparation that made it."""
    return cast("Matrix", TextRows(front, counts))
