"""Duplicates of training rows among the test rows: copies make the metrics optimistic.

Rows are equal where all columns used are: the features and the target. Columns with few different values have equal
rows without anything having been copied. How many of the equal rows chance explains is estimated as if the columns
were independent: a row whose values have the shares p₁ … pₖ of the training rows is expected among n of these with
the probability 1 - (1 - p₁ ⋯ pₖ)ⁿ.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import Labels, Vector
from app.ml.evaluation.report import Duplicates
from app.ml.evaluation.splits import Split, evenly
from app.ml.preparation.row_hashes import Hashes, column_hashes, row_hashes

NOTABLE = 0.3
"""Share of √n evaluated rows, equal to others beyond chance: fewer move an accuracy of .9 by under a standard error."""
MAX_SAMPLE_ROWS = 100_000
"""Training rows from which the shares of values are taken: those of more hardly differ."""
BLOCK = 1 << 18
"""Hashes looked up at a time."""


class Equal(NamedTuple):
    """Evaluated rows that equal a training row of the fit."""

    rows: int
    expected: float
    """By chance."""
    compared: int
    """All evaluated rows."""

    def notable(self, different: int) -> bool:
        """different: evaluated rows, each counted once however many fits it evaluated."""
        return self.compared > 0 and (self.rows - self.expected) / self.compared > NOTABLE / different**0.5

    def shares(self) -> tuple[float, float]:
        return self.rows / self.compared, self.expected / self.compared


class Copies(NamedTuple):
    """Equal rows of a table, and how likely they are."""

    hashes: Hashes
    """(n,)"""
    codes: Labels
    """(n,) the same for equal rows, from 0 without gaps."""
    chance: Vector
    """(m,) the probability that chance makes a row equal to a training row; 0 for rows that no other is equal to."""

    @classmethod
    def look(
        cls,
        table: pa.Table,
        rows: Labels,
        features: Sequence[str],
        target: str | None,
        *,
        train: Labels,
        learned: Hashes | None = None,
    ) -> Self:
        """rows: (m,) of the table. train: places among these. learned: hashes of all training rows, where these are a
        sample: those that one of the m rows has stand behind these.
        """
        row_hashes_ = row_hashes(table, features, target)[rows]
        hashes = row_hashes_ if learned is None else np.append(row_hashes_, _found(learned, row_hashes_))
        codes = pa.array(hashes).dictionary_encode().indices.to_numpy().astype(np.intp)
        suspect = np.flatnonzero(np.bincount(codes)[codes[: rows.size]] > 1)
        chance = np.zeros(rows.size)
        if suspect.size:
            sample, shares = train[evenly(train.size, MAX_SAMPLE_ROWS)], np.ones(suspect.size)
            used = table.take(pa.array(rows[np.append(sample, suspect)]))
            for column in column_hashes(used, features, target):
                shares *= _shares(column[: sample.size], column[sample.size :])
            chance[suspect] = 1 - (1 - shares) ** (train.size if learned is None else learned.size)
        return cls(hashes, codes, chance)

    def among(self, rows: Labels) -> "Copies":
        return Copies(self.hashes[rows], self.codes[rows], self.chance[rows])

    def equal(self, split: Split) -> Equal:
        """Test rows that are equal to a training row."""
        learned = np.zeros(self.codes.max() + 1, np.bool_)
        learned[self.codes[split.train]] = True
        same = split.test[learned[self.codes[split.test]]]
        return Equal(same.size, float(self.chance[same].sum()), split.test.size)

    def across(self, splits: Sequence[Split]) -> Equal:
        """Equal rows as of `equal`, over all splits."""
        rows, expected, evaluated = (sum(part) for part in zip(Equal(0, 0.0, 0), *map(self.equal, splits), strict=True))
        return Equal(int(rows), expected, int(evaluated))

    def alone(self) -> Equal:
        """Rows that are equal to another, each compared with all others."""
        same = np.flatnonzero(np.bincount(self.codes)[self.codes] > 1)
        return Equal(same.size, float(self.chance[same].sum()), self.codes.size)


def duplicates(test: Equal, validation: Equal | None) -> Duplicates:
    share, expected = validation.shares() if validation is not None and validation.compared else (None, None)
    return Duplicates(
        test_rows=test.rows,
        expected_test_rows=test.expected,
        validation_share=share,
        expected_validation_share=expected,
    )


def warnings(test: Equal | None, validation: Equal | None, train: int, *, grouped: bool) -> Iterator[str]:
    """test: None where another report counts them. train: training rows. grouped: whether rows are split by groups."""
    other = "" if grouped else ", or name the column of such groups in validation.group"
    advice = f"If these are copies, the metrics are optimistic: remove copies from the dataset{other}."
    if test is not None and test.notable(test.compared):
        chance = f"; {test.expected:.0f} are expected by chance" if test.expected >= 1 else ""
        yield f"{test.rows} of {test.compared} test rows equal a training row in all columns used{chance}. {advice}"
    if validation is not None and validation.notable(train):
        share, expected = validation.shares()
        chance = f"; {expected:.1%} is expected by chance" if expected >= 0.001 else ""
        yield (
            f"In cross-validation {share:.1%} of the evaluated rows equal a training row in all columns "
            f"used{chance}. {advice}"
        )


def _found(hashes: Hashes, among: Hashes) -> Hashes:
    """Those that are among the others; by blocks."""
    values = np.unique(among)
    parts = [np.zeros(0, hashes.dtype)]
    for start in range(0, hashes.size, BLOCK):
        block = hashes[start : start + BLOCK]
        places = np.minimum(np.searchsorted(values, block), values.size - 1)
        parts.append(block[values[places] == block])
    return np.concatenate(parts)


def _shares(among: Hashes, wanted: Hashes) -> Vector:
    """The share that each wanted value has among the others."""
    values, counts = np.unique(among, return_counts=True)
    places = np.minimum(np.searchsorted(values, wanted), values.size - 1)
    shares: Vector = np.where(values[places] == wanted, counts[places], 0) / among.size
    return shares
