"""Measures of the dependence of a target on a column, by name: what each is, and the columns to which it applies."""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from app.ml.contract.algorithm import Labels, Vector
from app.ml.contract.columns import ColumnKind
from app.ml.numerics.dependence import nearest_information
from app.ml.numerics.dependence.class_contrast import correlation_ratio, fisher_index
from app.ml.numerics.dependence.contingency import chi_square, conditional_information, joint_codes, mutual_information
from app.ml.numerics.dependence.correlation import pearson, spearman
from app.ml.numerics.dependence.dependence import UNDEFINED, Dependence
from app.ml.numerics.dependence.quantile_bins import bins_for, quantile_bins

MeasureName: TypeAlias = Literal[
    "correlation",
    "rank_correlation",
    "correlation_ratio",
    "chi_square",
    "mutual_information",
    "nearest_neighbour_information",
    "fisher_index",
    "conditional_information",
    "mifs",
]
NATS = float(np.log(2))
"""Nats of a bit."""


class Values(NamedTuple):
    """A column or target: numbers, categories, or truth values, which are both."""

    values: Vector
    """(n,) numbers, or codes from 0; NaN where missing."""
    numbers: bool
    categories: bool

    @classmethod
    def of(cls, values: Vector, kind: ColumnKind) -> "Values":
        return cls(values, kind.measured, kind in {ColumnKind.CATEGORICAL, ColumnKind.BOOLEAN})

    def take(self, rows: Labels) -> "Values":
        return self._replace(values=self.values[rows])

    @property
    def there(self) -> Labels:
        """Rows that have a value."""
        return np.flatnonzero(~np.isnan(self.values))

    def codes(self, bins: int | None = None) -> Labels:
        """(n,) of full values; those of numbers are bins. bins: at most; None: by the number of rows."""
        if self.categories:
            return self.values.astype(np.intp)
        return quantile_bins(self.values, bins_for(self.values.size) if bins is None else bins)


class MeasureOptions(NamedTuple):
    max_bins: int | None = None
    n_neighbors: int = 3
    beta: float = 0.0
    """Weight of redundancy in MIFS."""
    bias_correction: bool = True
    """True if information of counts is less the bias of few rows."""
    given: tuple[Values, ...] = ()
    """Columns, of all rows, within whose categories information is conditional."""


class MeasuredColumn(NamedTuple):
    dependence: Dependence
    rows: int
    """Rows that have all values."""
    missing: int
    sparse: bool = False
    """True if the table of counts has too few rows for its test, or its information."""


Found: TypeAlias = tuple[Dependence, bool]


class Measure(NamedTuple):
    """One measure."""

    definition: str
    of: Callable[[Values, Values, MeasureOptions], Found]
    """Maps column, target and options, all of full values, to the dependence, and whether counts are sparse."""
    of_target: str | None = None
    """Kind of the target that it needs, numbers or classes; None: either."""
    refusal: Callable[[Values, Values], str | None] = lambda _column, _target: None
    """Reason why a column has no such measure; None: it has."""
    ordered: Callable[[float], float] = lambda value: value
    """The larger, the higher the rank."""


def measured(measure: Measure, column: Values, target: Values, options: MeasureOptions) -> MeasuredColumn:
    """The measure of a column, on the rows that have a value in it and in the columns that are given."""
    rows = column.there
    for condition in options.given:
        rows = rows[~np.isnan(condition.values[rows])]
    missing = target.values.size - rows.size
    if not rows.size:
        return MeasuredColumn(UNDEFINED, 0, missing)
    inner = options._replace(given=tuple(condition.take(rows) for condition in options.given))
    dependence, sparse = measure.of(column.take(rows), target.take(rows), inner)
    return MeasuredColumn(dependence, rows.size, missing, sparse)


def _needs_numbers(column: Values, _target: Values) -> str | None:
    return None if column.numbers else "It holds categories; this measure needs numbers."


def _needs_categories(column: Values, _target: Values) -> str | None:
    return None if column.categories else "It holds numbers; this measure needs categories."


def _needs_the_other(column: Values, target: Values) -> str | None:
    if target.categories:
        return _needs_numbers(column, target)
    return None if column.categories else "It holds numbers, as the target does; one of them must be categories."


def _needs_distances(column: Values, target: Values) -> str | None:
    if target.categories and column.categories:
        return "It holds categories, as the target does, and categories have no distances: take mutual_information."
    return None


def _ratio(column: Values, target: Values, _: MeasureOptions) -> Found:
    if target.categories:
        return correlation_ratio(column.values, target.codes()), False
    return correlation_ratio(target.values, column.codes()), False


def _chi_square(column: Values, target: Values, _: MeasureOptions) -> Found:
    result = chi_square(column.codes(), target.codes())
    return result.found, result.sparse


def _information(column: Values, target: Values, options: MeasureOptions) -> Found:
    a, b = column.codes(options.max_bins), target.codes(options.max_bins)
    return in_bits(mutual_information(a, b, bias_correction=options.bias_correction)), _few(a, b)


def _conditional(column: Values, target: Values, options: MeasureOptions) -> Found:
    strata = joint_codes([values.codes(options.max_bins) for values in options.given])
    a, b = column.codes(options.max_bins), target.codes(options.max_bins)
    information = conditional_information(a, b, strata, bias_correction=options.bias_correction)
    return in_bits(information), _few(joint_codes([a, strata]), b)


def _nearest(column: Values, target: Values, options: MeasureOptions) -> Found:
    if target.categories:
        information = nearest_information.of_classes(column.values, target.codes(), options.n_neighbors)
    elif column.categories:
        information = nearest_information.of_classes(target.values, column.codes(), options.n_neighbors)
    else:
        information = nearest_information.of_numbers(column.values, target.values, options.n_neighbors)
    return in_bits(information), False


def in_bits(dependence: Dependence) -> Dependence:
    return dependence._replace(
        value=dependence.value / NATS, lower=dependence.lower / NATS, upper=dependence.upper / NATS
    )


def _few(a: Labels, b: Labels) -> bool:
    """True if there are fewer than 5 rows to a cell of the table of codes, on average."""
    return a.size < 5 * np.unique(a).size * np.unique(b).size


RANKED_BY_SIZE = " Ranked by its absolute value."
MEASURES_OF_COLUMNS: Mapping[MeasureName, Measure] = {
    "correlation": Measure(
        "Pearson's correlation coefficient, from -1 to 1: how nearly the target is a line in the column. Dependence "
        "along a curve may escape it. The p-value is that of independent normal columns." + RANKED_BY_SIZE,
        lambda column, target, _: (pearson(column.values, target.values), False),
        "numbers",
        _needs_numbers,
        abs,
    ),
    "rank_correlation": Measure(
        "Spearman's rank correlation, from -1 to 1: how nearly the target rises, or falls, with the column. Equal "
        "values share the mean of their ranks. The p-value is that of independent columns." + RANKED_BY_SIZE,
        lambda column, target, _: (spearman(column.values, target.values), False),
        "numbers",
        _needs_numbers,
        abs,
    ),
    "correlation_ratio": Measure(
        "Correlation ratio, from 0 to 1: root of the share of the squared deviations of the numbers that lies between "
        "the means of the categories. The p-value is that of the analysis of variance.",
        _ratio,
        None,
        _needs_the_other,
    ),
    "chi_square": Measure(
        "Chi-square of the counts of categories and classes against those expected of independent columns. It grows "
        "with the number of rows and of categories, which the p-value takes into account.",
        _chi_square,
        "classes",
        _needs_categories,
    ),
    "mutual_information": Measure(
        "Mutual information in bits, of any dependence, less the bias of few rows (Miller and Madow) unless "
        "`bias_correction` is false. Numbers are in bins of about equally many rows. The p-value is that of the "
        "likelihood-ratio test of the counts.",
        _information,
    ),
    "nearest_neighbour_information": Measure(
        "Mutual information in bits by the distances of the nearest rows, without bins (Kraskov; Ross for "
        "categories). Equal values are parted by tiny noise, always the same. Its intervals are somewhat narrow: they "
        "cover 84 to 94 times in 100. It has no test.",
        _nearest,
        None,
        _needs_distances,
    ),
    "fisher_index": Measure(
        "Fisher's discrimination index: squared difference of the means of two classes over the sum of their "
        "variances; of more classes the mean over pairs. The p-value is that of Welch's test.",
        lambda column, target, _: (fisher_index(column.values, target.codes()), False),
        "classes",
        _needs_numbers,
    ),
    "conditional_information": Measure(
        "Mutual information in bits within the categories of the columns in `given`: what the column adds to them. "
        "Less the bias of few rows unless `bias_correction` is false; numbers are in bins. The p-value is that of "
        "the likelihood-ratio test.",
        _conditional,
    ),
    "mifs": Measure(
        "Battiti's MIFS: the columns in the order in which a greedy choice takes them. The value is the mutual "
        "information in bits with the target, less beta times that with the columns before; each less the bias of few "
        "rows unless `bias_correction` is false. It has no test.",
        _information,
    ),
}
