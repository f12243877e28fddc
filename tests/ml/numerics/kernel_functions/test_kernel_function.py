"""Kernels: values, diagonals, and derivatives as differences have them."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as peers

from app.ml.numerics.kernel_functions.constant_kernel import Constant
from app.ml.numerics.kernel_functions.linear_kernel import Linear
from app.ml.numerics.kernel_functions.matern_kernel import Matern
from app.ml.numerics.kernel_functions.periodic_kernel import Periodic
from app.ml.numerics.kernel_functions.product_kernel import Product
from app.ml.numerics.kernel_functions.rbf_kernel import Rbf
from app.ml.numerics.kernel_functions.scaled_kernel import Scaled
from app.ml.numerics.kernel_functions.sum_kernel import Sum

ROWS = np.random.default_rng(5).normal(3, 2, (30, 4))
ONE, EACH = np.array([1.7]), np.array([1.5, 0.8, 2.0, 3.0])
LEARNED = {
    "rbf": Rbf(np.array([0.3])),
    "rbf of each": Rbf(np.array([0.1, 0.4, 0.2, 1.0])),
    **{f"matern {order}": Matern(order, ONE) for order in (1, 3, 5)},
    **{f"matern {order} of each": Matern(order, EACH) for order in (1, 3, 5)},
    "periodic": Periodic(ONE, np.array([2.3])),
    "periodic of each": Periodic(EACH, 2 * EACH),
    "constant": Constant(2.5),
    "scaled": Scaled(1.9, Matern(3, EACH)),
    "sum": Sum(Scaled(0.4, Linear()), Scaled(1.9, Rbf(np.array([0.3])))),
    "product": Product(Scaled(1.3, Rbf(np.array([0.02]))), Periodic(ONE, np.array([2.3]))),
}


@pytest.mark.parametrize("kernel", [Linear(), *LEARNED.values()], ids=["linear", *LEARNED])
def test_the_diagonal_is_that_of_the_matrix_which_has_no_negative_eigenvalue(kernel):
    matrix = kernel.matrix(ROWS, ROWS)
    np.testing.assert_allclose(np.diag(matrix), kernel.diagonal(ROWS), rtol=1e-12)
    assert np.linalg.eigvalsh(matrix)[0] > -1e-12 * np.trace(matrix)


def test_values_of_the_rbf_kernel_are_those_of_its_definition():
    gamma = np.array([0.1, 0.4, 0.2, 1.0])
    differences = ROWS[:, None] - ROWS[:7]
    np.testing.assert_allclose(Rbf(gamma).matrix(ROWS, ROWS[:7]), np.exp(-(differences**2) @ gamma), rtol=1e-9)


@pytest.mark.parametrize("order", [1, 3, 5])
def test_values_of_the_matern_kernel_are_those_of_scikit_learn(order):
    expected = peers.Matern(EACH, nu=order / 2)(ROWS, ROWS[:7])
    np.testing.assert_allclose(Matern(order, EACH).matrix(ROWS, ROWS[:7]), expected, rtol=1e-8)


def test_values_of_the_periodic_kernel_are_those_of_scikit_learn_in_each_column():
    expected = [peers.ExpSineSquared(s, 2 * s)(ROWS[:, [j]], ROWS[:7, [j]]) for j, s in enumerate(EACH)]
    np.testing.assert_allclose(Periodic(EACH, 2 * EACH).matrix(ROWS, ROWS[:7]), np.prod(expected, axis=0), rtol=1e-9)


@pytest.mark.parametrize("kernel", LEARNED.values(), ids=LEARNED)
def test_derivatives_are_those_of_differences(kernel):
    weights = np.random.default_rng(6).normal(size=(30, 30))
    weights += weights.T
    logs, step = kernel.logarithms(), 1e-6

    def total(values):
        return np.sum(weights * kernel.with_logarithms(values).matrix(ROWS, ROWS))

    steps = step * np.eye(len(logs))
    expected = [(total(logs + each) - total(logs - each)) / (2 * step) for each in steps]
    found = kernel.weighted_sum(ROWS, weights)
    np.testing.assert_allclose(found.gradient, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found.value, total(logs), rtol=1e-11)
