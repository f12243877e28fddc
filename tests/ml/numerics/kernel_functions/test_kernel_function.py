"""Kernels: values, diagonals, and derivatives as differences have them."""

import numpy as np
import pytest

from app.ml.numerics.kernel_functions.linear_kernel import Linear
from app.ml.numerics.kernel_functions.rbf_kernel import Rbf

ROWS = np.random.default_rng(5).normal(3, 2, (30, 4))


@pytest.mark.parametrize("kernel", [Linear(), Rbf(np.array([0.3])), Rbf(np.array([0.1, 0.4, 0.2, 1.0]))])
def test_the_diagonal_is_that_of_the_matrix_which_has_no_negative_eigenvalue(kernel):
    matrix = kernel.matrix(ROWS, ROWS)
    np.testing.assert_allclose(np.diag(matrix), kernel.diagonal(ROWS), rtol=1e-12)
    assert np.linalg.eigvalsh(matrix)[0] > -1e-12 * np.trace(matrix)


def test_values_of_the_rbf_kernel_are_those_of_its_definition():
    gamma = np.array([0.1, 0.4, 0.2, 1.0])
    differences = ROWS[:, None] - ROWS[:7]
    np.testing.assert_allclose(Rbf(gamma).matrix(ROWS, ROWS[:7]), np.exp(-(differences**2) @ gamma), rtol=1e-9)


@pytest.mark.parametrize("kernel", [Rbf(np.array([0.3])), Rbf(np.array([0.1, 0.4, 0.2, 1.0]))])
def test_derivatives_are_those_of_differences(kernel):
    weights = np.random.default_rng(6).normal(size=(30, 30))
    weights += weights.T
    logs, step = kernel.logarithms(), 1e-6

    def total(values):
        return np.sum(weights * kernel.with_logarithms(values).matrix(ROWS, ROWS))

    steps = step * np.eye(len(logs))
    expected = [(total(logs + each) - total(logs - each)) / (2 * step) for each in steps]
    np.testing.assert_allclose(kernel.weighted_gradient(ROWS, weights), expected, rtol=1e-6, atol=1e-8)
