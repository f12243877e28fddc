"""Information by nearest rows: scikit-learn's estimates without noise, plain twins of the kernels, known densities."""

import numpy as np
import pytest
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_classif
from sklearn.feature_selection._mutual_info import _compute_mi_cc, _compute_mi_cd

from app.ml.numerics.dependence.compiled.neighbour_counts import class_counts
from app.ml.numerics.dependence.nearest_information import of_classes, of_numbers, standard


def pair(kind, n, rng):
    x = rng.standard_cauchy(n) if kind == "heavy" else rng.normal(size=n)
    return x, {"line": x + rng.normal(size=n), "heavy": x**2 + rng.normal(size=n), "apart": rng.normal(size=n),
               "narrow": x + 1e-9 * rng.normal(size=n)}[kind]  # fmt: skip


@pytest.mark.parametrize("kind", ["line", "heavy", "apart", "narrow"])
@pytest.mark.parametrize("n", [5, 30, 1500])
@pytest.mark.parametrize("k", [1, 3])
def test_numbers_are_as_scikit_learn_has_them(kind, n, k):
    x, y = pair(kind, n, np.random.default_rng(n))
    expected = _compute_mi_cc(x / x.std(), y / y.std(), k)
    assert of_numbers(x, y, k).value == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("n", [100, 400, 1500])
@pytest.mark.parametrize("k", [1, 3])
def test_classes_are_as_scikit_learn_has_them(n, k):
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    codes = np.digitize(x + rng.normal(size=n), [0, 1])
    assert of_classes(x, codes, k).value == pytest.approx(_compute_mi_cd(x / x.std(), codes, k), abs=1e-10)


def plain_of_numbers(x, y, k):
    """Formulas of the docstring, over all pairs."""
    rng = np.random.Generator(np.random.PCG64(0))
    apart = [np.abs(np.subtract.outer(column, column)) for column in (standard(x, rng), standard(y, rng))]
    both, terms = np.maximum(*apart), []
    for i in range(x.size):
        radius = np.sort(np.delete(both[i], i))[k - 1]
        near = [(one[i] < radius).sum() for one in apart]
        terms.append(digamma(x.size) + digamma(k) - digamma(near).sum())
    return max(0.0, np.mean(terms))


@pytest.mark.parametrize("seed", range(4))
def test_pairs_have_a_plain_twin_with_equal_values_too(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 5, 90).astype(float), rng.integers(0, 4, 90).astype(float)
    y[::2] += rng.normal(size=45)
    for one, other in ((x, y), (y, x), (x, np.floor(x / 2))):
        assert of_numbers(one, other, 3).value == pytest.approx(plain_of_numbers(one, other, 3), abs=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_the_kernel_of_classes_has_a_plain_twin(seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.integers(0, 12, 60) + np.where(rng.random(60) < 0.5, rng.random(60), 0.0))
    codes = np.unique(rng.integers(0, 4, 60), return_inverse=True)[1]
    start = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64)
    near = np.empty(60, np.int64)
    class_counts(x, np.argsort(codes, kind="stable").astype(np.int64), start, 3, near)
    for i in range(60):
        own, apart = np.abs(x[codes == codes[i]] - x[i]), np.abs(x - x[i])
        radius = np.sort(own)[min(3, own.size - 1)]
        assert near[i] == ((apart < radius) | (apart == 0)).sum()


def test_rounded_columns_keep_their_information():
    rng, found = np.random.default_rng(0), []
    for _ in range(100):
        x = rng.normal(size=150)
        y = 0.6 * x + 0.8 * rng.normal(size=150)
        found.append(of_numbers(x.round(1), y.round(1), 3).value)
    assert np.mean(found) == pytest.approx(-np.log(0.8), abs=0.03)


def test_the_information_of_normal_columns_is_known():
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    y = 0.6 * x + 0.8 * rng.normal(size=4000)
    found, true = of_numbers(x, y, 3), -np.log(0.8)
    assert found.lower < true < found.upper
    assert found.value == pytest.approx(true, abs=0.04)
    np.testing.assert_allclose(of_numbers(1e200 * x, 1e-200 * y, 3), found, rtol=1e-6)


def test_the_public_function_of_scikit_learn_adds_noise_that_changes_little():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    codes = (x[:, 0] + x[:, 1] ** 2 > 0.5).astype(int)
    found = [of_classes(column, codes, 3).value for column in x.T]
    np.testing.assert_allclose(found, mutual_info_classif(x, codes, random_state=0), atol=1e-6)


def test_degenerate_columns_have_no_value():
    x, y = np.arange(6.0), np.array([0, 1, 0, 1, 0, 1])
    assert np.isnan(of_numbers(np.ones(6), x, 3).value)
    assert np.isnan(of_numbers(x[:3], x[:3], 3).value)
    assert np.isnan(of_classes(np.ones(6), y, 3).value)
    assert np.isnan(of_classes(x, np.zeros(6, int), 3).value)
    assert np.isnan(of_classes(x, np.arange(6), 3).value)  # every row is alone in its class
    assert of_classes(x, np.array([0, 0, 0, 1, 1, 2]), 3).value > 0
