"""Covariances and principal directions of blocks are those of all rows."""

import numpy as np
import pytest

from app.ml.contract.algorithm import Data, StreamedRows, Task
from app.ml.contract.streamed_rows import Block
from app.ml.numerics.linear_algebra.covariance import covariance
from app.ml.numerics.linear_algebra.principal_directions import principal, streamed_principal
from app.ml.numerics.linear_algebra.streamed_covariance import streamed_covariance


def streamed(x, weights, size):
    parts = [Block(x[at : at + size], weights[at : at + size]) for at in range(0, len(x), size)]
    return StreamedRows(lambda: iter(parts), len(x), Data.of(Task.PROJECTION, x[:size]))


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 5)) @ rng.normal(size=(5, 5)) + [0, 1e6, -3, 40, 0]
    return x, rng.uniform(0.5, 2, 2000)


@pytest.mark.parametrize("size", [1, 333, 2000])
def test_blocks_merge_into_the_whole(table, size):
    whole, merged = covariance(*table), streamed_covariance(streamed(*table, size))
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-13)
    np.testing.assert_allclose(merged.matrix, whole.matrix, rtol=1e-9, atol=1e-9)
    expected = np.cov(table[0].T, aweights=table[1], ddof=0)
    np.testing.assert_allclose(merged.matrix, expected, rtol=1e-9, atol=1e-9)


def test_constant_columns_have_no_variance(table):
    x, weights = table
    x[:, 2], x[:, 3] = 0.1, 0.1 * (1 + 2e-16 * (np.arange(len(x)) % 2))
    found = streamed_covariance(streamed(x, weights, 333)).matrix
    assert not found[2:4].any()
    assert not found[:, 2:4].any()
    x[7, 2] = 0.1 + 1e-9
    assert streamed_covariance(streamed(x, weights, 333)).matrix[2, 2] > 0


def test_directions_are_those_of_the_whole(table):
    x, weights = table
    x[:, 1] -= 1e6
    whole, found = principal(x, weights), streamed_principal(streamed(x, weights, 333))
    for mine, theirs in zip(found, whole, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-10)


def test_small_variances_keep_their_digits(table):
    """Of columns that nearly depend on each other: by the covariance matrix the last variance would be noise."""
    x, weights = table
    x[:, 1] -= 1e6
    x[:, 4] = x[:, 0] + 1e-7 * np.random.default_rng(1).normal(size=len(x))
    whole, found = principal(x, weights), streamed_principal(streamed(x, weights, 333))
    np.testing.assert_allclose(found.values, whole.values, rtol=1e-6)
    np.testing.assert_allclose(found.directions, whole.directions, rtol=0, atol=1e-7)
    x[:, 4] = x[:, 0]
    assert streamed_principal(streamed(x, weights, 333)).values[-1] == 0
