"""Few eigenpairs and few principal directions against decompositions of the whole."""

import numpy as np
import pytest

from app.ml.algorithms import pca
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.linear_algebra import block_krylov
from app.ml.numerics.linear_algebra import few_directions as few
from app.ml.numerics.linear_algebra.block_krylov import is_worth_it, largest_eigenpairs
from app.ml.numerics.linear_algebra.few_directions import few_directions
from app.ml.numerics.linear_algebra.principal_directions import principal

SIZE = 600
ROTATION, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(SIZE, SIZE)))


def with_eigenvalues(values):
    return (ROTATION * values) @ ROTATION.T


@pytest.mark.parametrize(
    "values",
    [
        np.append(np.arange(40.0, 0, -1), np.full(SIZE - 40, 0.1)),
        np.append(np.full(15, 7.0), np.linspace(1, 0, SIZE - 15)),
        np.append([9.0, 9.0, 9.0, 4.0], np.full(SIZE - 4, 2.0)),
        np.append([3.0, 2.0], np.zeros(SIZE - 2)),
        np.ones(SIZE),
        np.zeros(SIZE),
        1 / np.arange(1.0, SIZE + 1),
    ],
    ids=["apart", "one value many times", "equal values at the border", "low rank", "unit", "zero", "decay"],
)
def test_eigenpairs_are_those_of_the_whole_matrix(values):
    matrix = with_eigenvalues(values)
    pairs = largest_eigenpairs(lambda block: block @ matrix, SIZE, 8)
    assert pairs is not None
    np.testing.assert_allclose(pairs.values, values[:8], atol=1e-13 * values[0])
    np.testing.assert_allclose(pairs.vectors @ pairs.vectors.T, np.eye(8), atol=1e-13)
    residual = pairs.vectors @ matrix - pairs.values[:, None] * pairs.vectors
    assert np.abs(residual).max() <= 2e-12 * values[0]


@pytest.mark.parametrize("blocks_in_space", [3, 6])
def test_a_space_that_is_full_begins_again(blocks_in_space, monkeypatch):
    monkeypatch.setattr(block_krylov, "BLOCKS_IN_SPACE", blocks_in_space)
    monkeypatch.setattr(block_krylov, "MIN_SPACE", 0)
    monkeypatch.setattr(block_krylov, "MIN_STEPS", 100)
    values, used = np.geomspace(1, 1e-3, SIZE), 0
    matrix = with_eigenvalues(values)

    def multiply(block):
        nonlocal used
        used += len(block)
        return block @ matrix

    pairs = largest_eigenpairs(multiply, SIZE, 1)
    assert pairs is not None
    assert used > blocks_in_space * block_krylov.block_of(1)
    np.testing.assert_allclose(pairs.values, values[:1], rtol=1e-13)


def test_an_iteration_that_would_take_longer_than_the_whole_gives_up():
    rows = np.random.default_rng(0).normal(size=(330, 330))
    assert is_worth_it(330, 1)
    assert largest_eigenpairs(lambda block: block @ (rows.T @ rows), 330, 1) is None


@pytest.mark.parametrize("shape", [(420, 500), (500, 420), (60, 900), (1300, 420)], ids=str)
@pytest.mark.parametrize("steps", [0, 3, 1000], ids=["formed at once", "formed later", "never formed"])
def test_few_directions_are_those_of_the_singular_values(shape, steps, monkeypatch):
    monkeypatch.setattr(few, "steps_before_forming", lambda *_: steps)
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(shape[0], 12)) @ rng.normal(size=(12, shape[1])) + 0.1 * rng.normal(size=shape)
    pairs = few_directions(rows, 5)
    _, values, directions = np.linalg.svd(rows, full_matrices=False)
    np.testing.assert_allclose(pairs.values, values[:5] ** 2, rtol=1e-12)
    np.testing.assert_allclose(np.abs((pairs.vectors * directions[:5]).sum(axis=1)), 1, rtol=1e-12)


def test_values_that_products_lose_are_left_to_the_singular_values():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(600, 3)) @ rng.normal(size=(3, 500))
    assert few_directions(rows, 3) is not None
    assert few_directions(rows, 4) is None


@pytest.mark.parametrize("shape", [(430, 450), (2000, 430), (40, 700)], ids=str)
@pytest.mark.parametrize("far", [0.0, 1e5])
def test_few_components_are_those_of_all(shape, far):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(shape[0], 10)) @ rng.normal(size=(10, shape[1])) + rng.normal(size=shape) + far
    weights = rng.uniform(0.5, 2, len(x))
    two, whole = principal(x, weights, lambda _: 2, 2), principal(x, weights)
    np.testing.assert_allclose(two.values[:2], whole.values[:2], rtol=1e-10)
    np.testing.assert_allclose(two.directions[:2], whole.directions[:2], atol=1e-9)
    assert two.total == pytest.approx(whole.values.sum(), rel=1e-10)
    assert len(two.values) == 2


def test_a_fit_repeats_to_the_byte():
    x = np.random.default_rng(4).normal(size=(450, 450))
    fits = [pca.fit(pca.PCA(), Data.of(Task.PROJECTION, x), Context.of(seed)).state for seed in (0, 1)]
    assert all(one.tobytes() == other.tobytes() for one, other in zip(fits[0][:3], fits[1][:3], strict=True))
