"""Numbers of the books that no test of a module holds."""

import numpy as np
import pytest
from scipy import optimize, special
from statsmodels.stats.diagnostic import normal_ad

from app.ml.algorithms import decision_tree, linear, ridge
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.statistics.normality import anderson_darling


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
    params, data = (
        linear.Linear(sigma=3, interval_of="mean"),
        Data.of(Task.REGRESSION, np.zeros((9, 1)), np.arange(9.0)),
    )
    state = linear.fit(params, data, Context.of(0)).state
    bounds = linear.interval(params, state, np.zeros((1, 1)), confidence)
    np.testing.assert_allclose(bounds, [[4 - errors, 4 + errors]], atol=1e-5)


@pytest.mark.parametrize("turned", [False, True])
def test_the_gain_of_a_split_is_its_information_about_the_class(turned):
    """B7.12, erratum 9: in print the second term has one minus sign too many, and so is added."""
    table = np.array([[30.0, 10], [20, 40]])
    table = table.T if turned else table
    requested, result = np.divmod(np.arange(4), 2)
    data = Data.of(Task.CLASSIFICATION, requested[:, None] * 1.0, result, weights=table.ravel())
    params = decision_tree.DecisionTree(criterion="entropy", min_samples_leaf=1)
    state = decision_tree.fit(params, data, Context.of(0)).state
    assert state.gain[0] / 100 == pytest.approx(0.1245112, abs=5e-8)
    known = state.weight[1:] @ state.impurity[1:] / 100
    assert state.impurity[0] - known == pytest.approx(0.1245112, abs=5e-8)
    assert state.impurity[0] + known > 1.8, "more than a yes or no can tell"


def determined(x, y):
    """R² of a linear fit."""
    params, data = linear.Linear(), Data.of(Task.REGRESSION, x, y)
    rest = y - linear.predict(params, linear.fit(params, data, Context.of(0)).state, x)
    return 1 - rest @ rest / ((y - y.mean()) @ (y - y.mean()))


def test_the_correlation_ratio_is_what_groups_determine():
    """B7.9, erratum 8: η² is R² of a fit on groups, and of two groups ρ²; neither is the slope: that has a unit."""
    groups = [45, 70, 29, 15, 21], [40, 20, 30, 42], [65, 95, 80, 70, 85, 73]
    members = np.repeat(np.eye(3)[:, 1:], [len(group) for group in groups], axis=0)
    eta2 = determined(members, np.concatenate(groups).astype(float))
    assert [eta2, np.sqrt(eta2)] == pytest.approx([6780 / 9640, 0.8386415], abs=5e-8)
    x, y = np.arange(1.0, 7), np.repeat([0.0, 1.0], 3)
    for unit in (1, 10):
        assert determined(y[:, None], unit * x) == pytest.approx(0.7714286, abs=5e-8)
        assert determined(unit * x[:, None], y) == pytest.approx(0.7714286, abs=5e-8)
    assert x[y > 0].mean() - x[y == 0].mean() == 3, "the slope of x over y"


def test_a_penalty_is_the_multiplier_of_a_constraint():
    """B8.6: x + y is largest on the unit circle at 0.7071068 each, with that multiplier.

    There, (1 − x)² + (1 − y)² is least, and ridge with the penalty p finds it where the coefficients have length 1:
    (1, 1) = (1 + p)(x, y) = 2λ(x, y).
    """
    params = ridge.Ridge(l2=np.sqrt(2) - 1, fit_intercept=False)
    data = Data.of(Task.REGRESSION, np.eye(2), np.ones(2))
    coef = ridge.fit(params, data, Context.of(0)).state.coef
    np.testing.assert_allclose(coef, 0.7071068, atol=5e-8)
    assert coef @ coef == pytest.approx(1)
    assert (1 + params.l2) / 2 == pytest.approx(0.7071068, abs=5e-8)
