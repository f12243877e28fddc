"""Cophenetic correlation of a tree of clusters, against scipy."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_iris

from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Context, Data, FittedLearner, Task
from app.ml.evaluation import predictions
from app.ml.evaluation.tree_metrics import cophenetic
from app.ml.statistics.intervals import Resamples

IRIS = load_iris().data + np.random.default_rng(0).normal(0, 1e-3, (150, 4))
METRICS = {"euclidean": "euclidean", "manhattan": "cityblock", "chebyshev": "chebyshev"}


def fitted(x, **params):
    algorithm, data = find("agglomerative").algorithm, Data.of(Task.CLUSTERING, x)
    given = algorithm.params(n_clusters=1, **params)
    return FittedLearner(algorithm, given, algorithm.fit(given, data, Context.of(0)).state), data


def joined(x, **params):
    return predictions.of_training_rows(*fitted(x, **params)).joined


def measured(found, n):
    return cophenetic(found, Resamples.of(n, np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("method", "metric"),
    [("single", "euclidean"), ("average", "manhattan"), ("complete", "chebyshev"), ("ward", "euclidean")],
)
def test_heights_distances_and_correlation_are_those_of_scipy(method, metric):
    distances = pdist(IRIS, METRICS[metric])
    expected, heights = cophenet(linkage(distances, method), distances)
    found = joined(IRIS, linkage=method, metric=metric)
    np.testing.assert_allclose(found.distances, squareform(distances), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.heights, squareform(heights), rtol=1e-9)
    one = measured(found, 150)
    assert one.value == pytest.approx(expected, rel=1e-9)
    assert one.lower < one.value < one.upper <= 1


def test_of_many_rows_some_are_compared(monkeypatch):
    monkeypatch.setattr(predictions, "MOST_JOINED", 40)
    found = joined(IRIS, linkage="average")
    assert found.rows.tolist() == np.linspace(0, 149, 40).astype(int).tolist()
    whole = squareform(cophenet(linkage(pdist(IRIS), "average")))
    np.testing.assert_allclose(found.heights, whole[np.ix_(found.rows, found.rows)], rtol=1e-9)
    one = measured(found, 150)
    assert (one.n, one.note.endswith("Of 40 rows, evenly spaced among 150.")) == (40, True)


@pytest.mark.parametrize("x", [np.zeros((5, 2)), np.zeros((1, 2)), np.array([[0.0], [1.0]])])
def test_without_different_pairs_there_is_no_correlation(x):
    assert measured(joined(x), len(x)).value is None
