"""Classical scaling: Euclidean distances give the map of principal components; eigenvalues as numpy finds them."""

import numpy as np
import pytest
from scipy.spatial import procrustes
from scipy.spatial.distance import cdist, pdist

from app.base.errors import InvalidData
from app.ml.algorithms import mds, pca
from app.ml.algorithms.mds import MDS
from app.ml.contract.algorithm import Context, Data, Meaning, Task
from app.ml.contract.relations import Edges, Relations
from app.ml.numerics.maps import classical_scaling

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 5)) * [4, 3, 2, 1, 0.5]
ODD = cdist(ROWS, ROWS, "cityblock") ** 1.5
"""No Euclidean distances."""


def rows(x, **more):
    return Data.of(Task.PROJECTION, x, **more)


def mapped(data, **params):
    return mds.fit(MDS(**params), data, Context.of(0)).state


def square(given):
    return rows(np.nan_to_num(given), relations=Relations(Meaning.DISSIMILARITY, given))


def eigenvalues(given):
    middle = np.eye(len(given)) - 1 / len(given)
    return np.linalg.eigvalsh(-0.5 * middle @ np.square(given) @ middle)[::-1]


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 4, 40)])
def test_euclidean_distances_give_the_principal_components(weights):
    data = rows(ROWS, weights=weights)
    params = pca.PCA(n_components=3)
    of_pca = pca.fit(params, data, Context.of(0)).state
    own = mapped(data, n_components=3)
    new = RNG.normal(size=(9, 5)) * 5
    for x in (ROWS, new):
        found, wanted = mds.predict(MDS(n_components=3), own, x), pca.predict(params, of_pca, x)
        np.testing.assert_allclose(found, wanted * np.sign((found * wanted).sum(axis=0)), atol=1e-9)
    variance = own.eigenvalues[:3] * own.known.scale**2 / own.known.weights.sum()
    np.testing.assert_allclose(variance, of_pca.variance, rtol=1e-10)
    ratio = mds.summary(MDS(), own)["explained_ratio"]
    np.testing.assert_allclose(ratio, of_pca.variance / of_pca.total, rtol=1e-10)


def test_as_many_axes_as_columns_give_the_distances_back():
    found = mapped(square(cdist(ROWS, ROWS)), n_components=5)
    np.testing.assert_allclose(pdist(found.places * found.known.scale), pdist(ROWS), rtol=1e-9)
    assert procrustes(ROWS, found.places)[2] < 1e-18
    made = mds.fit(MDS(n_components=9), square(cdist(ROWS, ROWS)), Context.of(0))
    assert made.state.places.shape == (40, 5)
    assert "Only 5 eigenvalues" in made.warnings[0]


def test_negative_eigenvalues_are_reported():
    report = mds.summary(MDS(), mapped(square(ODD)))
    wanted = eigenvalues(ODD)
    np.testing.assert_allclose(report["eigenvalues"], wanted, atol=1e-9 * wanted[0])
    assert report["negative_eigenvalues"] == (wanted < -1e-9 * wanted[0]).sum() > 3
    assert report["lowest_eigenvalue"] == pytest.approx(wanted[-1])
    np.testing.assert_allclose(report["explained_ratio"], wanted[:2] / np.abs(wanted).sum())
    np.testing.assert_allclose(report["explained_squared_ratio"], wanted[:2] ** 2 / (wanted**2).sum())


@pytest.mark.parametrize("power", [1, 1.5])
def test_of_many_rows_the_largest_eigenvalues_and_the_lowest_are_found(monkeypatch, power):
    """Of Euclidean distances all others are zero; of others they are not."""
    x = RNG.normal(size=(130, 4)) * [4, 3, 2, 1]
    given = cdist(x, x) if power == 1 else cdist(x, x, "cityblock") ** power
    whole = mapped(square(given), n_components=3)
    monkeypatch.setattr(classical_scaling, "COMPLETE", 20)
    some = mapped(square(given), n_components=3)
    np.testing.assert_allclose(some.places, whole.places, atol=1e-9)
    size = whole.eigenvalues[0]
    np.testing.assert_allclose(
        some.eigenvalues, whole.eigenvalues[[0, 1, 2, *range(-5, 0)]], rtol=1e-5, atol=1e-9 * size
    )
    one, other = (mds.summary(MDS(n_components=3), state) for state in (some, whole))
    assert (one["explained_ratio"], one["negative_eigenvalues"]) == (None, None)
    assert one["explained_squared_ratio"] == pytest.approx(other["explained_squared_ratio"])


def test_equal_rows_have_a_map_however_many(monkeypatch):
    monkeypatch.setattr(classical_scaling, "COMPLETE", 20)
    found = mapped(square(np.zeros((130, 130))))
    np.testing.assert_array_equal(found.places, np.zeros((130, 1)))


def test_a_row_of_the_square_is_placed_where_it_is_whatever_the_dissimilarities():
    found = mapped(square(ODD))
    np.testing.assert_allclose(mds.predict(MDS(), found, ODD), found.places * found.known.scale, rtol=1e-9, atol=1e-9)


def test_edges_of_all_pairs_are_a_square_and_of_some_are_refused():
    low, high = np.triu_indices(40, 1)
    values = ODD[low, high]
    whole = Relations(Meaning.DISSIMILARITY, edges=Edges(low, high, values), by_item=True)
    found = mapped(rows(np.arange(40.0)[:, None], relations=whole))
    np.testing.assert_array_equal(found.places, mapped(square(ODD)).places)
    some = whole._replace(edges=Edges(low[1:], high[1:], values[1:]))
    with pytest.raises(InvalidData, match="1 have none: take smacof"):
        mapped(rows(np.arange(40.0)[:, None], relations=some))
