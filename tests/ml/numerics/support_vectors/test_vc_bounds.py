"""Bounds of Vapnik and Chervonenkis: published numbers and properties."""

import math
from itertools import product

import numpy as np
import pytest

from app.ml.numerics.support_vectors.vc_bounds import (
    confidence_term,
    growth_term,
    log_growth,
    margin_dimension,
    sauer,
    simple_term,
    structural_minimum,
)


@pytest.mark.parametrize(("rows", "h", "term"), [(1000, 10, 0.259548), (10000, 10, 0.095074), (1000, 3, 0.163978)])
def test_the_confidence_term(rows, h, term):
    """S3, LION 10.1."""
    assert confidence_term(rows, h, 0.05) == pytest.approx(term, abs=5e-7)
    printed = math.sqrt((h * (math.log(2 * rows / h) + 1) - math.log(0.05 / 4)) / rows)
    assert confidence_term(rows, h, 0.05) == pytest.approx(printed, rel=1e-14)


def test_the_term_by_the_growth_function():
    """R4: thresholds label 2n rows in 2n + 1 ways."""
    assert growth_term(math.log(2001), 1000, 0.05) == pytest.approx(0.109469, abs=5e-7)


def test_the_term_grows_with_the_dimension_and_falls_with_rows():
    terms = [confidence_term(1000, h, 0.05) for h in range(3000)]
    assert terms == sorted(terms)
    assert confidence_term(2000, 10, 0.05) < confidence_term(1000, 10, 0.05) < confidence_term(1000, 10, 1e-6)
    assert confidence_term(1000, math.inf, 0.05) == confidence_term(1000, 2000, 0.05) > 1


def test_the_growth_bound_is_above_the_sum_of_sauer():
    for dimension, points in product(range(12), range(1, 40)):
        assert math.exp(log_growth(dimension, points)) >= sauer(dimension, points) * (1 - 1e-12)
        if dimension >= points:
            assert sauer(dimension, points) == 2**points


@pytest.mark.parametrize(("dimensions", "h"), [(100, 10), (5, 6), (math.inf, 10)])
def test_planes_with_a_margin(dimensions, h):
    """S5: R = 2 and A = 1.5."""
    assert margin_dimension(2.0, 1.5, dimensions) == h


def test_weights_of_any_length_have_a_dimension():
    assert margin_dimension(3.0, 1e200, math.inf) == math.inf
    assert margin_dimension(3.0, 1e200, 7) == 8


def test_structural_minimum_is_that_of_the_printed_sum():
    """S4: nested polynomials of noisy rows; the training error falls with the degree, the sum does not."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 60)
    y = np.sin(3 * x) + rng.normal(0, 0.2, x.size)
    risks = [float(np.mean((np.polyval(np.polyfit(x, y, d), x) - y) ** 2)) for d in range(11)]
    chosen = structural_minimum(risks, [simple_term(x.size, d + 1) for d in range(11)])
    assert np.all(np.diff(risks) <= 1e-12)
    assert chosen == int(np.argmin(np.array(risks) + np.sqrt(np.arange(1, 12) / x.size)))
    assert 0 < chosen < 10
