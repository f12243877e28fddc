"""Metrics of a map of rows beside the rows themselves: which neighbours it keeps, and which distances."""

import numpy as np

from app.ml.contract.algorithm import Data, Matrix, Vector
from app.ml.evaluation.metrics import mean
from app.ml.evaluation.splits import evenly
from app.ml.numerics.neighbours import kept_neighbours
from app.ml.statistics.intervals import Resamples, ratio
from app.ml.statistics.metric_value import Metric, bootstrapped
from app.ml.statistics.resampling import Rows

MOST_ROWS = 500
"""Rows that are compared with each other; of more, as many evenly spaced ones."""
NEIGHBOURS = 5
STRESS = (
    "Kruskal's stress-1 of the distances of all pairs: the root of the sum of (d - b * D)^2 over that of d^2, with d "
    "in the map, D between the prepared (scaled) rows or as it was given, and the best scale b."
)


def retained_metrics(data: Data, coordinates: Matrix, draws: Resamples) -> list[Metric]:
    """Trustworthiness, continuity and stress of coordinates (n, p) of rows, beside their given dissimilarities if there
    is a square of them.

    `n` of each is the number of rows that were compared with each other. Intervals are of this map, on other rows.
    """
    n, rows = len(data.x), evenly(len(data.x), MOST_ROWS)
    draws = draws._replace(group=draws.group[rows])
    sample = f" Of {rows.size} rows, evenly spaced among {n}." if rows.size < n else ""
    trust, continuity, (left, squares), k = _compared(
        data.x[rows] if data.square is None else data.square[np.ix_(rows, rows)],
        coordinates[rows],
        precomputed=data.square is not None,
    )
    pairs = [Rows(draws).pairs(sums) for sums in (left, squares)]
    stress = np.sqrt(np.maximum(ratio(*pairs), 0.0))
    near = f"Over the {k} nearest rows of each row.{sample}"
    return [
        mean("trustworthiness", trust, draws).model_copy(update={"note": near}),
        mean("continuity", continuity, draws).model_copy(update={"note": near}),
        bootstrapped("stress", stress[0], stress[1:], rows.size).model_copy(update={"note": f"{STRESS}{sample}"}),
    ]


def _compared(x: Matrix, z: Matrix, *, precomputed: bool) -> tuple[Vector, Vector, tuple[Vector, Vector], int]:
    """NaN where there are too few rows, or numbers that are not finite. given: x holds the distances themselves."""
    m, k = len(x), kept_neighbours.most_neighbours(len(x), NEIGHBOURS)
    unknown = np.full(m, np.nan)
    if not k or not np.isfinite(z).all() or not np.isfinite(x).all():
        return unknown, unknown, (unknown, unknown), k
    before, after = x if precomputed else kept_neighbours.distances(x), kept_neighbours.distances(z)
    return *kept_neighbours.retained_neighbours(before, after, k), kept_neighbours.strain(before, after), k
