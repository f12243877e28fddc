"""Numbers of the books that no test of a module holds."""

import numpy as np
import pytest
from scipy import optimize, special
from statsmodels.stats.diagnostic import normal_ad

from app.ml.algorithms import linear
from app.ml.contract import Context, Data, Task
from app.ml.numerics.normality import anderson_darling


@pytest.mark.parametrize(("adjusted", "alpha"), [(0.631, 0.10), (0.752, 0.05), (1.035, 0.01)])
def test_critical_values_of_anderson_and_darling(adjusted, alpha):
    """B5.10: of A²(1 + 0.75/n + 2.25/n²). Normal quantiles, their tails stretched until they are there."""
    n = 50
    z = special.ndtri((np.arange(n) + 0.5) / n)

    def beyond(tails):
        return normal_ad(np.sinh(tails * z))[0] * (1 + 0.75 / n + 2.25 / n**2) - adjusted

    found = anderson_darling(np.sinh(optimize.brentq(beyond, 0.1, 3) * z))
    assert found.p == pytest.approx(alpha, rel=0.02)


@pytest.mark.parametrize(("confidence", "errors"), [(0.6826895, 1), (0.9544997, 2), (0.9930234, 2.697959)])
def test_shares_of_a_normal_law(confidence, errors):
    """B5.13, B5.16: a mean of 9 rows of noise 3, whose standard error is 1."""
    params, data = linear.Linear(sigma=3), Data.of(Task.REGRESSION, np.zeros((9, 1)), np.arange(9.0))
    state = linear.fit(params, data, Context.of(0)).state
    bounds = linear.interval(params, state, np.zeros((1, 1)), confidence)
    np.testing.assert_allclose(bounds, [[4 - errors, 4 + errors]], atol=1e-5)
