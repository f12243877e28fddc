"""Bounds of Vapnik and Chervonenkis: published numbers and properties."""

import math

import pytest

from app.ml.numerics.support_vectors.vc_bounds import confidence_term, margin_dimension


@pytest.mark.parametrize(("rows", "h", "term"), [(1000, 10, 0.259548), (10000, 10, 0.095074), (1000, 3, 0.163978)])
def test_the_confidence_term(rows, h, term):
    """S3, LION 10.1."""
    assert confidence_term(rows, h, 0.05) == pytest.approx(term, abs=5e-7)


def test_the_term_grows_with_the_dimension_and_falls_with_rows():
    terms = [confidence_term(1000, h, 0.05) for h in (1, 3, 10, 100, 999)]
    assert terms == sorted(terms)
    assert confidence_term(2000, 10, 0.05) < confidence_term(1000, 10, 0.05) < confidence_term(1000, 10, 1e-6)
    assert math.isfinite(confidence_term(10, math.inf, 0.05))


@pytest.mark.parametrize(("dimensions", "h"), [(100, 10), (5, 6), (math.inf, 10)])
def test_planes_with_a_margin(dimensions, h):
    """S5: R = 2 and A = 1.5."""
    assert margin_dimension(2.0, 1.5, dimensions) == h
