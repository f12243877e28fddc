"""Trees of merges are those of scipy and fastcluster, whatever the linkage and the metric."""

import fastcluster
import numpy as np
import pytest
import scipy.cluster.hierarchy as peers
from scipy.spatial.distance import pdist

from app.ml.numerics.clustering.linkage import (
    cophenetic_correlation,
    labels,
    linkage,
    linkage_of_square,
    merges_below,
    widest_gap,
)

METRICS = {"euclidean": 2.0, "cityblock": 1.0, "chebyshev": np.inf}
CASES = [(kind, metric) for kind in ("single", "complete", "average") for metric in METRICS] + [("ward", "euclidean")]


def tree(x, kind, metric="euclidean", weights=None):
    return linkage(np.asarray(x, float), np.ones(len(x)) if weights is None else weights, kind, METRICS[metric])


@pytest.mark.parametrize(("kind", "metric"), CASES)
@pytest.mark.parametrize("rows", [2, 3, 400])
def test_the_tree_is_that_of_two_peers(kind, metric, rows):
    x = np.random.default_rng(rows).normal(size=(rows, 4))
    found = tree(x, kind, metric)
    for theirs in (peers.linkage(x, kind, metric), fastcluster.linkage(x, kind, metric)):
        np.testing.assert_array_equal(found.children, np.sort(theirs[:, :2]))
        np.testing.assert_allclose(found.heights, theirs[:, 2], rtol=1e-10)
        np.testing.assert_array_equal(found.sizes, theirs[:, 3])
        for count in (1, 2, min(7, rows)):
            own, other = labels(found.children, rows - count), peers.fcluster(theirs, count, "maxclust")
            np.testing.assert_array_equal(own[:, None] == own, other[:, None] == other)
    if rows > 2:
        expected, _ = peers.cophenet(peers.linkage(x, kind, metric), pdist(x, metric))
        assert cophenetic_correlation(x, found, METRICS[metric]) == pytest.approx(expected, rel=1e-6)


def test_the_five_points_of_a_published_example_join_in_its_order():
    x = np.array([[0, 4], [3, 0], [3.5, 0.3], [5, 1.5], [5.2, 2]])
    found = tree(x, "single")
    np.testing.assert_allclose(found.heights, [0.5385, 0.5831, 1.9209, 5.0], atol=5e-5)
    np.testing.assert_array_equal(found.children, [[3, 4], [1, 2], [5, 6], [0, 7]])


@pytest.mark.parametrize("kind", ["single", "complete", "average", "ward"])
def test_a_weight_is_a_row_given_more_than_once(kind):
    rng = np.random.default_rng(3)
    x, times = rng.normal(size=(40, 3)), rng.integers(1, 4, 40)
    weighted = tree(x, kind, weights=times.astype(float))
    repeated = tree(np.repeat(x, times, axis=0), kind)
    np.testing.assert_allclose(weighted.heights, repeated.heights[-39:], rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
@pytest.mark.parametrize("kind", ["single", "complete", "average", "ward"])
def test_squares_neither_overflow_nor_vanish(kind, factor):
    x = np.random.default_rng(1).normal(size=(30, 2))
    np.testing.assert_allclose(tree(x * factor, kind).heights / factor, tree(x, kind).heights, rtol=1e-9)


def test_the_largest_numbers_are_joined_too():
    largest = np.finfo(float).max
    found = linkage_of_square(np.array([[0, largest], [largest, 0]]), np.ones(2), "average")
    assert found.heights.tolist() == [largest]


def test_one_row_is_one_cluster_and_equal_rows_join_at_no_height():
    assert labels(tree([[1.0]], "average").children, 0).tolist() == [0]
    found = tree(np.ones((5, 2)), "ward")
    assert not found.heights.any()
    assert np.isnan(cophenetic_correlation(np.ones((5, 2)), found, 2.0))


def test_cuts_are_nested_and_the_widest_gap_parts_three_blobs():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(centre, 0.3, (30, 2)) for centre in ((0, 0), (5, 0), (0, 5))])
    found = tree(x, "average")
    assert len(x) - widest_gap(found.heights) == 3
    assert merges_below(found.heights, found.heights[0] / 2) == 0
    assert merges_below(found.heights, found.heights[-1]) == len(x) - 1
    finer = labels(found.children, 0)
    for merges in range(1, len(x)):
        coarser = labels(found.children, merges)
        assert all(len(set(coarser[finer == one])) == 1 for one in set(finer.tolist()))
        finer = coarser


def test_single_linkage_keeps_two_long_rows_of_points_together():
    line = np.arange(40) * 0.256
    x = np.concatenate([np.column_stack([line, np.full(40, y)]) for y in (0.0, 1.0)])
    np.testing.assert_array_equal(labels(tree(x, "single").children, 78), np.repeat([0, 1], 40))
