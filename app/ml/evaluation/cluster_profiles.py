"""Profiles of clusters: means and quartiles of the columns that part the clusters most, in units of the table.

A column parts clusters by its correlation ratio η², the share of its variance that lies between them: 1 where each
cluster has a value of its own, 0 where all have the same mean.

Reference: Kelley (1935), Proc. Natl. Acad. Sci. 21:554.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.statistics.intervals import ratio

MOST_COLUMNS, MOST_CLUSTERS = 12, 30
QUARTERS = (0.25, 0.5, 0.75)


class ProfileColumn(Wire):
    """Values of a column in each cluster, in its unit in the table. Lists have the order of the clusters."""

    name: str = Field(description="Name of the column.")
    mean: float = Field(description="Mean of the training rows.")
    standard_deviation: float = Field(description="Standard deviation of the training rows, above 0.")
    correlation_ratio: float = Field(
        description="Share of the variance of the column that lies between the clusters, from 0 to 1: large for "
        "columns that distinguish them."
    )
    means: list[float | None] = Field(description="Mean of each cluster; null where all its values are missing.")
    lower_quartiles: list[float | None] = Field(description="First quartile of each cluster.")
    medians: list[float | None] = Field(description="Median of each cluster.")
    upper_quartiles: list[float | None] = Field(description="Third quartile of each cluster.")


class ClusterProfiles(Wire):
    """Training rows of each cluster, column by column."""

    clusters: list[int] = Field(description=f"Numbers of the clusters: of more than {MOST_CLUSTERS} the largest.")
    sizes: list[int] = Field(description="Number of training rows of each cluster.")
    columns: list[ProfileColumn] = Field(
        description=f"Numeric columns, the largest correlation ratio first: at most {MOST_COLUMNS}, and none that is "
        "constant."
    )


class _Moments(NamedTuple):
    mean: float
    deviation: float
    between: float
    """Share of the variance between clusters."""


def cluster_profiles(columns: Mapping[str, Vector], labels: Labels) -> ClusterProfiles:
    """Profiles of clusters of rows with these labels (n,), from 0. columns: (n,) each, NaN where missing."""
    counts = np.bincount(labels)
    largest = np.argsort(-counts, kind="stable")[:MOST_CLUSTERS]
    clusters = np.sort(largest[counts[largest] > 0])
    moments_by_name = {name: _moments(values, labels) for name, values in columns.items()}
    varied = [name for name, moments in moments_by_name.items() if moments.deviation > 0]
    first = sorted(varied, key=lambda name: -moments_by_name[name].between)[:MOST_COLUMNS]
    groups = [np.flatnonzero(labels == cluster) for cluster in clusters]
    return ClusterProfiles(
        clusters=clusters.tolist(),
        sizes=counts[clusters].tolist(),
        columns=[_column(name, moments_by_name[name], [columns[name][group] for group in groups]) for name in first],
    )


def _moments(values: Vector, labels: Labels) -> _Moments:
    """Zeros of a column that does not vary but for rounding, or whose values are too large to be squared."""
    there = np.isfinite(values)
    finite_values, codes = values[there], labels[there]
    if not finite_values.size or finite_values.min() == finite_values.max():
        return _Moments(0.0, 0.0, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(finite_values.mean())
        gaps = finite_values - mean
        total = float(gaps @ gaps)
        counts, sums = np.bincount(codes), np.bincount(codes, gaps)
        between = float(ratio(sums, counts)[counts > 0] @ sums[counts > 0])
    if not 0 < total < np.inf:
        return _Moments(0.0, 0.0, 0.0)
    return _Moments(mean, float(np.sqrt(total / finite_values.size)), min(1.0, between / total))


def _column(name: str, moments: _Moments, groups: list[Vector]) -> ProfileColumn:
    finite_groups = [group[np.isfinite(group)] for group in groups]
    low, middle, high = np.array([_quartiles(group) for group in finite_groups]).T
    return ProfileColumn(
        name=name,
        mean=moments.mean,
        standard_deviation=moments.deviation,
        correlation_ratio=moments.between,
        means=[float(group.mean()) if group.size else None for group in finite_groups],
        lower_quartiles=_known(low),
        medians=_known(middle),
        upper_quartiles=_known(high),
    )


def _quartiles(values: Vector) -> Matrix:
    return np.quantile(values, QUARTERS) if values.size else np.full(3, np.nan)


def _known(values: Vector) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]
