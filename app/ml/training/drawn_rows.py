"""Rows of a training: read, split into those to learn from and those held out, and compared with each other."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import Each, Progress
from app.ml.contract.stage_clock import timed
from app.ml.evaluation.duplicates import Copies, Equal
from app.ml.evaluation.splits import Split, evenly
from app.ml.models.background import ROWS as BACKGROUND_ROWS
from app.ml.models.conformal import EVERYWHERE
from app.ml.models.golden import spaced
from app.ml.preparation.row_hashes import Hashes
from app.ml.preparation.target_limits import target_limits
from app.ml.training.fitting.out_of_core import Stream
from app.ml.training.planning.plan import Plan
from app.ml.training.rows.row_checks import row_warnings
from app.ml.training.rows.training_set import TrainingSet


class DrawnRows(NamedTuple):
    training_set: TrainingSet
    split: Split
    limits: tuple[float, float]
    """The least and the greatest target, infinite without a limit."""
    shown: pa.Table
    """A few rows as a client sends them, held out if any are."""
    background: pa.Table
    """Some of the rows to learn from, as a client sends them."""
    copies: Copies
    stream: Stream | None
    """The table, where memory does not hold all; `training_set` is then a sample of it."""
    warnings: Sequence[str]
    """Sentences on what was noticed in the rows."""

    @property
    def rows(self) -> int:
        """To learn from."""
        return self.stream.rows if self.stream else self.split.train.size

    @property
    def hashes(self) -> Hashes | None:
        """(rows,) of the rows to learn from; None where memory had no room for them."""
        if self.stream is None:
            return self.copies.hashes[self.split.train]
        return self.stream.hashes if self.stream.hashes.size else None

    @property
    def equal(self) -> Equal:
        """Rows held out that equal rows to learn from, as far as these are compared."""
        streamed = self.stream is not None and self.hashes is not None
        learned = np.arange(self.training_set.rows, self.copies.hashes.size) if streamed else self.split.train
        return self.copies.equal(Split(learned, self.split.test))


@timed("reading")
def draw(planned: Plan, table: pa.Table, rng: np.random.Generator, progress: Progress, each: Each) -> DrawnRows:
    """Raises InvalidData for rows that cannot be used, naming them."""
    stream = Stream.look(planned, table, progress) if planned.batch_rows else None
    table = stream.sample if stream else table
    training_set = TrainingSet.read(planned, table, each)
    if stream:
        training_set, split = training_set._replace(numbers=stream.numbers), stream.split
    else:
        split = training_set.holdout(planned.spec.validation.held_out, rng)
    limits = EVERYWHERE
    if training_set.task.of_numbers:
        limits = target_limits(planned.spec.preprocessing, training_set.target.y[split.train])
    shown = training_set.target.rows[spaced(split.test if split.test.size else split.train)]
    learned = training_set.target.rows[split.train[evenly(split.train.size, BACKGROUND_ROWS)]]
    copies = Copies.look(
        table,
        training_set.target.rows,
        planned.features,
        planned.target,
        train=split.train,
        learned=stream.hashes if stream and stream.hashes.size else None,
    )
    features = table.select(planned.features)
    sample, background = features.take(pa.array(shown)), features.take(pa.array(learned))
    warnings = row_warnings(planned, table, training_set, split)
    return DrawnRows(training_set, split, limits, sample, background, copies, stream, warnings)
