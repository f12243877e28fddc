"""Target encoding: a category as the mean of the target among the training rows that have it, shrunk to that of all.

A mean of few rows is uncertain. Each is a weighted average of the category's own mean, of n rows, and that of all rows,

    (n τ² · own + σ² · all) / (n τ² + σ²),

where σ² is the variance within categories and τ² that between them, both estimated from the same rows (the best linear
unbiased prediction of a random effect). Of more than two classes there is one number for the share of each class.

A row's own target has a part in the mean of its category: learned from, it would seem to predict itself. So training
rows get means of the other rows only, in FOLDS parts drawn at random, in which copies of a row stay together. All
other rows get the means of all training rows; a category that training did not see gets that of all.

References: Micci-Barreca (2001), SIGKDD Explor. 3:27; Henderson (1975), Biometrics 31:423; Pargent et al. (2022),
Comput. Stat. 37:2671.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector

FOLDS = 5
"""Parts that the training rows are encoded in."""
MOST_LEVELS = 10_000
"""Categories of an input that are encoded; the rarest beyond them share one mean."""
Scale: TypeAlias = Callable[[Vector], tuple[float, float]]
"""Offset and scale of a column with these values."""


class Encoding(NamedTuple):
    """Numbers that stand for the categories of an input."""

    place: int
    """Place of the input."""
    suffixes: tuple[str, ...]
    """(k,) what follows the input's name in those of the columns."""
    values: Matrix
    """(levels + 2, k) the scaled numbers for each code, then for missing values and for all others."""

    def of(self, codes: Vector) -> Matrix:
        """(n, k) of codes, with NaN for missing values and UNSEEN, -1, for others."""
        missing = float(len(self.values) - 2)
        return self.values[np.where(np.isnan(codes), missing, codes).astype(np.intp)]

    def is_sound(self, levels: int) -> bool:
        """True if there is a row for each code of so many levels."""
        shape = (levels + 2, len(self.suffixes))
        return self.values.shape == shape and self.values.dtype == np.float64 and bool(np.isfinite(self.values).all())


@dataclass(frozen=True)
class OutOfFold:
    """The encoded columns of the training rows themselves."""

    raw: Matrix
    """The raw matrix that they are rows of."""
    rows: Labels
    """(m,) ascending, each once."""
    values: Matrix
    """(m, k) all encoded columns."""

    @classmethod
    def of(cls, raw: Matrix, rows: Labels, values: Matrix) -> "OutOfFold":
        """values: (m, k) of rows (m,), which may repeat."""
        different, first = np.unique(rows, return_index=True)
        return cls(raw, different, values[first])

    def put(self, raw: Matrix, rows: Labels, columns: Matrix) -> None:
        """Replace what training rows have in the encoded columns (n, k) of these rows of a raw matrix."""
        if raw is not self.raw:
            return
        index = np.minimum(np.searchsorted(self.rows, rows), self.rows.size - 1)
        is_encoded = self.rows[index] == rows
        columns[is_encoded] = self.values[index[is_encoded]]


class Outcome(NamedTuple):
    """The values that are averaged."""

    values: Matrix
    """(m, k) for each training row."""
    suffixes: tuple[str, ...]

    @classmethod
    def of(cls, y: Vector, classes: Sequence[object]) -> "Outcome":
        """Numbers; or of two classes the share of the second, of more that of each. y: (m,) numbers or codes."""
        if len(classes) <= 2:
            return cls(y[:, None], ("=(target)",))
        names = tuple(f"=(target {name})" for name in classes)
        return cls((y[:, None] == np.arange(len(classes))) * 1.0, names)


def encode(
    places: Sequence[int], levels: Sequence[int], codes: Matrix, outcome: Outcome, *, rows: Labels, scaled: Scale
) -> tuple[tuple[Encoding, ...], Matrix]:
    """The encodings of inputs, and the encoded columns of the training rows, each predicted from other rows.

    levels: of each input, how many codes there are. codes: (m, inputs) as in `Encoding.of`. rows: (m,) what rows of
    the table they are.
    """
    encodings, columns = [], []
    fold = _folds(rows)
    for place, size, levels_of_column in zip(places, levels, codes.T, strict=True):
        code = np.where(np.isnan(levels_of_column), size, levels_of_column).astype(np.intp)
        values = _means(code, outcome.values, size + 1)
        fresh = np.empty(outcome.values.shape)
        for part in range(FOLDS):
            old, new = fold != part, fold == part
            table = _means(code[old], outcome.values[old], size + 1) if old.any() else values
            fresh[new] = table[code[new]]
        offset, scale = np.array([scaled(column) for column in fresh.T]).T
        encodings.append(Encoding(place, outcome.suffixes, (values - offset) / scale))
        columns.append((fresh - offset) / scale)
    return tuple(encodings), np.hstack(columns)


def _folds(rows: Labels) -> Labels:
    """(m,) a part for each row, the same for copies of it."""
    different, which = np.unique(rows, return_inverse=True)
    parts = np.random.Generator(np.random.PCG64(FOLDS)).permutation(different.size) % FOLDS
    return parts[which]


def _means(code: Labels, y: Matrix, size: int) -> Matrix:
    """(size + 1, k) the shrunken mean of each code, and last that of all rows."""
    counts = np.bincount(code, minlength=size)
    sums = np.column_stack([np.bincount(code, column, minlength=size) for column in y.T])
    mean = y.mean(axis=0)
    level_means = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], mean)
    within, between = _variances(counts, level_means, y - level_means[code], mean)
    heavy = counts[:, None] * between
    total = heavy + within
    shrunken = mean + np.divide(heavy, total, out=np.zeros_like(level_means), where=total > 0) * (level_means - mean)
    return np.vstack([shrunken, mean])


def _variances(counts: Labels, level_means: Matrix, residuals: Matrix, mean: Vector) -> tuple[Vector, Vector]:
    """Within and between categories (k,), by the moments of a random effect; of one row each, half of all variance."""
    rows, groups = counts.sum(), np.count_nonzero(counts)
    squares = counts @ (level_means - mean) ** 2
    if groups == rows:
        return squares / (2 * rows), squares / (2 * rows)
    within = (residuals**2).sum(axis=0) / (rows - groups)
    spread = rows - (counts.astype(float) ** 2).sum() / rows
    return within, np.maximum((squares - (groups - 1) * within) / spread, 0.0) if spread > 0 else np.zeros(mean.size)
