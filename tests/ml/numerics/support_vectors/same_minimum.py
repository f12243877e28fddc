"""The minimum of a quadratic programme, found in two ways."""

import numpy as np
import pytest

from app.ml.numerics.support_vectors.smo import balanced, edges_of


def same_minimum(found, other, problem, tol):
    """A solution has converged, keeps its bounds, closes its gap, and is the other one, to 1e-6 of the objective."""
    assert found.converged
    assert found.objective == pytest.approx(other.objective, rel=1e-6)
    np.testing.assert_allclose(found.residual, other.residual, atol=1e-3)
    assert found.intercept == pytest.approx(other.intercept, abs=1e-3)
    assert (found.coef >= problem.lower).all()
    assert (found.coef <= problem.upper).all()
    assert balanced(problem, found, tol)
    best, lowest = edges_of(problem, found.coef, found.residual)
    assert best - lowest <= tol
    assert 0 <= found.gap <= tol * abs(found.objective)
