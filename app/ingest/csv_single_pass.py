"""CSV files read in one pass: the first rows decide how each column is read, and every later row must agree.

What the first rows show nearly always holds. Where it does not, as where a word turns up in a column of numbers, the
reading is given up and `csv_reader` begins anew, which passes over the whole file before it decides. Both have one
result: what decides is collected here over all rows, too, and compared at the end.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

from app.ingest.cell_patterns import Shapes
from app.ingest.column_reader import ColumnReader, read_all
from app.ingest.notation_choice import Survey

SAMPLED_BYTES = 8 << 20
"""Bytes of cells from which the way of reading is decided."""


class Mispredicted(Exception):
    """The file takes more than one pass."""


class SinglePass:
    """The columns of a file, read while they are surveyed."""

    def __init__(
        self, batches: Iterator[pa.RecordBatch], survey: Survey, missing: Sequence[str], has_end: Callable[[int], bool]
    ) -> None:
        """has_end: true if a file of so many rows has ended as it should."""
        self._batches, self._survey, self._missing, self._has_end = batches, survey, tuple(missing), has_end
        self._sample: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            survey.add(batch.columns)
            self._sample.append(batch)
            size += batch.nbytes
            if size > SAMPLED_BYTES:
                break
        self._shapes = {number: Shapes() for number in survey.doubtful()}
        self._count_shapes(self._sample)
        self.readers = survey.readers(self._shapes)
        self._confirmed = survey.confirmed_by(self.readers)

    def read(self) -> Iterator[Sequence[pa.Array]]:
        """All batches as the readers have them. Raises Mispredicted."""
        rows = 0
        sampled = len(self._sample)
        for number, batch in enumerate(chain(self._take_sample(), self._batches)):
            rows += len(batch)
            if number >= sampled:
                self._survey.add(batch.columns, self._confirmed)
                self._count_shapes([batch])
            try:
                yield read_all(self.readers, batch.columns)
            except pa.ArrowInvalid:
                raise Mispredicted from None
        self._confirm(rows)

    def _take_sample(self) -> Iterator[pa.RecordBatch]:
        while self._sample:
            yield self._sample.pop(0)

    def _count_shapes(self, batches: Sequence[pa.RecordBatch]) -> None:
        for number, shapes in self._shapes.items():
            for batch in batches:
                shapes.add(batch.column(number), self._missing)

    def _confirm(self, rows: int) -> None:
        doubtful = self._survey.doubtful()
        if not (self._has_end(rows) and set(doubtful) <= self._shapes.keys()):
            raise Mispredicted
        decided = self._survey.readers({number: self._shapes[number] for number in doubtful})
        if not all(map(ColumnReader.reads_alike, decided, self.readers)):
            raise Mispredicted
        for reader, counting in zip(decided, self.readers, strict=True):
            reader.take_counts(counting)
        self.readers[:] = decided
