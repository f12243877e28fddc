"""Rows of plots, as reports hold them: places on a map, clusters, silhouettes and log densities of training rows.

They are in the report, since the dataset may be deleted before its model. Of many rows a sample keeps the report small.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.labels import Label
from app.ml.statistics.metric_value import Metric

MOST_ROWS = 1000
"""Rows of a sample."""
DIGITS = 6
"""Significant digits of their values."""


class RowAxis(Wire):
    """Axis of a map of the rows."""

    name: str = Field(description="Name of the axis, such as `component 1`.")
    variance_share: float | None = Field(
        None,
        description="Share, from 0 to 1, of the variance of the rows of the sample in the prepared columns that lies "
        "along the axis. Null for a projection, whose summary has its own shares.",
    )
    values: list[float | None] = Field(description="Coordinate of each row; null where it is not finite.")


class RowSample(Wire):
    """Values of single training rows, for plots. All lists of rows have the order of `rows`."""

    rows: list[int] = Field(description="Numbers of the rows in the dataset, from 0, in ascending order.")
    items: list[str] | None = Field(
        None, description="Name of each row, by the column `item` of the training; null: it named none."
    )
    rows_train: int = Field(
        description=f"Number of training rows, among which {MOST_ROWS:,} are drawn with the seed of the training where "
        "there are more."
    )
    classes: list[Label | None] | None = Field(
        None,
        description="Class of each row, that a projection separates or clusters are compared with; a null entry is a "
        "row without one. Null: there are no classes.",
    )
    clusters: list[int] | None = Field(None, description="Cluster of each row; null for other tasks.")
    axes: list[RowAxis] = Field(
        [],
        description="First two coordinates of a projection, or first two principal components of the rows of a "
        "clustering in its prepared columns. Empty for other tasks, and for clusterings without columns.",
    )
    silhouettes: list[float | None] | None = Field(
        None,
        description="Silhouette of each row beside all training rows, from -1 to 1: negative where another cluster is "
        "nearer than its own. A null entry is a row beyond the number that large tables allow. Null: no clustering, or "
        "a single cluster.",
    )
    cluster_silhouettes: list[Metric] = Field(
        [],
        description="Mean silhouette of the rows of the sample in each cluster, whose number is `label`; intervals "
        "take rows as independent.",
    )
    log_densities: list[float | None] | None = Field(
        None, description="Natural logarithm of the density at each row; null where the model has no density."
    )


def written(values: NDArray[Any]) -> list[float | None]:
    """Numbers in six significant digits; null for those that are not finite.

    >>> written(np.array([0.12345678, -1e20, np.nan]))
    [0.123457, -1e+20, None]
    """
    return [float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None for value in values.tolist()]
