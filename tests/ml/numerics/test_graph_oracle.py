"""Graphs against networkx: Laplacians, their spectra, components, cuts of any partition, and the drawing of Hall."""

import networkx as nx
import numpy as np
import pytest

from app.ml.algorithms.spectral import Spectral
from app.ml.algorithms.spectral import fit as clustered
from app.ml.algorithms.spectral_layout import SpectralLayout
from app.ml.algorithms.spectral_layout import fit as laid_out
from app.ml.contract.algorithm import Context, Data, Meaning, Task
from app.ml.contract.relations import Edges, Relations
from app.ml.numerics.graphs.graph_cuts import cuts
from app.ml.numerics.graphs.laplacian import smallest
from app.ml.numerics.graphs.similarity_graph import made

GRAPHS = {
    "karate": nx.karate_club_graph(),
    "florentine": nx.florentine_families_graph(),
    "les_miserables": nx.les_miserables_graph(),
    "apart": nx.disjoint_union(nx.karate_club_graph(), nx.path_graph(7)),
}


@pytest.fixture(params=GRAPHS)
def network(request):
    return nx.convert_node_labels_to_integers(GRAPHS[request.param])


def data(network, task=Task.CLUSTERING):
    ends = np.array([sorted(edge) for edge in network.edges])
    order = np.lexsort(ends.T[::-1])
    values = np.array([weight for *_, weight in network.edges.data("weight", default=1.0)], float)
    edges = Edges(*ends[order].T, values[order])
    relations = Relations(Meaning.SIMILARITY, edges=edges, by_item=True)
    return Data.of(task, np.arange(float(len(network)))[:, None], relations=relations)


@pytest.mark.parametrize("normalised", [False, True])
def test_the_spectrum_is_that_of_the_laplacian_of_networkx(network, normalised):
    kind = nx.normalized_laplacian_matrix if normalised else nx.laplacian_matrix
    theirs = kind(network).toarray()
    found = smallest(made(Spectral(), data(network)), len(network), normalised=normalised)
    unit = 1.0 if normalised else made(Spectral(), data(network)).unit
    np.testing.assert_allclose(found.values * unit, np.linalg.eigvalsh(theirs), atol=1e-9 * np.abs(theirs).max())
    np.testing.assert_allclose(theirs @ found.vectors, found.vectors * (found.values * unit), atol=1e-9 * theirs.max())


def test_components_are_those_of_networkx(network):
    found = smallest(made(Spectral(), data(network)), 2, normalised=True)
    groups = {frozenset(np.flatnonzero(found.labels == label).tolist()) for label in range(found.components)}
    assert groups == {frozenset(nodes) for nodes in nx.connected_components(network)}


@pytest.mark.parametrize("seed", range(3))
def test_cuts_of_two_parts_are_those_of_networkx(network, seed):
    labels = np.random.default_rng(seed).integers(0, 2, len(network))
    graph, inside = made(Spectral(), data(network)), np.flatnonzero(labels).tolist()
    found, theirs = cuts(graph, labels), nx.cut_size(network, inside, weight="weight")
    np.testing.assert_allclose(found.leaving, [theirs, theirs])
    np.testing.assert_allclose(found.volumes.sum(), nx.volume(network, network, weight="weight"))
    assert found.volumes[1] == pytest.approx(nx.volume(network, inside, weight="weight"))
    assert found.normalised_cut == pytest.approx(nx.normalized_cut_size(network, inside, weight="weight"))


@pytest.mark.parametrize("name", ["karate", "florentine", "les_miserables"])
def test_no_clustering_cuts_less_than_the_minimum_cut_of_stoer_and_wagner(name):
    network = nx.convert_node_labels_to_integers(GRAPHS[name])
    given = data(network)
    least, (one, _) = nx.stoer_wagner(network)
    graph, labels = made(Spectral(), given), np.isin(np.arange(len(network)), one).astype(int)
    assert cuts(graph, labels).cut == pytest.approx(2 * least)  # every edge between two clusters counts twice
    state = clustered(Spectral(n_clusters=2), given, Context.of(0)).state
    own = cuts(graph, state.labels)
    assert own.cut >= 2 * least
    assert own.normalised_cut <= cuts(graph, labels).normalised_cut


@pytest.mark.parametrize("name", ["karate", "les_miserables"])
def test_a_layout_is_that_of_networkx_in_its_size(name):
    """Turned about each axis as ours are, about their mean, with the farthest coordinate at 1."""
    network = nx.convert_node_labels_to_integers(GRAPHS[name])
    theirs = np.array([*nx.spectral_layout(network, dim=3).values()])
    state = laid_out(SpectralLayout(n_components=3), data(network, Task.PROJECTION), Context.of(0)).state
    own = state.coordinates - state.coordinates.mean(axis=0)
    own /= np.abs(own).max()
    np.testing.assert_allclose(own * np.sign((own * theirs).sum(axis=0)), theirs, atol=1e-9)
