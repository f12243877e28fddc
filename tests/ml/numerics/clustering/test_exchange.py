"""Changes of single rows lead on where Lloyd's algorithm has stopped."""

from itertools import pairwise, product

import numpy as np
import pytest

from app.ml.algorithms.kmeans import KMeans, fit
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.clustering.exchange import exchanged
from app.ml.numerics.clustering.lloyd import lloyd
from app.ml.numerics.clustering.seeding import canonical_order


def test_a_tie_at_which_lloyd_stops_is_left():
    """C6: {1, 2, 3, 4} from 2 and 4 stops at 2; the row 3 is better off with 4, and then the inertia is 1."""
    x = np.array([[1.0], [2.0], [3.0], [4.0]])
    run = exchanged(x, np.ones(4), lloyd(x, np.ones(4), x[[1, 3]], 10), 10)
    assert run.inertia[-1] == 1.0
    assert run.labels.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_no_change_of_a_single_row_is_left(seed):
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=(60, 2)), rng.uniform(0.5, 2, 60)
    run = exchanged(x, weights, lloyd(x, weights, x[:12], 300), 300)
    assert all(after <= before for before, after in pairwise(run.inertia))

    def inertia(labels):
        groups = [labels == j for j in range(12) if (labels == j).any()]
        return sum(
            weights[g] @ ((x[g] - np.average(x[g], axis=0, weights=weights[g])) ** 2).sum(axis=1) for g in groups
        )

    best = inertia(run.labels)
    assert best == pytest.approx(run.inertia[-1])
    for row, label in product(range(60), range(12)):
        labels = run.labels.copy()
        labels[row] = label
        assert inertia(labels) >= best * (1 - 1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_of_many_starts_is_the_best_partition(seed):
    """C5: all partitions of nine rows are tried."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(9, 2))
    labels = np.array(list(product(range(3), repeat=8)))
    labels = np.column_stack([np.zeros(len(labels), int), labels])
    found = np.zeros(len(labels))
    for j in range(3):
        inside = (labels == j) * 1.0
        sums = inside @ x
        found += inside @ (x**2).sum(axis=1) - (sums**2).sum(axis=1) / np.maximum(inside.sum(axis=1), 1)
    fitted = fit(KMeans(n_clusters=3, n_init=20), Data.of(Task.CLUSTERING, x), Context.of(seed))
    assert fitted.curves["inertia"][-1] == pytest.approx(found.min())


def test_equal_rows_move_together():
    rng = np.random.default_rng(0)
    x, times = rng.normal(size=(30, 1)).round(1), rng.integers(1, 4, 30)
    x, place = np.unique(x, axis=0, return_inverse=True)
    times = np.bincount(place.ravel(), times)
    single, many = x[canonical_order(x)], np.repeat(x, times.astype(int), axis=0)
    many = many[canonical_order(many)]
    first, weights = x[:8], times[canonical_order(x)].astype(float)
    one = exchanged(single, weights, lloyd(single, weights, first, 100), 100)
    other = exchanged(many, np.ones(len(many)), lloyd(many, np.ones(len(many)), first, 100), 100)
    np.testing.assert_allclose(one.centres, other.centres)
