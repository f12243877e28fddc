"""Dependence of two columns of categories by the table of their counts: χ² and mutual information (LION 7.4 and 7.5).

With counts n_ct, and e_ct = n_c n_t / n expected of independent columns,

    χ² = Σ (n_ct − e_ct)² / e_ct,        I = Σ n_ct/n log(n_ct / e_ct),

where χ² and 2nI have about the χ² distribution of (rows − 1)(columns − 1) degrees of freedom if the columns are
independent. I is the entropy of one less its conditional entropy given the other, H(Y|X) = Σ p(x) H(Y|x) (eq. 7.5 of
LION has a minus too many there). A table of few rows overestimates I, on average by about (cells − rows − columns + 1)
/ 2n of those that have counts, which is taken off
unless the shares of the table are to count as they are. Given further columns, all is within their categories.

The interval of I is normal. Of a column that is normal in two classes, 1.5 standard deviations apart, in quantile
bins, it covered the information .89, .94, .94 and .94 times (100, 300, 1,000 and 3,000 rows, 1,000 simulations).

References: Miller (1955), Note on the bias of information estimates; Cochran (1954), Biometrics 10:417, for few counts.
"""

import math
from typing import NamedTuple, Self

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.dependence.dependence import UNDEFINED, Dependence

MIN_EXPECTED_COUNT = 5
"""Expected counts of four cells in five for the distribution of χ² to hold."""


CROWDED = 4
"""Cells for each row up to which all are counted; the cells of larger tables are sorted."""


class ChiSquare(NamedTuple):
    found: Dependence
    """χ² and its probability."""
    freedom: int
    sparse: bool
    """True if more than a fifth of the cells expect fewer than 5 rows."""


class _Table(NamedTuple):
    """Counts of pairs of codes, without the cells that are empty."""

    seen: Vector
    """(cells,) counts above 0."""
    expected: Vector
    """(cells,) of independent columns."""
    rows: Vector
    columns: Vector
    """(rows,) and (columns,) sums."""

    @classmethod
    def of(cls, a: Labels, b: Labels) -> Self:
        first, second = _dense(a), _dense(b)
        rows, columns = (np.bincount(codes).astype(np.float64) for codes in (first, second))
        pairs = first * columns.size + second
        if rows.size * columns.size <= CROWDED * a.size:
            counts = np.bincount(pairs)
            cells = np.flatnonzero(counts)
            seen = counts[cells]
        else:
            cells, seen = np.unique(pairs, return_counts=True)
        expected = rows[cells // columns.size] * columns[cells % columns.size] / a.size
        return cls(seen.astype(np.float64), expected, rows, columns)

    @property
    def freedom(self) -> int:
        return (self.rows.size - 1) * (self.columns.size - 1)

    @property
    def empty(self) -> float:
        """Rows expected in the cells that have none."""
        full = self.seen.size == self.rows.size * self.columns.size
        return 0.0 if full else max(0.0, float(self.rows.sum() - self.expected.sum()))

    @property
    def sparse(self) -> bool:
        below = np.searchsorted(np.sort(self.columns), MIN_EXPECTED_COUNT * self.rows.sum() / self.rows).sum()
        return bool(below > 0.2 * self.rows.size * self.columns.size)


def chi_square(a: Labels, b: Labels) -> ChiSquare:
    """Test of independence of two columns of codes (n,), without correction of continuity."""
    table = _Table.of(a, b)
    if not table.freedom:
        return ChiSquare(UNDEFINED, 0, sparse=False)
    value = float(((table.seen - table.expected) ** 2 / table.expected).sum()) + table.empty
    p = float(scipy.special.chdtrc(table.freedom, value))
    return ChiSquare(Dependence(value, p_value=p), table.freedom, table.sparse)


def mutual_information(a: Labels, b: Labels, *, bias_correction: bool = True) -> Dependence:
    """Information of two columns of codes (n,), in nats; NaN where one of them is constant."""
    table, n = _Table.of(a, b), a.size
    if not table.freedom:
        return UNDEFINED
    logs = np.log(table.seen / table.expected)
    plain = max(0.0, float(table.seen @ logs) / n)
    p = float(scipy.special.chdtrc(table.freedom, 2 * n * plain))
    bias = (table.seen.size - table.rows.size - table.columns.size + 1) / (2 * n)
    return _information(plain, bias * bias_correction, table.seen, logs, p)


def conditional_information(a: Labels, b: Labels, strata: Labels, *, bias_correction: bool = True) -> Dependence:
    """Information of two columns of codes within the categories of a third (n,) each, in nats."""
    n = a.size
    first, second, stratum = (_dense(codes) for codes in (a, b, strata))
    width, k = int(second.max()) + 1, int(stratum.max()) + 1
    with_a, with_b = _dense(first * k + stratum), _dense(second * k + stratum)
    cells, place, seen = np.unique(with_a * (width * k) + with_b, return_index=True, return_counts=True)
    if np.unique(first).size < 2 or width < 2:
        return UNDEFINED
    sizes = [np.bincount(codes) for codes in (with_a, with_b, stratum)]
    own_a, own_b, own_stratum = (
        size[codes[place]] for size, codes in zip(sizes, (with_a, with_b, stratum), strict=True)
    )
    logs = np.log(seen * own_stratum / (own_a * own_b))
    plain = max(0.0, float(seen @ logs) / n)
    values_a, values_b = (np.bincount(np.unique(codes * k + stratum) % k, minlength=k) for codes in (first, second))
    freedom = int(((values_a - 1) * (values_b - 1)).sum())
    p = float(scipy.special.chdtrc(freedom, 2 * n * plain)) if freedom else 1.0
    bias = (cells.size + k - sizes[0].size - sizes[1].size) / (2 * n)
    return _information(plain, bias * bias_correction, seen, logs, p)


def joint_codes(columns: list[Labels]) -> Labels:
    """(n,) one code for each combination of the codes (n,) of several columns that occurs."""
    codes = _dense(columns[0])
    for column in columns[1:]:
        other = _dense(column)
        codes = _dense(codes * (int(other.max()) + 1) + other)
    return codes


def _information(plain: float, bias: float, seen: Vector | Labels, logs: Vector, p: float) -> Dependence:
    """seen: rows of every cell. logs: their pointwise information."""
    n = int(seen.sum())
    spread = math.sqrt(max(0.0, float(seen @ (logs - float(seen @ logs) / n) ** 2) / n))
    return Dependence.of_information(plain, bias, spread, n, p)


def _dense(codes: Labels) -> Labels:
    """From 0 without gaps, in the same order."""
    there = np.bincount(codes) > 0
    return codes if there.all() else np.asarray((np.cumsum(there) - 1)[codes])
