"""Share of a target that one column determines, against functions of it, noise of known size, and no dependence."""

import numpy as np
import pytest

from app.ml.numerics.dependence.determined_share import determined_share

N = 4_000
RNG = np.random.default_rng(1)
X = RNG.normal(size=N)


def share(x, y, categories=False, classes=False):
    return determined_share(x, y, np.random.default_rng(0), categories=categories, classes=classes)


@pytest.mark.parametrize("function", [np.exp, np.abs, lambda x: np.sin(3 * x), lambda x: (x > 0.3) * 1.0])
def test_a_function_is_determined_whichever_it_is(function):
    assert share(X, function(X)) > 0.99


@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0])
def test_noise_is_what_is_not_determined(noise):
    assert share(X, X + noise * RNG.normal(size=N)) == pytest.approx(1 / (1 + noise**2), abs=0.03)


def test_independent_columns_determine_nothing():
    classes, words = RNG.integers(0, 4, N).astype(float), RNG.integers(0, 30, N).astype(float)
    assert share(X, RNG.normal(size=N)) == pytest.approx(0, abs=0.05)
    assert share(X, classes, classes=True) == pytest.approx(0, abs=0.05)
    assert share(words, classes, categories=True, classes=True) == pytest.approx(0, abs=0.05)
    assert share(words, X, categories=True) == pytest.approx(0, abs=0.05)


def test_flipped_classes_are_what_is_not_determined():
    classes = RNG.integers(0, 2, N).astype(float)
    flipped = np.where(RNG.random(N) < 0.02, 1 - classes, classes)
    assert share(flipped, classes, categories=True, classes=True) == pytest.approx(1 - 4 * 0.02 * 0.98, abs=0.02)
    assert share(flipped + 0.5 * RNG.random(N), classes, classes=True) == pytest.approx(1 - 4 * 0.02 * 0.98, abs=0.02)


def test_categories_of_one_row_each_determine_nothing_but_numbers_may():
    y = np.arange(100.0)
    assert share(y, y, categories=True) == 0
    assert share(y, y) > 0.99


def test_missing_values_are_a_value():
    classes = (X > 1).astype(float)
    assert share(np.where(classes == 1, RNG.normal(size=N), np.nan), classes, classes=True) == pytest.approx(
        1, abs=1e-9
    )


def test_a_constant_target_has_no_share():
    assert np.isnan(share(X, np.ones(N)))
    assert np.isnan(share(np.array([1.0, np.nan]), np.array([0.0, 1.0])))
