"""Local planes, with and without a prior: derived numbers, errata, limits, far queries and poor neighbourhoods."""

import tracemalloc
import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from sklearn import datasets

from app.ml.algorithms import bayesian_locally_weighted as bayes
from app.ml.algorithms import locally_weighted as local
from app.ml.algorithms.bayesian_locally_weighted import BayesianLocallyWeighted
from app.ml.algorithms.locally_weighted import LocallyWeighted
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.linear_models import local_regression as numerics

PARABOLA = (np.arange(4.0)[:, None], np.arange(4.0) ** 2)


def learn(params, x, y, **more):
    module = bayes if isinstance(params, BayesianLocallyWeighted) else local
    return module.fit(params, Data.of(Task.REGRESSION, x, y, **more), Context.of(0)).state


def ask(params, query, x=PARABOLA[0], y=PARABOLA[1], **more):
    module = bayes if isinstance(params, BayesianLocallyWeighted) else local
    return module.predict(params, learn(params, x, y, **more), np.array(query, float).reshape(-1, np.shape(x)[1]))


@pytest.mark.parametrize(
    ("query", "width", "weighting", "expected"),
    [
        (1.5, 1, "s", 2.7384058),
        (1.5, 1, "s2", 2.5359724),
        (1.5, 2, "s", 3.0378828),
        (1.5, 2, "s2", 2.7384058),
        (2.5, 1, "s", 6.5827444),
        (2.5, 1, "s2", 6.5167943),
    ],
)
def test_derived_numbers(query, width, weighting, expected):
    """B8.2. Erratum E11: the printed sum weighs by s, its printed solution by s², which is the default."""
    assert ask(LocallyWeighted(width=width, weighting=weighting), query)[0] == pytest.approx(expected, abs=5e-8)
    assert LocallyWeighted().weighting == "s2"


def test_there_is_a_significance_for_each_row():
    """Erratum E11: S is printed as diag(s₁ … s_d), which fits XᵀS²X only where there are as many rows as columns."""
    rows, y = np.column_stack([np.ones(4), np.arange(4.0)]), np.arange(4.0) ** 2
    s = np.exp(-((np.arange(4.0) - 2.5) ** 2))
    right = np.linalg.solve(rows.T @ np.diag(s**2) @ rows, rows.T @ np.diag(s**2) @ y)
    assert right @ [1, 2.5] == pytest.approx(6.5167943, abs=5e-8)
    with pytest.raises(ValueError, match="mismatch"):
        rows.T @ np.diag(s[:2] ** 2) @ rows


def test_explanation_of_the_plane():
    """Weights at 1.5 are e^−1/2 and e^−9/2, twice each; the plane runs through the prediction."""
    params = LocallyWeighted(width=1)
    state = learn(params, *PARABOLA)
    (explanation,) = local.explain(params, state, np.array([[1.5]]))
    assert explanation["effective_rows"] == pytest.approx(2 * (1 + np.exp(-4)) ** 2 / (1 + np.exp(-8)))
    assert explanation["intercept"] + 1.5 * explanation["coefficients"][0] == pytest.approx(ask(params, 1.5)[0])
    assert explanation["coefficients"][0] == pytest.approx(3)
    assert explanation["far"] is False


def test_a_wide_kernel_is_least_squares():
    x, y = datasets.load_diabetes(return_X_y=True)
    peer = sm.OLS(y, sm.add_constant(x)).fit().predict(sm.add_constant(x))
    np.testing.assert_allclose(ask(LocallyWeighted(width=1e12), x, x, y), peer, rtol=1e-8)


@pytest.mark.parametrize("name", ["diabetes", "california-like"])
def test_as_statsmodels_one_query_at_a_time(name):
    rng = np.random.default_rng(0)
    x, y = datasets.load_diabetes(return_X_y=True)
    x = 20 * x if name == "diabetes" else rng.gamma(2, size=(300, 4)) * [1, 3, 0.2, 10] + [0, 50, 0, -100]
    y, weights = y[: len(x)], rng.uniform(0.5, 2, len(x))
    params = LocallyWeighted(width=float(x.var(axis=0).sum()))
    predictions = ask(params, x[:20] + 0.1, x, y, weights=weights)
    for predicted, query in zip(predictions, x[:20] + 0.1, strict=True):
        nearness = np.exp(-2 * ((x - query) ** 2).sum(axis=1) / params.width) * weights
        peer = sm.WLS(y, sm.add_constant(x), nearness).fit().params
        assert predicted == pytest.approx(peer[0] + query @ peer[1:], rel=1e-8)


@pytest.mark.parametrize("seed", range(50))
def test_drawn_problems_by_the_definition(seed):
    """Against least squares on rows times sᵢ, few rows and dependent columns among them."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    n, rank = int(rng.integers(d + 2, 60)), int(rng.integers(1, d + 1))
    x = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    y, query, width = x.sum(axis=1) ** 2 + rng.normal(size=n), x.mean(axis=0), float(rng.uniform(1, 5))
    root = np.exp(-((x - query) ** 2).sum(axis=1) / width)
    design = np.column_stack([np.ones(n), x - query])
    expected = np.linalg.lstsq(design * root[:, None], y * root)[0][0]
    assert ask(LocallyWeighted(width=width), query, x, y)[0] == pytest.approx(expected, rel=1e-7, abs=1e-8)
    near = BayesianLocallyWeighted(width=width, prior_variance=1e13, literal=True)
    assert ask(near, query, x, y)[0] == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("distance", [60, 1e5, 1e150])
def test_a_far_query_is_predicted_and_flagged_as_far(distance):
    """All exp(−d²/W) underflow. Relative to the nearest row they do not: its value, and the slope if there is one."""
    params = LocallyWeighted(width=1)
    state = learn(params, *PARABOLA)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted = local.predict(params, state, np.array([[distance]]))
        (explanation,) = local.explain(params, state, np.array([[distance]]))
    assert explanation["far"] is True
    assert 1 <= explanation["effective_rows"] <= len(PARABOLA[0])
    assert np.isfinite(predicted).all()
    if distance == 1e5:  # the next row counts e^−400000 as much
        assert predicted[0] == pytest.approx(9)


def test_undetermined_slopes_are_zero():
    x, y = [[0.0, 7], [0, 7], [1, 7], [1, 7]], [1.0, 3, 5, 5]
    np.testing.assert_allclose(ask(LocallyWeighted(width=1e9), [[0.5, 99]], x, y), 3.5)
    np.testing.assert_allclose(ask(LocallyWeighted(width=1e-9), [[0.1, 7], [0.9, 7]], x, y), [2, 5])


@pytest.mark.parametrize("kind", [LocallyWeighted, BayesianLocallyWeighted])
def test_width_by_leaving_rows_out(kind):
    """A wave asks for a narrow kernel, a plane for a wide one; the chosen width is the best of those tried."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 5, size=(80, 1))
    noise = 0.1 * rng.normal(size=80)
    wave, plane = np.sin(2 * x[:, 0]) + noise, 2 * x[:, 0] + noise
    chosen = learn(kind(), x, wave).width
    assert chosen < 1 < learn(kind(), x, plane).width
    if kind is LocallyWeighted:  # what is left out changes the other's prior a little

        def loss(width):
            params = kind(width=width)
            left = [ask(params, x[i], np.delete(x, i, 0), np.delete(wave, i)) for i in range(80)]
            return ((np.concatenate(left) - wave) ** 2).sum()

        widths = 2 * x.var() * numerics.WIDTHS
        assert chosen == pytest.approx(widths[np.argmin([loss(width) for width in widths])])


@pytest.mark.parametrize("kind", [LocallyWeighted, BayesianLocallyWeighted])
def test_memory_is_that_of_a_block(kind, monkeypatch):
    """1,000 × 3,000 weights would be 24 MB, and the rows with them 96."""
    monkeypatch.setattr(numerics, "BLOCK", 2**17)
    x = np.random.default_rng(0).normal(size=(3000, 2))
    state = learn(kind(width=1), x, x.sum(axis=1))
    module = local if kind is LocallyWeighted else bayes
    tracemalloc.start()
    predicted = module.predict(kind(width=1), state, x[:1000])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6
    np.testing.assert_allclose(predicted, x[:1000].sum(axis=1), atol=1e-2)


@pytest.mark.parametrize(
    ("prior_variance", "expected", "variance"),
    [(1, 6.0457781, 2.1890779), (100, 6.5471391, 0.6345004), (1e12, 6.5167943, 0.5174231)],
)
def test_posterior(prior_variance, expected, variance):
    """B8.3 at 2.5; without a prior to speak of it is the plane of B8.2."""
    params = BayesianLocallyWeighted(width=1, prior_variance=prior_variance, prior_shape=1, prior_rate=1, literal=True)
    (explanation,) = bayes.explain(params, learn(params, *PARABOLA), np.array([[2.5]]))
    assert explanation["prediction"] == pytest.approx(expected, abs=5e-8)
    assert explanation["variance"] == pytest.approx(variance, abs=5e-8)
    if prior_variance == 1:
        np.testing.assert_allclose(
            [explanation["intercept"], *explanation["coefficients"]], [0.5316971, 2.2056324], atol=5e-8
        )
        assert explanation["noise_variance"] == pytest.approx(3.0393421, abs=5e-8)


@pytest.mark.parametrize(("dof", "freedom"), [("conjugate", 3.2241740), ("printed", 2.2241740)])
def test_degrees_of_freedom(dof, freedom):
    """Erratum E12: 2k + Σs² goes with the printed σ²; what is printed, k + Σs², can be selected."""
    params = BayesianLocallyWeighted(
        width=1, prior_variance=1, prior_shape=1, prior_rate=1, literal=True, dof=dof, interval_of="mean"
    )
    state, query = learn(params, *PARABOLA), np.array([[2.5]])
    (explanation,) = bayes.explain(params, state, query)
    assert explanation["degrees_of_freedom"] == pytest.approx(freedom, abs=5e-8)
    reach = stats.t(freedom).ppf(0.975) * np.sqrt(2.1890779)
    np.testing.assert_allclose(
        bayes.interval(params, state, query, 0.95), [[6.0457781 - reach, 6.0457781 + reach]], atol=1e-6
    )
    new = params.model_copy(update={"interval_of": "observation"})
    reach = stats.t(freedom).ppf(0.975) * np.sqrt(2.1890779 + 3.0393421)
    np.testing.assert_allclose(
        bayes.interval(new, state, query, 0.95), [[6.0457781 - reach, 6.0457781 + reach]], atol=1e-6
    )
    assert BayesianLocallyWeighted().dof == "conjugate"


def test_theta_is_a_rate_and_the_prior_has_a_variance_for_each_coefficient():
    """Erratum E12: by the formulas, written out for two columns and five rows; as a scale θ would shrink the noise."""
    rng = np.random.default_rng(1)
    x, y, query, width = rng.normal(size=(5, 2)), rng.normal(size=5), np.array([0.1, 0.2]), 3.0
    params = BayesianLocallyWeighted(width=width, prior_variance=2, prior_shape=0.7, prior_rate=4, literal=True)
    design, requested = np.column_stack([np.ones(5), x]), np.append(1, query)
    s2 = np.diag(np.exp(-((x - query) ** 2).sum(axis=1) / width) ** 2)
    v = np.linalg.inv(np.eye(3) / 2 + design.T @ s2 @ design)
    coef = v @ design.T @ s2 @ y
    noise = (8 + (y - design @ coef) @ s2 @ y) / (1.4 + np.trace(s2))  # 2θ: a rate
    (explanation,) = bayes.explain(params, learn(params, x, y), query[None])
    assert explanation["prediction"] == pytest.approx(requested @ coef, rel=1e-12)
    assert explanation["noise_variance"] == pytest.approx(noise, rel=1e-12)
    assert explanation["variance"] == pytest.approx(requested @ v @ requested * noise, rel=1e-12)


@pytest.mark.parametrize("seed", range(50))
def test_drawn_posteriors_by_the_definition(seed):
    """Constant, double and dependent columns, fewer rows than columns among them: the prior decides then."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 30)), int(rng.integers(1, 5))
    x = rng.normal(size=(n, d))
    x[:, rng.integers(0, d)] = 2.0
    x[:, rng.integers(0, d)] = x[:, 0]
    y, query = rng.normal(size=n), rng.normal(size=d)
    width, prior, k, theta = rng.uniform(1, 9), 10.0 ** rng.integers(-2, 3), rng.uniform(0.1, 3), rng.uniform(0.1, 3)
    params = BayesianLocallyWeighted(width=width, prior_variance=prior, prior_shape=k, prior_rate=theta, literal=True)
    s2 = np.exp(-2 * ((x - query) ** 2).sum(axis=1) / width)
    design, requested = np.column_stack([np.ones(n), x]), np.append(1, query)
    precision = np.eye(d + 1) / prior + design.T @ (s2[:, None] * design)
    coef = np.linalg.solve(precision, design.T @ (s2 * y))
    noise = (2 * theta + s2 @ (y - design @ coef) ** 2 + coef @ coef / prior) / (2 * k + s2.sum())
    (explanation,) = bayes.explain(params, learn(params, x, y), query[None])
    assert explanation["prediction"] == pytest.approx(requested @ coef, rel=1e-8, abs=1e-9)
    assert explanation["noise_variance"] == pytest.approx(noise, rel=1e-8)
    assert explanation["variance"] == pytest.approx(requested @ np.linalg.solve(precision, requested) * noise, rel=1e-8)


def test_far_from_all_rows_the_prior_remains():
    params = BayesianLocallyWeighted(width=1, prior_variance=9, prior_shape=2, prior_rate=3)
    x, y = datasets.load_diabetes(return_X_y=True)
    state, far = learn(params, x, y), np.full((1, 10), 50.0)
    (explanation,) = bayes.explain(params, state, far)
    assert explanation["prediction"] == pytest.approx(y.mean())
    assert explanation["noise_variance"] == pytest.approx(3 / 2 * y.var())
    assert explanation["degrees_of_freedom"] == 4
    assert explanation["variance"] == pytest.approx(3 / 2 * y.var() * 9 * (1 + ((far - x.mean(axis=0)) ** 2).sum()))


def test_the_prior_follows_the_units_of_the_target():
    x, y = datasets.load_diabetes(return_X_y=True)
    params = BayesianLocallyWeighted(width=0.05)
    state, moved = learn(params, x, y), learn(params, x, 1000 * y - 7e4)
    bounds = bayes.interval(params, state, x[:9], 0.9)
    np.testing.assert_allclose(bayes.interval(params, moved, x[:9], 0.9), 1000 * bounds - 7e4, rtol=1e-9)


def test_intervals_hold_what_they_promise():
    """Of new rows 90 % fall into their intervals, give or take."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, size=(1200, 1))
    y = np.sin(x[:, 0]) + 0.3 * rng.normal(size=1200)
    params = BayesianLocallyWeighted(width=0.5)
    bounds = bayes.interval(params, learn(params, x[:400], y[:400]), x[400:], 0.9)
    covered = ((bounds[:, 0] <= y[400:]) & (y[400:] <= bounds[:, 1])).mean()
    assert covered == pytest.approx(0.9, abs=0.03)


def test_ill_conditioned_neighbourhoods_are_solved_row_by_row():
    """Two columns that differ by 1e-7: against the stacked least squares problem."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(30, 1)) + np.array([[0, 1e-7]]) * rng.normal(size=(30, 1))
    y, query = x.sum(axis=1), x[3]
    params = BayesianLocallyWeighted(width=2, prior_variance=1e15, prior_shape=1, prior_rate=1, literal=True)
    root = np.exp(-((x - query) ** 2).sum(axis=1) / 2)
    stacked = np.vstack([np.column_stack([np.ones(30), x]) * root[:, None], np.eye(3) * 1e15**-0.5])
    expected = np.linalg.lstsq(stacked, np.append(y * root, np.zeros(3)))[0] @ [1, *query]
    assert ask(params, query, x, y)[0] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_a_query_is_predicted_alike_in_any_company(seed):
    """Where slopes are hardly determined, too."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=60), np.exp(3 * rng.normal(size=60)), *rng.integers(0, 2, (2, 60))])
    data = Data.of(Task.REGRESSION, x, x[:, 0] + rng.normal(size=60))
    params = LocallyWeighted(width=0.5)
    state = local.fit(params, data, Context.of(0)).state
    together = local.predict(params, state, x + 1e-3)
    alone = [local.predict(params, state, row[None])[0] for row in x + 1e-3]
    np.testing.assert_allclose(together, alone, rtol=1e-9)
