"""Leading principal components: those of scikit-learn, for many rows and for many columns, and degenerate rows."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from app.ml.numerics.linear_algebra.leading_components import leading_components


@pytest.mark.parametrize("shape", [(80, 5), (12, 40), (7, 7)])
@pytest.mark.parametrize("unit", [1.0, 1e-150, 1e150])
def test_they_are_those_of_scikit_learn(shape, unit):
    rng = np.random.default_rng(3)
    x = rng.normal(size=shape) * np.linspace(3, 1, shape[1]) + 5
    found, expected = leading_components(x * unit, 2), PCA(2, svd_solver="full").fit(x)
    assert found.shares == pytest.approx(expected.explained_variance_ratio_, rel=1e-9)
    directions = expected.components_
    signs = np.sign(directions[[0, 1], np.abs(directions).argmax(axis=1)])
    assert found.coordinates / unit == pytest.approx(expected.transform(x) * signs, abs=1e-9)


def test_rows_that_do_not_vary_lie_at_the_origin():
    found = leading_components(np.full((5, 3), 1e300), 2)
    assert found.coordinates.tolist() == np.zeros((5, 2)).tolist()
    assert found.shares.tolist() == [0.0, 0.0]
    assert leading_components(np.array([[4.0, 2.0]]), 2).coordinates.shape == (1, 1)


def test_a_line_of_rows_has_one_component():
    line = np.arange(6.0)[:, None] * np.array([[1.0, -2.0, 2.0]])
    found = leading_components(line, 2)
    assert found.shares == pytest.approx([1.0, 0.0], abs=1e-12)
    assert np.abs(found.coordinates[:, 0]) == pytest.approx(3 * np.abs(np.arange(6) - 2.5))
