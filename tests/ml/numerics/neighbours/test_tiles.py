"""The lowest scores of tiles of rows are those of plain products."""

import numpy as np
import pytest

from app.ml.numerics.neighbours import distances
from app.ml.numerics.neighbours.compiled.tiles import STRIDE, TILE, fill, lowest_of_tile


@pytest.mark.parametrize("shape", [(1, 1, 1), (256, 20, 50), (255, 7, 2), (31, 4, 9), (100, 64, 3)])
def test_the_two_lowest_scores_of_a_tile(shape):
    size, d, k = shape
    rng = np.random.default_rng(size)
    x, origin, unit = rng.normal(size=(2 * size, d)), rng.normal(size=d), 0.5
    rows = rng.permutation(2 * size)[:size]
    centres = rng.normal(size=(k, d)).astype(np.float32)
    halves = ((centres**2).sum(axis=1) / 2).astype(np.float32)
    tile, scores, places = np.zeros(d * STRIDE, np.float32), np.zeros(2 * TILE, np.float32), np.zeros(TILE, np.int32)
    first, second = np.zeros((2, TILE), np.float32)
    fill(x, rows, origin, unit, tile)
    lowest_of_tile(tile, size, centres, halves, scores, places, first, second)
    moved = ((x[rows] - origin) * unit).astype(np.float32)
    np.testing.assert_array_equal(tile.reshape(d, STRIDE)[:, :size].T, moved)
    plain = halves - moved.astype(float) @ centres.T
    np.testing.assert_array_equal(places[:size], plain.argmin(axis=1))
    np.testing.assert_allclose(first[:size], plain.min(axis=1), atol=1e-5)
    others = np.sort(plain, axis=1)[:, 1] if k > 1 else np.inf
    np.testing.assert_allclose(second[:size], others, atol=1e-5)


@pytest.mark.parametrize("scale", [2.0**-600, 1.0, 2.0**300, 2.0**600])
def test_labels_are_the_same_by_tiles_and_by_products(monkeypatch, scale):
    rng = np.random.default_rng(0)
    x = scale * np.vstack([rng.normal(size=(3000, 5)), rng.integers(0, 3, (3000, 5))])
    centres = scale * np.vstack([rng.normal(size=(7, 5)), rng.integers(0, 3, (7, 5))])
    by_tiles = distances.nearest_labels(x, centres)
    monkeypatch.setattr(distances, "NARROW", 0)
    np.testing.assert_array_equal(by_tiles, distances.nearest_labels(x, centres))
    with np.errstate(over="ignore", under="ignore"):
        plain = ((x[:, None] / scale - centres / scale) ** 2).sum(axis=2)
    if 2.0**-300 < scale < 2.0**500:
        np.testing.assert_array_equal(by_tiles, plain.argmin(axis=1))
