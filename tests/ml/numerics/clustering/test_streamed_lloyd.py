"""Lloyd's algorithm in blocks ends where that of all rows ends."""

import numpy as np
import pytest

from app.ml.contract.algorithm import Data, StreamedRows, Task, silent
from app.ml.contract.streamed_rows import Block
from app.ml.numerics.clustering.distortion import distortion
from app.ml.numerics.clustering.lloyd import lloyd
from app.ml.numerics.clustering.streamed_lloyd import streamed_distortion, streamed_lloyd
from app.ml.numerics.neighbours.distances import nearest_labels


def streamed(x, weights, size):
    parts = [Block(x[at : at + size], weights[at : at + size]) for at in range(0, len(x), size)]
    return StreamedRows(lambda: iter(parts), len(x), Data.of(Task.CLUSTERING, x[:size]))


def rows(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) + rng.integers(0, 4, (n, 1)) * 3
    return x, rng.uniform(0.5, 2, n)


@pytest.mark.parametrize("size", [1, 700, 5000])
def test_the_centres_are_those_of_all_rows_at_once(size):
    x, weights = rows(500 if size == 1 else 3000)
    whole = lloyd(x, weights, x[:5], 300)
    run = streamed_lloyd(streamed(x, weights, size), x[:5], 300, silent)
    assert run.converged
    np.testing.assert_allclose(run.centres, whole.centres, rtol=0, atol=1e-12)
    assert run.inertia[-1] == pytest.approx(whole.inertia[-1], rel=1e-12)
    assert (np.diff(run.inertia) < 0).all()


def test_moves_end_at_their_maximum():
    x, weights = rows()
    whole = lloyd(x, weights, x[:5], 2)
    run = streamed_lloyd(streamed(x, weights, 700), x[:5], 2, silent)
    assert not run.converged
    assert len(run.inertia) == 3
    np.testing.assert_allclose(run.centres, whole.centres, rtol=0, atol=1e-12)


def test_centres_without_rows_take_over_the_farthest_rows():
    x, weights = rows()
    first = np.vstack([x[:2], [[1e3, 1e3, 1e3], [-1e3, 0, 0]]])
    whole = lloyd(x, weights, first, 300)
    run = streamed_lloyd(streamed(x, weights, 700), first, 300, silent)
    np.testing.assert_allclose(run.centres, whole.centres, rtol=0, atol=1e-12)
    assert run.inertia[-1] == pytest.approx(whole.inertia[-1], rel=1e-12)


def test_there_are_no_more_centres_than_distinct_rows():
    x = np.repeat([[0.0, 1.0], [2.0, 3.0]], 50, axis=0)
    first = np.array([[0.0, 0.0], [9.0, 9.0], [8.0, 8.0]])
    run = streamed_lloyd(streamed(x, np.ones(100), 30), first, 300, silent)
    np.testing.assert_array_equal(np.sort(run.centres, axis=0), [[0, 1], [2, 3]])
    assert (run.converged, run.inertia[-1]) == (True, 0.0)


def test_distortions_are_those_of_all_rows_but_for_diameters():
    x, weights = rows()
    centres = np.vstack([x[:4], [[99.0, 99.0, 99.0]]])
    one = distortion(x, weights, nearest_labels(x, centres), centres)
    other = streamed_distortion(streamed(x, weights, 700), centres)
    np.testing.assert_array_equal(other.sizes, one.sizes)
    for mine, theirs in zip(other[1:4], one[1:4], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    np.testing.assert_array_equal(np.isnan(other.diameters), one.sizes > 1)
