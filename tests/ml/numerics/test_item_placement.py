"""Places of further items: their kernels against sums written out, and their ends against a general minimiser."""

import numpy as np
import pytest
from scipy import optimize

from app.ml.numerics.maps.compiled.item_pulls import item_losses, item_slopes
from app.ml.numerics.maps.item_placement import place_items

RNG = np.random.default_rng(0)
KNOWN = RNG.normal(size=(40, 3))
WEIGHTS = RNG.uniform(0.5, 1, 40)


def loss(place, wanted, weights=WEIGHTS):
    known = ~np.isnan(wanted)
    apart = np.linalg.norm(place - KNOWN[known], axis=1)
    return float(weights[known] @ np.square(wanted[known] - apart))


def dissimilarities(rows):
    places = RNG.normal(size=(rows, 3))
    return np.linalg.norm(places[:, None] - KNOWN, axis=2) * RNG.uniform(0.6, 1.4, (rows, 40))


def test_derivatives_are_those_of_the_loss():
    wanted, places, row = dissimilarities(4), RNG.normal(size=(2, 3)), np.array([3, 1])
    parts, known = np.broadcast_to(WEIGHTS, (4, 40)).copy(), np.ascontiguousarray(KNOWN.T)
    losses, slopes, curvatures = np.empty(2), np.empty((2, 3)), np.empty((2, 3, 3))
    item_losses(places, row, wanted, parts, known, np.empty(40), losses)
    item_slopes(places, row, wanted, parts, known, np.empty((2, 40)), slopes, curvatures)
    for item, which in enumerate(row):
        assert losses[item] == pytest.approx(loss(places[item], wanted[which]), rel=1e-13)
        slope = optimize.approx_fprime(places[item], loss, 1e-7, wanted[which]) / 2
        np.testing.assert_allclose(slopes[item], slope, rtol=1e-4, atol=1e-4)
        for axis in range(3):
            step = 1e-5 * np.eye(3)[axis]
            ends = [optimize.approx_fprime(places[item] + s, loss, 1e-7, wanted[which]) for s in (step, -step)]
            np.testing.assert_allclose(curvatures[item, axis], (ends[0] - ends[1]) / 4e-5, rtol=0.02, atol=0.5)


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_no_minimiser_ends_lower_from_the_place(missing):
    wanted = dissimilarities(30)
    wanted[RNG.random(wanted.shape) < missing] = np.nan
    for place, row in zip(place_items(wanted, KNOWN, WEIGHTS), wanted, strict=True):
        weights = WEIGHTS / WEIGHTS.max()
        end = optimize.minimize(loss, place, (row, weights), tol=1e-12).fun
        assert loss(place, row, weights) <= end * (1 + 1e-9)


def test_an_item_has_the_same_bits_in_any_company():
    wanted = dissimilarities(20)
    together = place_items(wanted, KNOWN, WEIGHTS)
    alone = np.concatenate([place_items(wanted[[row]], KNOWN, WEIGHTS) for row in range(20)])
    np.testing.assert_array_equal(together, alone)
