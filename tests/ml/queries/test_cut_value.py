"""Cuts of graphs that are too large to store: their edges are made again in blocks, to the same values."""

import numpy as np
import pytest

from app.ml.algorithms.spectral import ALGORITHM, Spectral, fit
from app.ml.contract.algorithm import Context, Data, Meaning, Task
from app.ml.contract.relations import Relations
from app.ml.numerics.graphs import graph_blocks, kept_graph
from app.ml.numerics.graphs.graph_cuts import cuts, trace
from app.ml.numerics.graphs.similarity_graph import made

RNG = np.random.default_rng(0)
ROWS = np.concatenate([RNG.normal(size=(60, 3)), RNG.normal(size=(40, 3)) + 3, np.ones((3, 3))])
WEIGHTS = RNG.uniform(0.5, 2, len(ROWS))


def partitioned(params, data):
    return ALGORITHM.queries["cut_value"](params, fit(params, data, Context.of(0)).state)


@pytest.mark.parametrize("scale", [1.0, 2.0**400])
@pytest.mark.parametrize(
    "params",
    [
        {"graph": "full"},
        {"graph": "full", "width": 1.5},
        {"graph": "epsilon"},
        {"graph": "epsilon", "radius": 1.5, "width": 2.0},
    ],
)
def test_edges_in_blocks_have_the_cuts_of_the_whole_graph(monkeypatch, params, scale):
    params = Spectral(n_clusters=3, **{k: v * scale if isinstance(v, float) else v for k, v in params.items()})
    data = Data.of(Task.CLUSTERING, ROWS * scale, weights=WEIGHTS, numbers=np.arange(len(ROWS)))
    labels, whole = RNG.integers(0, 4, len(ROWS)), made(params, data)
    monkeypatch.setattr(kept_graph, "MOST_EDGES", 10)
    monkeypatch.setattr(graph_blocks, "BLOCK", 7 * len(ROWS))
    found = partitioned(params, data)
    assert (found.graph.complete, found.known) == (False, True)
    values, traced = found.cuts(labels[found.numbers])
    for one, other in zip(values, cuts(whole, labels), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert traced == pytest.approx(trace(whole, labels))
    assert traced == pytest.approx(values.ratio_cut)
    own, _ = found.cuts(found.labels)
    assert own.ratio_cut == pytest.approx(cuts(whole, found.labels[np.argsort(found.numbers)]).ratio_cut)


def test_a_full_graph_beyond_what_a_model_stores_has_cuts():
    """2,100 rows in two groups: 2,203,950 edges."""
    x = np.concatenate([RNG.normal(size=(1050, 2)), RNG.normal(size=(1050, 2)) + 6])
    found = partitioned(Spectral(n_clusters=2, graph="full", width=5.0, n_init=1), Data.of(Task.CLUSTERING, x))
    assert found.graph.edges > kept_graph.MOST_EDGES
    values, traced = found.cuts((found.made_again.args[1].rows[:, 0] > 3).astype(int))
    side = x[:, 0] > 3
    between = np.exp(-np.square(x[side, None] - x[~side]).sum(axis=2) / 25).sum()
    assert values.cut == pytest.approx(2 * between)
    assert traced == pytest.approx(between / side.sum() + between / (~side).sum())


def test_neighbours_and_given_graphs_are_not_made_again(monkeypatch):
    monkeypatch.setattr(kept_graph, "MOST_EDGES", 10)
    similarities = np.exp(-np.square(ROWS[:, None] - ROWS).sum(axis=2))
    square = Relations(Meaning.SIMILARITY, square=similarities)
    given = Data.of(Task.CLUSTERING, similarities, relations=square)
    for params, data in ((Spectral(), Data.of(Task.CLUSTERING, ROWS)), (Spectral(graph="full"), given)):
        assert not partitioned(params, data).known
    monkeypatch.setattr(graph_blocks, "MOST_PAIRS", 100)
    assert not partitioned(Spectral(graph="full"), Data.of(Task.CLUSTERING, ROWS)).known
