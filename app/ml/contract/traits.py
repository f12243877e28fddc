"""Traits of an algorithm: symmetries of its fit, and what it takes unprepared."""

from enum import StrEnum


class Symmetry(StrEnum):
    """A change of the input that must not change the prediction (or must change it in the known way)."""

    ROW_ORDER = "row_order"
    COLUMN_ORDER = "column_order"
    SCALE = "scale"
    """Columns multiplied by powers of two: predictions stay, given unscaled preparation."""
    LABEL_NAMES = "label_names"
    """Classes renumbered: probabilities are renumbered alike."""
    WEIGHTS = "weights"
    """A row of weight 2 is the same as the row given twice."""


class Accepts(StrEnum):
    """Inputs that an algorithm takes as they are, so that preparation leaves them alone."""

    MISSING = "missing"
    """NaN in `Data.x` means missing."""
    CATEGORIES = "categories"
    """Columns with `Data.levels[j] > 0` hold level codes 0 … levels[j]-1; NaN is also an unseen level."""
    OFFSET = "offset"
    """A column may be part of the score of each row, as `Data.offset`."""
    UNLABELLED = "unlabelled"
    """Rows without a target are learned from, as `Data.unlabelled`."""
    UNKNOWN_PAIRS = "unknown_pairs"
    """Values of a square table of pairs may be unknown: NaN in `Relations.square` and in rows beside it."""
    SPARSE = "sparse"
    """`Data.x`, and x of predictions, may be `SparseRows`, as columns of text make them."""
    INDICATORS = "indicators"
    """`Data.x` of a fit may be `SparseRows` of indicators beside numbers, where these are mostly 0: unless `faults`
    refuses texts with these parameters, the result is that of the array but for rounding and the tolerance of the fit.
    """


BEYOND_COLUMNS = frozenset({Accepts.UNKNOWN_PAIRS, Accepts.INDICATORS, Accepts.OFFSET})
"""Traits that have no part in the preparation of columns."""
