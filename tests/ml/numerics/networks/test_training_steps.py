"""Compiled steps of a training against the same in numpy."""

import numpy as np

from app.ml.numerics.networks.compiled.training_steps import adam_step, add_and_rectify, momentum_step

RNG = np.random.default_rng(0)


def numbers(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def test_sums_are_rectified():
    sums, bias = numbers(5, 7), numbers(7)
    expected = np.maximum(sums + bias, 0)
    add_and_rectify(sums, bias)
    np.testing.assert_array_equal(sums, expected)


def test_steps_of_adam():
    point, gradient, penalty = numbers(40), numbers(40), np.full(40, 0.1, np.float32)
    first, second = numbers(40), numbers(40) ** 2
    slope = gradient + penalty * point
    expected_first, expected_second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
    expected = point - 0.01 * expected_first / (np.sqrt(expected_second) + 1e-8)
    adam_step(point, gradient, penalty, first, second, 0.01, 0.9, 0.999, 0.001, 1e-8)
    for found, wanted in ((point, expected), (first, expected_first), (second, expected_second)):
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-7)


def test_steps_with_momentum():
    point, gradient, penalty, velocity = numbers(40), numbers(40), np.full(40, 0.1, np.float32), numbers(40)
    expected = 0.9 * velocity - 0.01 * (gradient + penalty * point)
    moved = point + expected
    momentum_step(point, gradient, penalty, velocity, 0.01, 0.9)
    np.testing.assert_allclose(velocity, expected, rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(point, moved, rtol=2e-6, atol=1e-7)
