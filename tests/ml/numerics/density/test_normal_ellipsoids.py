"""Ellipsoids of normal densities: their surfaces by Mahalanobis distance, their axes, and the way between two."""

import numpy as np
import pytest
from scipy import stats

from app.ml.numerics.density.normal_ellipsoids import Normals, of_components, of_mixture, radius_of

RNG = np.random.default_rng(0)
FACTORS = np.stack([np.linalg.cholesky(stats.wishart(6, np.eye(4)).rvs(random_state=seed)) for seed in range(3)])
NORMALS = Normals(np.array([0.5, 0.3, 0.2]), RNG.normal(size=(3, 4)), FACTORS)
COLUMNS, SCALE = np.array([2, 0, 3]), np.array([1.0, 10.0, 0.1])
SPHERE = np.linalg.qr(RNG.normal(size=(3, 3)))[0]


@pytest.mark.parametrize("radius", [1.0, 2.5])
def test_points_of_the_surface_have_the_same_mahalanobis_distance(radius):
    found = of_components(NORMALS, COLUMNS, SCALE, radius)
    np.testing.assert_allclose(found.centres, NORMALS.means[:, COLUMNS] * SCALE)
    for block, factor in zip(found.blocks, FACTORS, strict=True):
        covariance = (factor @ factor.T)[np.ix_(COLUMNS, COLUMNS)] * np.outer(SCALE, SCALE)
        gaps = SPHERE @ block
        squares = np.einsum("ni,ij,nj->n", gaps, np.linalg.inv(covariance), gaps)
        np.testing.assert_allclose(squares, radius**2)


def test_half_axes_are_roots_of_eigenvalues():
    found = of_components(NORMALS, COLUMNS, SCALE, 1.0)
    lengths = np.linalg.norm(found.axes, axis=2)
    expected = np.sqrt(np.linalg.eigvalsh(found.blocks @ found.blocks))[:, ::-1]
    np.testing.assert_allclose(lengths, expected)
    assert (np.diff(lengths) < 0).all()


def test_the_whole_has_the_moments_of_rows_that_are_drawn():
    whole = of_mixture(NORMALS, COLUMNS, SCALE, 1.0)
    sizes = np.repeat(np.arange(3), (NORMALS.shares * 200_000).astype(int))
    rows = NORMALS.means[sizes] + np.einsum("nij,nj->ni", FACTORS[sizes], RNG.normal(size=(sizes.size, 4)))
    picked = rows[:, COLUMNS] * SCALE
    np.testing.assert_allclose(whole.centres[0], picked.mean(axis=0), atol=0.01 * SCALE.max())
    np.testing.assert_allclose(whole.blocks[0] @ whole.blocks[0], np.cov(picked.T), rtol=0.05, atol=0.05)


def test_a_split_begins_with_the_whole_and_ends_with_the_components():
    parts, whole = (find(NORMALS, COLUMNS, SCALE, 1.0) for find in (of_components, of_mixture))
    for one, other in zip(whole.between(parts, 1.0), parts, strict=True):
        np.testing.assert_allclose(one, other)
    begin, middle = whole.between(parts, 0.0), whole.between(parts, 0.5)
    np.testing.assert_allclose(begin.blocks, np.repeat(whole.blocks, 3, axis=0))
    np.testing.assert_allclose(middle.centres, (whole.centres + parts.centres) / 2)


def test_diagonal_covariances_have_ellipsoids_along_the_columns():
    flat = Normals(np.ones(1), np.zeros((1, 3)), np.array([[[1.0, 2.0, 3.0]]]))
    found = of_components(flat, np.array([0, 2]), np.ones(2), 1.0)
    np.testing.assert_allclose(found.blocks[0], np.diag([1, 3]), atol=1e-12)
    np.testing.assert_allclose(np.abs(found.axes[0]), [[0, 3], [1, 0]], atol=1e-12)


def test_the_radius_holds_the_probability():
    assert radius_of(None, 2) == 1
    for p in (1, 2, 3):
        assert radius_of(0.9, p) ** 2 == pytest.approx(stats.chi2(p).ppf(0.9), rel=1e-9)


def test_columns_near_the_largest_number_have_ellipsoids():
    """Squares of their units are beyond it."""
    normals = Normals(np.array([0.5, 0.5]), np.array([[0.5, 0.2], [-0.5, 0.1]]), np.array([[[0.3, 0.2]], [[0.1, 0.4]]]))
    columns, scale = np.arange(2), np.array([1e300, 3e300])
    for found in (of_components, of_mixture):
        large, plain = found(normals, columns, scale, 1.0), found(normals, columns, scale / 1e300, 1.0)
        assert large.blocks / 1e300 == pytest.approx(plain.blocks)
        assert large.axes / 1e300 == pytest.approx(plain.axes)
