"""Cross-entropy: derivatives against differences, extremes against the limit."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import check_grad

from app.ml.numerics.linear_models.cross_entropy import CrossEntropy
from app.ml.numerics.linear_models.softmax import losses, of_two, one_of_two, probabilities


def problem(s):
    rng = np.random.default_rng(s)
    x = rng.normal(size=(30, 3)) * [1, 10, 0.1] + 5
    codes = rng.integers(0, max(s, 2), 30)
    targets = codes[:, None].astype(float) if s == 1 else np.eye(s)[codes]
    return CrossEntropy.of(x, targets, rng.uniform(0.5, 2, 30), 0.7), x, targets, rng.normal(size=4 * s)


@pytest.mark.parametrize("s", [1, 3])
def test_gradient(s):
    loss, _, _, point = problem(s)
    assert check_grad(lambda p: loss(p)[0], lambda p: loss(p)[1], point) < 1e-6


@pytest.mark.parametrize("s", [1, 3])
def test_hessian(s):
    """By differences of the gradient; along a shift of all scores it is free to be anything positive."""
    loss, _, _, point = problem(s)
    step = 1e-6 * np.eye(point.size)
    differences = np.array([(loss(point + e)[1] - loss(point - e)[1]) / 2e-6 for e in step])
    hessian = loss.hessian(point)
    shift = np.kron(np.eye(4), np.eye(s) - np.ones((s, s)) / s) if s > 1 else np.eye(4)
    np.testing.assert_allclose(shift @ hessian @ shift, shift @ differences @ shift, atol=1e-8)
    assert np.linalg.eigvalsh(hessian).min() > 0


@pytest.mark.parametrize("s", [1, 3])
def test_coordinates_of_the_data(s):
    """The value is that of the linear function it stands for, with the penalty on its coefficients."""
    loss, x, targets, point = problem(s)
    coef, intercept = loss.linear(point)
    expected = loss.weights @ losses(x @ coef + intercept, targets)
    total = 0.7 / (loss.penalty[0] * loss.unit[0] ** 2)  # Σw, from λ/Σw/unit²
    assert loss(point)[0] == pytest.approx(expected + 0.35 / total * (coef**2).sum(), rel=1e-12)


@pytest.mark.parametrize("s", [1, 3])
def test_starts_at_the_shares_of_the_classes(s):
    loss, x, targets, _ = problem(s)
    coef, intercept = loss.linear(loss.start)
    np.testing.assert_allclose(probabilities(x @ coef + intercept)[0], loss.weights @ targets)


def test_extreme_scores():
    scores = np.array([[800.0], [-800.0]])
    np.testing.assert_allclose(losses(scores, np.array([[1.0], [1.0]])), [0, 800])
    three = np.array([[800.0, 0, -800]])
    np.testing.assert_allclose(probabilities(three), [[1, 0, 0]])
    np.testing.assert_allclose(losses(three, np.array([[0.0, 0, 1]])), [1600])


@example([0.0, -0.0, np.inf, -np.inf, 709.0, -709.0, np.nextafter(709, 710), 1e-300, 36.7])
@given(st.lists(st.floats(-800, 800), min_size=1, max_size=20))
def test_one_row_of_two_classes_is_computed_as_among_others(odds):
    alone = np.concatenate([one_of_two(one) for one in odds])
    together = of_two(np.array(odds)[:, None])
    assert alone.tobytes() == together.tobytes()
    np.testing.assert_allclose(together[:, 1], probabilities(np.array(odds)[:, None])[:, 0], rtol=1e-15, atol=1e-307)
    assert np.isnan(one_of_two(np.nan)).all()


def large(columns=70, rows=30_001):
    """Rows enough for compiled loops; the same with columns one after the other in memory is left to numpy."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(rows, columns)) * np.logspace(-2, 2, columns) + np.logspace(-3, 1, columns)
    targets = (x @ (rng.normal(size=columns) / np.logspace(-2, 2, columns)) > 1)[:, None].astype(float)
    weights = rng.uniform(0.5, 2, rows) * (rng.random(rows) < 0.9)
    point = rng.normal(size=columns + 1)
    return x, targets, weights, point


@pytest.mark.parametrize(("columns", "rows"), [(70, 30_001), (1, 300_003), (8, 33_000)])
def test_compiled_loops_agree_with_numpy(columns, rows):
    x, targets, weights, point = large(columns, rows)
    quick, plain = (CrossEntropy.of(layout(x), targets, weights, 0.7) for layout in (np.array, np.asfortranarray))
    for scale in (0.1, 1.0, 300.0):
        (value, slopes), (expected, gradient) = quick(scale * point), plain(scale * point)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slopes, gradient, rtol=1e-11, atol=1e-13)
        exact = plain.hessian(scale * point)
        np.testing.assert_allclose(quick.hessian(scale * point), exact, rtol=1e-6, atol=1e-7 * exact.max())


def test_hessian_of_columns_nearly_the_same_has_all_its_digits():
    x, targets, weights, point = large()
    x[:, -1] = x[:, -2] + 1e-3 * x[:, -1]
    quick = CrossEntropy.of(x, targets, weights, 0.7)
    assert quick.hessian(point).tobytes() == quick.double_precision_hessian(point).tobytes()
    plain = CrossEntropy.of(np.asfortranarray(x), targets, weights, 0.7)
    np.testing.assert_allclose(quick.errors(point, 1.0), plain.errors(point, 1.0), rtol=1e-6, atol=1e-9)
