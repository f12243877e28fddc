"""Training on a table that does not fit into memory, by an algorithm that takes one more batch or reads blocks.

The table is read, never held: it may be mapped from a file. One pass looks at every row, so that what cannot be used
is found and named, merges the moments of the columns (means, deviations, ranges), and draws a *sample* that is held:
test rows and training rows, about a batch of each, drawn at random, and with them the first row of every class and
category. Means and scales of the preparation are those of all training rows; medians and levels are learned from the
sample's. An algorithm with `update` learns batch after batch: `fit` with the first, `update` with the others, and again
as often as it requires or until a round changes nothing. In each round blocks of rows come in another order, and the
rows of a batch mixed. For any other the prepared rows lie in a mapped file (`prepared_rows`), and its
`fit` reads them there, with the bytes of the same rows in memory; one that has `fit_blocks` gets them block by block.
Metrics, cross-validation and golden rows are those of the sample.

What becomes of a row hangs on the seed and its number alone, so that it need not be remembered.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.algorithm import Context, Data, Fit, Labels, Progress, StreamedRows, Vector
from app.ml.contract.streamed_rows import blocks_of
from app.ml.evaluation.splits import Split
from app.ml.numerics.scaling import Spread, merged, spread
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.row_hashes import Hashes, row_hashes
from app.ml.preparation.target import present
from app.ml.training.fitting.fit import Fitted
from app.ml.training.fitting.fit_in_batches import fit_batches
from app.ml.training.planning.plan import Plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.prepared_rows import SpoolRows, prepared_rows
from app.ml.training.rows.training_set import TrainingSet

Truths = NDArray[np.bool_]
Learn: TypeAlias = Callable[[Context], Fit[Any]]
HASHING = 64
"""Bytes that the hash of a row takes until it is stored: copies on the way."""
NO_HASHES: Hashes = np.zeros(0, np.uint64)
BLOCK = 2048
"""Rows that stay together when batches are mixed."""
FIRSTS = 4096
"""Rows at most that the sample gets for the sake of a class or category."""


class Draw(NamedTuple):
    """The part of each row of a table: training or held out, in the sample or not."""

    seed: int
    test: float
    """Share of the rows that are held out."""
    sample: float
    """Share of the others that are in the sample too."""

    def of(self, first: int, count: int) -> tuple[Truths, Truths]:
        """Two masks of `count` rows from number `first` on: those held out, and those in the sample."""
        held, sampled = (self._numbers(place, first, count) < share for place, share in enumerate(self[1:]))
        return held, held | sampled

    def _numbers(self, place: int, first: int, count: int) -> Vector:
        return np.random.Generator(np.random.PCG64([self.seed, place]).advance(first)).random(count)


Spreads: TypeAlias = Mapping[str, Spread]
"""Moments of measured columns, by name."""


@dataclass(frozen=True)
class Stream:
    """A table that is read, not held, and the sample of it that is held."""

    source: "_Source"
    sample: pa.Table
    split: Split
    """Split of the sample's rows."""
    numbers: Labels
    """Numbers of the sample's rows in the table."""
    kept: Labels
    """Rows of the table that are not held out whatever the draw, ascending."""
    spreads: Spreads
    """Moments of the rows to learn from."""
    rows: int
    """To learn from, in the whole table."""
    hashes: Hashes
    """(rows,) of the rows to learn from; none where memory has no room for them."""

    @classmethod
    def look(cls, planned: Plan, table: pa.Table, progress: Progress) -> Self:
        """Look at every row once. Raises InvalidData for values that cannot be used, naming them.

        Rows are hashed only if the memory limit of the plan leaves room for it.
        """
        source = _Source.of(planned, table)
        hashed = planned.memory_bytes + HASHING * table.num_rows <= planned.memory_limit
        looks = list(source.looks(progress, hashed=hashed))
        if not looks:
            raise InvalidData(f"Fewer than 2 rows have a value in the target {planned.target!r}.")
        test = np.concatenate([look.held for look in looks])
        return cls(
            source=source,
            sample=pa.concat_tables(look.sample for look in looks).combine_chunks(),
            split=Split(np.flatnonzero(~test), np.flatnonzero(test)),
            numbers=np.concatenate([look.numbers for look in looks]),
            kept=np.concatenate([look.kept for look in looks]),
            spreads={name: reduce(merged, [look.spreads[name] for look in looks]) for name in looks[0].spreads},
            rows=sum(look.rows for look in looks),
            hashes=np.concatenate([look.hashes for look in looks]),
        )

    def fit(self, sample: TrainingSet, progress: Progress, spool_rows: SpoolRows) -> Fitted:
        """Learned from every row that is not held out. sample: the sample, read."""
        preparation = sample.prepare(self.split.train, self.spreads)
        data = sample.data(preparation, self.split.train)
        start = sample.start and sample.start.state(preparation, sample.classes)
        if sample.algorithm.update is not None:
            learn = self._batches(sample, preparation, start)
        else:
            parts = (part.coded_as(sample.target.classes) for part in self.source.in_order(self.kept))
            prepared = (part.data(preparation, np.arange(part.rows)) for part in parts)
            rows = prepared_rows(prepared, data, self.rows, spool_rows)
            learn = partial(self._mapped, sample, rows, data, start)
        fitted = sample.fit(data, self.source.spec.seed, progress, learn)
        classes = sample.reference_of(self.split.train)
        return Fitted(preparation, data, *fitted, None if classes is None else classes.codes)

    def _batches(self, sample: TrainingSet, preparation: Preparation, start: Any) -> Learn:
        def batches(turn: int) -> Iterator[Data]:
            for part, order in self.source.batches(turn, self.kept):
                yield sample.turned(part.coded_as(sample.target.classes).data(preparation, order))

        return lambda context: fit_batches(
            sample.algorithm, sample.params, batches, context, partial(sample.first, start)
        )

    def _mapped(self, sample: TrainingSet, rows: Data, data: Data, start: Any, context: Context) -> Fit[Any]:
        """A fit of all rows, whose matrix lies in a mapped file. data: the sample."""
        turned = sample.turned(rows)
        if sample.algorithm.fit_blocks is None:
            return sample.first(start, turned, context)
        blocks = StreamedRows(partial(blocks_of, turned, self.source.batch_rows), len(rows.x), data, start)
        return sample.algorithm.fit_blocks(sample.params, blocks, context)


class _Look(NamedTuple):
    """At one batch of rows."""

    sample: pa.Table
    numbers: Labels
    held: Truths
    """Mask of the sample's rows that are held out."""
    kept: Labels
    spreads: Spreads
    rows: int
    hashes: Hashes


class _Source(NamedTuple):
    """A table in batches."""

    planned: Plan
    table: pa.Table
    draw: Draw
    batch_rows: int

    @classmethod
    def of(cls, planned: Plan, table: pa.Table) -> Self:
        spec = planned.spec
        names = [*planned.features, *(name for name in (spec.target, spec.weights, spec.sigma) if name is not None)]
        batch = planned.batch_rows or max(planned.rows, 1)
        share = batch / max(planned.rows, 1)
        draw = Draw(spec.seed, min(spec.validation.held_out, share), share)
        return cls(planned, table.select(list(dict.fromkeys(names))), draw, batch)

    @property
    def spec(self) -> TrainSpec:
        return self.planned.spec

    def looks(self, progress: Progress, *, hashed: bool) -> Iterator[_Look]:
        firsts = _Firsts()
        for start in range(0, self.table.num_rows, self.batch_rows):
            part = self._read(start)
            if part is not None:
                yield self._look(start, part, firsts.of(part), hashed=hashed)
            progress(min(1.0, (start + self.batch_rows) / self.table.num_rows))

    def batches(self, turn: int, held_out: Labels) -> Iterator[tuple[TrainingSet, Labels]]:
        """Rows to learn from, and the order to take them in."""
        rng = np.random.Generator(np.random.PCG64([self.spec.seed, len(self.draw), turn]))
        blocks = rng.permutation(-(-self.table.num_rows // BLOCK))
        for batch in np.array_split(blocks, max(1, len(blocks) * BLOCK // self.batch_rows)):
            rows = pa.concat_tables(self._to_learn(block * BLOCK, BLOCK, held_out) for block in batch.tolist())
            if rows.num_rows >= 2:
                yield TrainingSet.read(self.planned, rows), rng.permutation(rows.num_rows)

    def in_order(self, held_out: Labels) -> Iterator[TrainingSet]:
        """Rows to learn from, as they stand in the table."""
        for start in range(0, self.table.num_rows, self.batch_rows):
            rows = self._to_learn(start, self.batch_rows, held_out)
            if rows.num_rows:
                yield TrainingSet.read(self.planned, rows)

    def _read(self, start: int) -> TrainingSet | None:
        """The rows of a batch; None where fewer than two of them have a target."""
        rows = self.table.slice(start, self.batch_rows)
        if (name := self.planned.target) is not None and present(rows.column(name)).sum() < 2:
            return None
        try:
            return TrainingSet.read(self.planned, rows)
        except InvalidData as error:
            detail = f"{error.detail} (Among rows {start} to {start + rows.num_rows - 1}.)"
            raise InvalidData(detail, faults=[_moved(fault, start) for fault in error.faults]) from None

    def _look(self, start: int, part: TrainingSet, held_out: Labels, *, hashed: bool) -> _Look:
        rows = part.target.rows
        held, sampled = self.draw.of(start, len(part.raw.values))
        held[held_out], sampled[held_out] = False, True
        learned, chosen = rows[~held[rows]], rows[sampled[rows]]
        read = self.table.slice(start, self.batch_rows)
        spreads = _spreads(part, learned)
        hashes = row_hashes(read, self.planned.features, self.planned.target)[learned] if hashed else NO_HASHES
        sample = read.take(pa.array(chosen))
        return _Look(sample, start + chosen, held[chosen], start + held_out, spreads, learned.size, hashes)

    def _to_learn(self, start: int, count: int, held_out: Labels) -> pa.Table:
        """Among so many rows those that have a target and are not held out."""
        rows = self.table.slice(start, count)
        held, _ = self.draw.of(start, rows.num_rows)
        held[held_out[(held_out >= start) & (held_out < start + rows.num_rows)] - start] = False
        there = True if (name := self.planned.target) is None else present(rows.column(name))
        return rows.filter(pa.array(~held & there))


class _Firsts:
    """First rows of classes and categories."""

    def __init__(self) -> None:
        self._met: defaultdict[int, set[Any]] = defaultdict(set)
        self._left = FIRSTS

    def of(self, part: TrainingSet) -> Labels:
        """Rows of the batch: of every new class, and of new categories as many as are left to give."""
        rows, values = part.target.rows, part.raw.values
        classes = self._new(-1, part.classes, part.target.y, rows)
        categories = [classes]
        for place, words in enumerate(part.raw.vocabularies):
            if words is not None and self._left:
                new_levels = self._new(place, words.to_pylist(), values[rows, place], rows)[: self._left]
                self._left -= new_levels.size
                categories.append(new_levels)
        return np.unique(np.concatenate(categories))

    def _new(self, place: int, words: Sequence[Any], codes: Vector, rows: Labels) -> Labels:
        new = [code for code, word in enumerate(words) if word not in self._met[place]]
        self._met[place].update(words[code] for code in new)
        there, first = np.unique(codes, return_index=True)
        new_rows: Labels = rows[first[np.isin(there, new)]]
        return new_rows


def _spreads(part: TrainingSet, learned: Labels) -> Spreads:
    columns = zip(part.raw.columns, part.raw.vocabularies, part.raw.values[learned].T, strict=True)
    return {column.name: spread(values) for column, words, values in columns if words is None}


def _moved(fault: Fault, rows: int) -> Fault:
    """Pointing so many rows further down."""
    pointer = re.sub(r"^/rows/(\d+)", lambda match: f"/rows/{int(match[1]) + rows}", fault.pointer)
    return fault._replace(pointer=pointer)
