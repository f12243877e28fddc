"""Distances of rows kept by a tree of their merges: the cophenetic correlation with an interval.

Reference: Sokal & Rohlf (1962), Taxon 11:33.
"""

import numpy as np

from app.ml.evaluation.predictions import Joined
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.metric_value import Metric, bootstrapped
from app.ml.statistics.resampling import Rows

NOTE = "Correlation of the distances of pairs of training rows with the heights at which they join."


def cophenetic(joined: Joined, draws: Resamples) -> Metric:
    """Undefined where distances or heights do not vary. draws: of all training rows."""
    m, n = joined.rows.size, draws.group.size
    resampled = Rows(draws._replace(group=draws.group[joined.rows]))
    off_diagonal = ~np.eye(m, dtype=np.bool_)
    a, b = ((part - part[off_diagonal].mean() if m > 1 else part) * off_diagonal for part in joined[1:])
    pairs = resampled.pairs(np.full(m, m - 1.0))
    sums, others, squares, other_squares, products = (
        resampled.pairs(part.sum(axis=1)) for part in (a, b, a * a, b * b, a * b)
    )
    count = np.where(pairs > 0, pairs, 1.0)
    squares_about_mean, other = squares - sums**2 / count, other_squares - others**2 / count
    defined = (squares_about_mean > 1e-12 * squares) & (other > 1e-12 * other_squares)
    spread = np.sqrt(np.where(defined, squares_about_mean * other, 1.0))
    values = np.where(defined, (products - sums * others / count) / spread, np.nan)
    note = NOTE if m == n else f"{NOTE} Of {m} rows, evenly spaced among {n}."
    return bootstrapped("cophenetic_correlation", values[0], values[1:], m).model_copy(update={"note": note})
