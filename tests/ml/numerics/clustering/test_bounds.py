"""Bounds save comparisons and change no label."""

import numpy as np
import pytest

from app.ml.numerics.clustering import bounds
from app.ml.numerics.clustering.bounds import Clusters, Rows, sweep
from app.ml.numerics.clustering.lloyd import lloyd
from app.ml.numerics.neighbours.distances import nearest


def plain_lloyd(x, weights, centres, moves):
    """The textbook loop; no centre may lose its rows."""
    labels, squares = nearest(x, centres)
    inertia = [weights @ squares]
    for _ in range(moves):
        centres = np.array(
            [np.average(x[labels == c], axis=0, weights=weights[labels == c]) for c in range(len(centres))]
        )
        labels, squares = nearest(x, centres)
        inertia.append(weights @ squares)
    return centres, labels, inertia


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(
    "shape", [(2000, 1, 7), (3000, 6, 20), (500, 40, 3), (4000, 5, 2), (3000, 6, 4), (1500, 70, 9)]
)
def test_labels_and_inertia_are_those_of_comparing_all(shape, offset):
    n, d, k = shape
    rng = np.random.default_rng(n)
    x, weights = rng.normal(size=(n, d)) * 3 ** rng.integers(0, 3, (n, 1)) + offset, rng.uniform(0.5, 2, n)
    first = x[rng.choice(n, k, replace=False)]
    for moves in (1, 4, 25):
        ours = lloyd(x, weights, first, moves)
        centres, labels, inertia = plain_lloyd(x, weights, first, len(ours.inertia) - 1)
        np.testing.assert_allclose(ours.centres, centres, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(ours.labels, labels)
        np.testing.assert_allclose(ours.inertia, inertia, rtol=1e-9)
        assert ours.inertia == sorted(ours.inertia, reverse=True)


@pytest.mark.parametrize(("side", "k"), [(6, 5), (16, 2), (16, 4), (16, 5)])
def test_rows_on_a_lattice_tie_and_go_to_the_first_centre(side, k):
    x = np.stack(np.meshgrid(*[np.arange(float(side))] * 3), axis=-1).reshape(-1, 3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        centres = rng.integers(0, side, (k, 3)).astype(float)
        rows = Rows(x, np.ones(len(x)), centres)
        clusters = Clusters(np.zeros((k, 3)), np.zeros(k), np.zeros(k, np.intp))
        sweep(rows, clusters, centres, np.zeros(k))
        for _ in range(5):
            step = rng.integers(-1, 2, centres.shape) * 1.0
            centres = centres + step
            sweep(rows, clusters, centres, np.sqrt((step**2).sum(axis=1)))
            np.testing.assert_array_equal(rows.labels, ((x[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1))


@pytest.mark.parametrize("few", [0, 4])
def test_a_sweep_is_the_same_by_products_and_by_differences(monkeypatch, few):
    monkeypatch.setattr(bounds, "FEW_CENTRES", few)
    rng = np.random.default_rng(2)
    x, weights = rng.normal(size=(5000, 4)), rng.uniform(0.5, 2, 5000)
    before, after = x[:4], x[:4] + 0.1
    rows = Rows(x, weights, before)
    clusters = Clusters.of(x, weights, rows.labels, 4)
    first = sweep(rows, clusters, before, np.zeros(4))
    second = sweep(rows, clusters, after, np.full(4, 0.2))
    squares = [((x[:, None] - centres) ** 2).sum(axis=2) for centres in (before, after)]
    labels = [each.argmin(axis=1) for each in squares]
    assert (first.changed, second.changed) == ((labels[0] != 0).sum(), (labels[0] != labels[1]).sum())
    every = np.arange(5000)
    fall = weights @ (squares[1][every, labels[0]] - squares[1][every, labels[1]])
    assert second.fall == pytest.approx(fall, rel=1e-9)
    own = np.sqrt(squares[1][every, labels[1]])
    squares[1][every, labels[1]] = np.inf
    assert (rows.upper() >= own * (1 - 1e-12)).all()
    assert (rows.nearest_other() <= np.sqrt(squares[1].min(axis=1))).all()
    np.testing.assert_allclose(clusters.masses, np.bincount(labels[1], weights), rtol=1e-12)


def test_most_rows_of_separate_clusters_are_compared_once(monkeypatch):
    monkeypatch.setattr(bounds, "NARROW", 0)
    compared = []
    lowest = bounds.Scores.lowest
    monkeypatch.setattr(
        bounds.Scores, "lowest", lambda self, x, rows: compared.append(len(rows)) or lowest(self, x, rows)
    )
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5000, 4)) + 30 * rng.integers(0, 8, (5000, 1))
    run = lloyd(x, np.ones(5000), x[rng.choice(5000, 12, replace=False)], 100)
    assert run.converged
    assert sum(compared) < 0.5 * 5000 * (len(run.inertia) + 1)
