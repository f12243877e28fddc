"""Profiles of clusters: the F statistic of scipy, quartiles of numpy, missing and constant columns, many clusters."""

import numpy as np
import pytest
import scipy
from sklearn.datasets import load_iris

from app.ml.evaluation.cluster_profiles import MOST_CLUSTERS, MOST_COLUMNS, cluster_profiles

IRIS = load_iris()
FLOWERS = dict(zip("abcd", IRIS.data.T, strict=True))


def test_a_correlation_ratio_is_that_of_the_analysis_of_variance():
    found = cluster_profiles(FLOWERS, IRIS.target)
    n, k = 150, 3
    for column in found.columns:
        groups = [FLOWERS[column.name][IRIS.target == code] for code in range(k)]
        ratio = column.correlation_ratio
        assert ratio / (1 - ratio) * (n - k) / (k - 1) == pytest.approx(scipy.stats.f_oneway(*groups).statistic)
    assert [column.name for column in found.columns] == ["c", "d", "a", "b"]


def test_means_and_quartiles_are_those_of_the_rows_of_a_cluster():
    found = cluster_profiles(FLOWERS, IRIS.target)
    assert (found.clusters, found.sizes) == ([0, 1, 2], [50, 50, 50])
    for column in found.columns:
        values = FLOWERS[column.name]
        assert (column.mean, column.standard_deviation) == pytest.approx((values.mean(), values.std()))
        parts = column.lower_quartiles, column.medians, column.upper_quartiles
        for code in range(3):
            own = values[IRIS.target == code]
            assert column.means[code] == pytest.approx(own.mean())
            assert [part[code] for part in parts] == pytest.approx(np.quantile(own, [0.25, 0.5, 0.75]).tolist())


def test_missing_values_do_not_count_and_constant_columns_are_left_out():
    labels = np.array([0, 0, 1, 1, 1])
    columns = {
        "gaps": np.array([np.nan, np.nan, 1.0, 3.0, np.nan]),
        "constant": np.full(5, 0.1),
        "absent": np.full(5, np.nan),
        "huge": np.array([1e300, -1e300, 1e300, 1.0, 2.0]),
    }
    found = cluster_profiles(columns, labels)
    assert [column.name for column in found.columns] == ["gaps"]
    (gaps,) = found.columns
    assert (gaps.means, gaps.medians, gaps.mean, gaps.correlation_ratio) == ([None, 2.0], [None, 2.0], 2.0, 0.0)


def test_the_largest_clusters_and_the_most_telling_columns_are_kept():
    rng = np.random.default_rng(4)
    labels = np.concatenate([np.arange(40), np.arange(10, 40)])
    columns = {f"x{i}": labels + rng.normal(size=70) * (i + 1) for i in range(20)}
    found = cluster_profiles(columns, labels)
    assert found.clusters == list(range(10, 40))
    assert len(found.clusters) == MOST_CLUSTERS
    ratios = [column.correlation_ratio for column in found.columns]
    assert len(ratios) == MOST_COLUMNS
    assert ratios == sorted(ratios, reverse=True)
