"""Generative classifier: Bayes' rule by hand, scikit-learn and scipy beside, poor data by the rule that is stated."""

import json
import math
import tracemalloc
import warnings

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import multivariate_normal, norm
from sklearn import datasets
from sklearn.covariance import EmpiricalCovariance
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity

from app.base.errors import InvalidData
from app.ml.algorithms.generative_bayes import GenerativeBayes, explain, fit, predict, summary
from app.ml.contract.algorithm import ColumnUnits, Context, Data, Task
from app.ml.numerics.density import class_columns, nonparametric

DENSITIES = ["naive_gaussian", "shared_covariance", "full_covariance", "histogram", "kernel"]
NORMAL = DENSITIES[:3]


def learn(params, x, y, **more):
    return fit(params, Data.of(Task.CLASSIFICATION, np.asarray(x, float), y, **more), Context.of(0))


def log_posteriors(params, state, x):
    explanation = explain(params, state, x)
    joint = [np.add(one["log_priors"], one["log_densities"]) - one["log_evidence"] for one in explanation]
    return np.array(joint)


@pytest.mark.parametrize(("priors", "sick"), [([0.99, 0.01], 0.153846), ("uniform", 0.9 / 0.95), ("learned", 0.9)])
def test_bayes_rule(priors, sick):
    """B3.8: the prior decides what a positive test means."""
    tested = np.r_[np.ones(9), 0, 1, np.zeros(19)]
    params = GenerativeBayes(density="histogram", n_bins=2, smoothing=0, priors=priors)
    state = learn(params, tested[:, None], np.repeat([1, 0], [10, 20])).state
    assert predict(params, state, np.array([[1.0]]))[0, 1] == pytest.approx(sick, abs=5e-7)


def theirs(density, x, y, queries):
    """Log posteriors."""
    if density == "naive_gaussian":
        return GaussianNB(var_smoothing=0).fit(x, y).predict_log_proba(queries)
    if density == "shared_covariance":
        scores = LinearDiscriminantAnalysis(solver="lsqr").fit(x, y).decision_function(queries)
        return log_softmax(scores if scores.ndim > 1 else np.column_stack([0 * scores, scores]), axis=1)
    ours = {
        "solver": "eigen",
        "covariance_estimator": EmpiricalCovariance(),
        "tol": 0,
    }  # their default divides by n − 1
    return QuadraticDiscriminantAnalysis(**ours).fit(x, y).predict_log_proba(queries)


def agree(density, x, y, queries):
    params = GenerativeBayes(density=density)
    found = learn(params, x, y)
    assert found.warnings == []
    expected = theirs(density, x, y, queries)
    shown = expected > -600  # beyond, theirs have been through a zero
    found_logs = log_posteriors(params, found.state, queries)
    np.testing.assert_allclose(found_logs[shown], expected[shown], rtol=1e-8, atol=1e-8, err_msg=density)
    np.testing.assert_allclose(predict(params, found.state, queries), np.exp(expected), atol=1e-8)


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
@pytest.mark.parametrize("density", NORMAL)
def test_as_scikit_learn(density, name):
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    agree(density, x[:, :15] / x[:, :15].std(axis=0), y, x[:, :15] / x[:, :15].std(axis=0))


@pytest.mark.parametrize("seed", range(50))
def test_drawn_problems_as_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(1, 7)), int(rng.integers(2, 5))
    n = int(rng.integers(k * (d + 3), 200))
    y = np.arange(n) % k
    mix = rng.normal(size=(k, d, d))
    x = np.einsum("nd,nde->ne", rng.normal(size=(n, d)), mix[y]) + 3 * rng.normal(size=(k, d))[y]
    for density in NORMAL:
        agree(density, x, y, x + rng.normal(size=x.shape))


@pytest.mark.parametrize("seed", range(50))
def test_drawn_problems_with_nothing_new_as_scikit_learn_without_it(seed):
    """A constant column tells no class from another, nor does a column twice under one covariance; rows may repeat."""
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(1, 5)), int(rng.integers(2, 4))
    n = int(rng.integers(k * (d + 3), 80))
    y = np.tile(np.arange(n) % k, 2)
    x = np.tile(rng.normal(size=(n, d)) @ rng.normal(size=(d, d)), (2, 1)) + 2 * rng.normal(size=(k, d))[y]
    more = np.column_stack([x, np.full(2 * n, 3.0)])
    for density in NORMAL:
        wide = more if density == "naive_gaussian" else np.column_stack([more, x[:, 0]])
        params = GenerativeBayes(density=density)
        found = predict(params, learn(params, wide, y).state, wide)
        np.testing.assert_allclose(found, np.exp(theirs(density, x, y, x)), atol=1e-7, err_msg=density)


@pytest.mark.parametrize("density", NORMAL)
def test_log_densities_are_those_of_scipy(density):
    x, y = datasets.load_iris(return_X_y=True)
    params = GenerativeBayes(density=density)
    explanation = explain(params, learn(params, x, y).state, x[:5])
    pooled = sum(np.cov(x[y == c].T, bias=True) for c in range(3)) / 3
    for c in range(3):
        own = np.cov(x[y == c].T, bias=True)
        covariance = {"naive_gaussian": np.diag(own.diagonal()), "shared_covariance": pooled}.get(density, own)
        expected = multivariate_normal(x[y == c].mean(axis=0), covariance).logpdf(x[:5])
        np.testing.assert_allclose([one["log_densities"][c] for one in explanation], expected, rtol=1e-10)


def test_one_covariance_finds_the_best_direction():
    """X3: the direction is S⁻¹(m₁ − m₂), and no other separates the means better, measured by the spread within."""
    rng = np.random.default_rng(3)
    mix = rng.normal(size=(4, 4))
    y = np.arange(400) % 2
    x = rng.normal(size=(400, 4)) @ mix + np.outer(y, [1.0, -1, 2, 0.5])
    params = GenerativeBayes(density="shared_covariance")
    result = summary(params, learn(params, x, y).state)
    found = np.subtract(*result["coefficients"])
    gap = x[y == 0].mean(axis=0) - x[y == 1].mean(axis=0)
    within = (np.cov(x[y == 0].T, bias=True) + np.cov(x[y == 1].T, bias=True)) / 2
    np.testing.assert_allclose(found, np.linalg.solve(within, gap), rtol=1e-10)
    others = np.vstack([found, rng.normal(size=(500, 4)), found + 0.01 * rng.normal(size=(500, 4))])
    fisher = (others @ gap) ** 2 / np.einsum("nd,de,ne->n", others, within, others)
    assert fisher.argmax() == 0


def test_coefficients_of_the_summary_are_the_model():
    x, y = datasets.load_wine(return_X_y=True)
    params = GenerativeBayes(density="shared_covariance", priors=[0.5, 0.3, 0.2])
    state = learn(params, x, y).state
    result = summary(params, state)
    scores = x @ np.array(result["coefficients"]).T + result["intercepts"]
    np.testing.assert_allclose(log_softmax(scores, axis=1), log_posteriors(params, state, x), rtol=1e-8, atol=1e-8)
    assert result["rank"] == 13


@pytest.mark.parametrize("density", DENSITIES)
def test_a_prior_multiplies_the_odds(density):
    x, y = datasets.load_iris(return_X_y=True)
    even, uneven = (
        GenerativeBayes(density=density, priors="uniform"),
        GenerativeBayes(density=density, priors=[0.6, 0.3, 0.1]),
    )
    before = log_posteriors(even, learn(even, x, y).state, x)
    after = log_posteriors(uneven, learn(uneven, x, y).state, x)
    np.testing.assert_allclose(log_softmax(before + np.log([0.6, 0.3, 0.1]), axis=1), after, atol=1e-9)


def dependent(rng, n=120):
    """Ten columns in six dimensions, one of them constant, of two classes."""
    y = np.arange(n) % 2
    inner = rng.normal(size=(n, 6)) * np.where(y[:, None] > 0, 1.0, [1, 2, 0.5, 1, 3, 1]) + 0.7 * y[:, None]
    return inner, np.column_stack([inner @ rng.normal(size=(6, 9)), np.full(n, 0.1)]), y


@pytest.mark.parametrize("density", ["shared_covariance", "full_covariance"])
def test_dependent_columns_say_nothing_new(density):
    """Where scikit-learn's factorisations fail: the prediction is that of six independent columns."""
    inner, x, y = dependent(np.random.default_rng(0))
    params = GenerativeBayes(density=density)
    plain, poor = learn(params, inner, y), learn(params, x, y)
    np.testing.assert_allclose(
        log_posteriors(params, poor.state, x), log_posteriors(params, plain.state, inner), atol=1e-8
    )
    assert plain.warnings == []
    assert "1 of 10 columns are constant" in poor.warnings[0]
    assert "only 6 of 10" in poor.warnings[1]


def test_a_class_without_variance_takes_the_pooled_one():
    """By hand: in the second column class 1 has none, in the first both have their own."""
    x = np.array([[0.0, 1], [2, 3], [1, 5], [5, 7], [7, 7], [6, 7]])
    y = np.array([0, 0, 0, 1, 1, 1])
    params = GenerativeBayes()
    found = learn(params, x, y)
    assert "classes 1." in found.warnings[0]
    deviations = np.array([[2 / 3, 8 / 3], [2 / 3, 8 / 6]]) ** 0.5
    expected = [norm([1, 3], deviations[0]).logpdf([4, 6]).sum(), norm([6, 7], deviations[1]).logpdf([4, 6]).sum()]
    np.testing.assert_allclose(explain(params, found.state, np.array([[4.0, 6]]))[0]["log_densities"], expected)


def test_one_row_in_a_class_takes_the_covariance_of_the_others():
    rng = np.random.default_rng(1)
    x = np.vstack([rng.normal(size=(30, 3)), rng.normal(size=(30, 3)) + 2, [[5.0, -4, 3]]])
    y = np.repeat([0, 1, 2], [30, 30, 1])
    params = GenerativeBayes(density="full_covariance")
    found = learn(params, x, y)
    assert "classes 2." in found.warnings[0]
    pooled = (30 * np.cov(x[:30].T, bias=True) + 30 * np.cov(x[30:60].T, bias=True)) / 61
    expected = multivariate_normal(x[60], pooled).logpdf(x[:4])
    np.testing.assert_allclose(
        [one["log_densities"][2] for one in explain(params, found.state, x[:4])], expected, rtol=1e-9
    )


def test_poor_classes_do_not_depend_on_coordinates():
    """Any invertible mix of the columns: the same probabilities, with a class of two rows and one within a plane."""
    rng = np.random.default_rng(5)
    flat = rng.normal(size=(20, 3)) @ np.diag([1, 1, 0.0]) + 1
    x = np.vstack([rng.normal(size=(40, 3)), flat, [[3, 3, 3.5], [4, 3, 3]]])
    y = np.repeat([0, 1, 2], [40, 20, 2])
    mix = np.array([[100, 1, 0], [0, 1, 1e-3], [3, 0, 2]])
    params = GenerativeBayes(density="full_covariance")
    straight, mixed = learn(params, x, y), learn(params, x @ mix - 7, y)
    assert "classes 1, 2." in straight.warnings[0]
    assert straight.warnings == mixed.warnings
    np.testing.assert_allclose(
        log_posteriors(params, mixed.state, x @ mix - 7),
        log_posteriors(params, straight.state, x),
        rtol=1e-6,
        atol=1e-6,
    )


def test_classes_that_never_vary_are_separated_with_a_warning():
    x, y = np.array([[0.0], [0], [1], [1]]), [0, 0, 1, 1]
    for density in NORMAL:
        params = GenerativeBayes(density=density)
        found = learn(params, x, y)
        assert "No variance at all" in found.warnings[-1]
        sure = [[1, 0], [1, 0], [0, 1], [0, 1]]
        np.testing.assert_allclose(predict(params, found.state, x), sure, rtol=0, atol=1e-300)
        np.testing.assert_allclose(predict(params, found.state, np.array([[0.5]])), 0.5)


def test_shrinkage_leads_from_own_to_shared_covariances():
    x, y = datasets.load_wine(return_X_y=True)
    own, common = (
        log_posteriors(params, learn(params, x, y).state, x)
        for params in (
            GenerativeBayes(density="full_covariance", shrinkage=1),
            GenerativeBayes(density="shared_covariance"),
        )
    )
    np.testing.assert_allclose(own, common, rtol=1e-8, atol=1e-7)
    half = GenerativeBayes(density="full_covariance", shrinkage=0.5)
    result = explain(half, learn(half, x, y).state, x[:1])[0]["log_densities"]
    covariances = [np.cov(x[y == c].T, bias=True) for c in range(3)]
    pooled = sum((y == c).mean() * covariances[c] for c in range(3))
    expected = multivariate_normal(x[y == 1].mean(axis=0), (covariances[1] + pooled) / 2).logpdf(x[0])
    assert result[1] == pytest.approx(expected, rel=1e-9)


def test_histogram_by_hand():
    """Four bins over 0 … 4: class 0 has 2, 1, 0, 0 rows in them, class 1 has 0, 0, 1, 3; beyond, the last bin."""
    x, y = np.array([[0.0], [0.5], [1.5], [2.5], [3.5], [4], [4]]), [0, 0, 0, 1, 1, 1, 1]
    params = GenerativeBayes(density="histogram", n_bins=4, priors="uniform")
    state = learn(params, x, y).state
    explanation = explain(params, state, np.array([[0.2], [3.0], [99]]))
    np.testing.assert_allclose(
        np.exp([one["log_densities"] for one in explanation]), [[3 / 7, 1 / 8], [1 / 7, 4 / 8], [1 / 7, 4 / 8]]
    )
    bare = GenerativeBayes(density="histogram", n_bins=4, smoothing=0, priors=[0.3, 0.7])
    never = explain(bare, learn(bare, x, y).state, np.array([[0.2]]))[0]
    assert never["log_densities"][1] is None


def test_a_row_that_no_class_could_have_made_gets_the_priors():
    x, y = np.array([[0.0, 0], [0, 0], [1, 1], [1, 1]]), [0, 0, 1, 1]
    params = GenerativeBayes(density="histogram", n_bins=2, smoothing=0, priors=[0.3, 0.7])
    state = learn(params, x, y).state
    np.testing.assert_allclose(predict(params, state, np.array([[0.0, 1]])), [[0.3, 0.7]])
    assert explain(params, state, np.array([[0.0, 1]]))[0]["log_evidence"] is None


def test_kernels_are_those_of_scikit_learn():
    rng = np.random.default_rng(2)
    x, y = datasets.load_iris(return_X_y=True)
    x, weights = x + 0.01 * rng.normal(size=x.shape), rng.uniform(0.5, 2, 150)
    params = GenerativeBayes(density="kernel", bandwidth=0.8)
    explanation = explain(params, learn(params, x, y, weights=weights).state, x[::10])
    for c in range(3):
        own, mass = x[y == c], weights[y == c]
        spread = np.sqrt(np.average((own - np.average(own, axis=0, weights=mass)) ** 2, axis=0, weights=mass))
        width = 0.8 * spread * mass.sum() ** (-1 / 8)
        peer = KernelDensity(bandwidth=1.0).fit(own / width, sample_weight=mass)
        expected = peer.score_samples(x[::10] / width) - np.log(width).sum()
        np.testing.assert_allclose([one["log_densities"][c] for one in explanation], expected, rtol=1e-8)


def test_kernels_go_by_blocks(monkeypatch):
    """1,000 × 3,000 distances would be 24 MB."""
    x = np.random.default_rng(0).normal(size=(3000, 3))
    params = GenerativeBayes(density="kernel")
    state = learn(params, x, np.arange(3000) % 2).state
    tracemalloc.start()
    whole = predict(params, state, x[:1000])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12e6
    monkeypatch.setattr(nonparametric, "BLOCK", 30_000)
    np.testing.assert_allclose(predict(params, state, x[:1000]), whole, rtol=1e-12)


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize(
    "change",
    [
        lambda x: np.repeat(x[:1], len(x), axis=0),
        lambda x: x[:, [0, 0, 1, 1]],
        lambda x: x * 2.0**300,
        lambda x: x * 2.0**-300,
        lambda x: x * 2.0 ** np.array([300, 0, -300, 5]),
        lambda x: x + 1e8,
        lambda x: x[:, :0],
    ],
    ids=["all the same", "duplicates", "huge", "tiny", "mixed", "far from zero", "no columns"],
)
def test_every_density_predicts_poor_data(density, change):
    rng = np.random.default_rng(0)
    y = np.r_[np.arange(40) % 2, 2]
    x = change(rng.normal(size=(41, 4)) + y[:, None])
    far = np.full((2, x.shape[1]), [[1e150], [-1.7e308]])
    params = GenerativeBayes(density=density)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = learn(params, x, y, classes=4).state
        predicted = predict(params, state, np.vstack([x, far]))
        json.dumps([summary(params, state), explain(params, state, np.vstack([x, far]))], allow_nan=False)
    assert np.isfinite(predicted).all()
    np.testing.assert_allclose(predicted.sum(axis=1), 1)
    assert (predicted[:, 3] == 0).all()


@pytest.mark.parametrize("density", DENSITIES)
def test_a_weight_is_so_many_rows(density):
    rng = np.random.default_rng(7)
    x, y, times = rng.normal(size=(60, 3)), np.arange(60) % 3, 1 + np.arange(60) % 4
    params = GenerativeBayes(density=density)
    weighted = learn(params, x + y[:, None], y, weights=times).state
    repeated = learn(params, np.repeat(x + y[:, None], times, axis=0), np.repeat(y, times)).state
    np.testing.assert_allclose(
        log_posteriors(params, weighted, x), log_posteriors(params, repeated, x), rtol=1e-9, atol=1e-9
    )


def test_priors_that_do_not_fit():
    x, y = [[0.0], [1], [2], [3]], [0, 0, 2, 2]
    with pytest.raises(InvalidData, match="2 priors for 3"):
        learn(GenerativeBayes(priors=[0.5, 0.5]), x, y)
    with pytest.raises(InvalidData, match="has prior 0"):
        learn(GenerativeBayes(priors=[0, 1, 0]), x, y)
    found = learn(GenerativeBayes(priors=[0.1, 0.8, 0.1]), x, y)
    assert "classes 1." in found.warnings[0]
    assert summary(GenerativeBayes(), found.state)["priors"] == [0.5, 0, 0.5]
    assert math.isclose(predict(GenerativeBayes(), found.state, np.array([[0.5]])).sum(), 1)


@pytest.mark.parametrize("density", DENSITIES)
def test_units_play_no_part(density):
    """Columns in other units, one of them constant: the same probabilities, the floor's included."""
    rng = np.random.default_rng(8)
    y = np.arange(60) % 3
    x = np.column_stack(
        [rng.normal(size=(60, 3)) + y[:, None], np.full(60, 7.0), np.where(y == 1, 2.0, rng.normal(size=60))]
    )
    units = 2.0 ** np.array([3, -50, 0, 7, 20])
    params = GenerativeBayes(density=density)
    plain, scaled = learn(params, x, y), learn(params, x * units, y)
    assert plain.warnings == scaled.warnings
    np.testing.assert_allclose(
        predict(params, plain.state, x), predict(params, scaled.state, x * units), rtol=1e-9, atol=1e-12
    )


def moments(density, x, y, units=None, **params):
    """(k, d) means and variances of the report."""
    params = GenerativeBayes(density=density, **params)
    columns = summary(params, learn(params, x, y).state, units)["columns"]
    assert [one["column"] for one in columns] == list(range(x.shape[1]))
    return [np.array([one[name] for one in columns]).T for name in ("means", "variances")]


@pytest.mark.parametrize("density", NORMAL)
def test_the_report_has_means_and_variances_as_scikit_learn(density):
    x, y = datasets.load_wine(return_X_y=True)
    means, variances = moments(density, x, y)
    apart = GaussianNB(var_smoothing=0).fit(x, y)
    pooled = LinearDiscriminantAnalysis(store_covariance=True).fit(x, y).covariance_.diagonal()
    np.testing.assert_allclose(means, apart.theta_, rtol=1e-10)
    expected = np.tile(pooled, (3, 1)) if density == "shared_covariance" else apart.var_
    np.testing.assert_allclose(variances, expected, rtol=1e-8)


def test_the_report_has_the_moments_of_a_density_of_kernels():
    """By integrals of the density over one column."""
    x, y = datasets.load_iris(return_X_y=True)
    x = x[:, :1]
    params = GenerativeBayes(density="kernel")
    state = learn(params, x, y).state
    means, variances = moments("kernel", x, y)
    grid = np.linspace(0, 14, 8001)
    heights = np.exp([one["log_densities"] for one in explain(params, state, grid[:, None])])
    expected = np.trapezoid(heights * grid[:, None], grid, axis=0)
    np.testing.assert_allclose(means[:, 0], expected, rtol=1e-8)
    squares = np.trapezoid(heights * (grid[:, None] - expected) ** 2, grid, axis=0)
    np.testing.assert_allclose(variances[:, 0], squares, rtol=1e-8)
    (column,) = summary(params, state)["columns"]
    np.testing.assert_allclose(column["widths"], np.std(x.reshape(3, 50), axis=1) * 50 ** (-1 / 5), rtol=1e-9)


def test_the_report_has_the_shares_of_bins_as_numpy():
    x, y = datasets.load_iris(return_X_y=True)
    x = x + 1e-3 * np.random.default_rng(0).normal(size=x.shape)  # no value lies on an edge
    params = GenerativeBayes(density="histogram", n_bins=6, smoothing=0)
    for j, column in enumerate(summary(params, learn(params, x, y).state)["columns"]):
        edges = np.histogram_bin_edges(x[:, j], 6)
        np.testing.assert_allclose(column["edges"], edges, rtol=1e-12)
        expected = [np.histogram(x[y == c, j], edges)[0] / 50 for c in range(3)]
        np.testing.assert_allclose(column["shares"], expected, atol=1e-12)


@pytest.mark.parametrize("density", DENSITIES)
def test_the_report_is_the_same_in_other_units(density):
    x, y = datasets.load_iris(return_X_y=True)
    x = x + 1e-3 * np.random.default_rng(0).normal(size=x.shape)  # no value lies on an edge
    offset, scale = x.mean(axis=0), np.array([0.1, 3.0, 7.0, 1e3])
    params = GenerativeBayes(density=density)
    plain = summary(params, learn(params, x, y).state)
    restored = summary(params, learn(params, (x - offset) / scale, y).state, ColumnUnits(offset, scale))
    for one, other in zip(plain["columns"], restored["columns"], strict=True):
        for name in one:
            np.testing.assert_allclose(other[name], one[name], rtol=1e-8, atol=1e-12)
    classes = [np.cov(part.T, bias=True) for part in (x[:50], x[50:100], x[100:])]
    expected = {"full_covariance": {"covariances": classes}, "shared_covariance": {"covariance": np.mean(classes, 0)}}
    for described in (plain, restored):
        reported = {name: part for name, part in described.items() if name.startswith("covariance")}
        assert set(reported) == set(expected.get(density, ()))
        for name, matrices in reported.items():
            np.testing.assert_allclose(matrices, expected[density][name], rtol=1e-7, atol=1e-12)
    if density == "shared_covariance":
        np.testing.assert_allclose(restored["coefficients"], plain["coefficients"], rtol=1e-7)
        gaps = [np.subtract(one["intercepts"], one["intercepts"][0]) for one in (plain, restored)]
        np.testing.assert_allclose(gaps[1], gaps[0], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("density", DENSITIES)
def test_the_report_of_poor_columns(density):
    """A constant column, a repeated one and a class without rows."""
    x = np.column_stack([np.full(8, 5.0), np.arange(8.0), np.arange(8.0)])
    params = GenerativeBayes(density=density)
    described = summary(params, learn(params, x, np.arange(8) % 2, classes=3).state)
    json.dumps(described, allow_nan=False)
    constant, first, second = described["columns"]
    if density == "histogram":
        assert (constant["edges"], constant["shares"]) == ([5.0, 5.0], [[1.0]] * 3)
        return
    assert [constant["means"][c] for c in (0, 1)] == [5.0, 5.0]
    assert [constant["variances"][c] for c in (0, 1)] == [0.0, 0.0]
    np.testing.assert_allclose(first["means"][:2], [3, 4], rtol=1e-9)
    np.testing.assert_allclose(second["means"][:2], [3, 4], rtol=1e-9)
    if density != "kernel":
        np.testing.assert_allclose(first["variances"][:2], [5, 5], rtol=1e-7)
        assert first["means"][2] == pytest.approx(3.5)


def test_a_report_of_too_many_numbers_has_no_columns(monkeypatch):
    monkeypatch.setattr(class_columns, "LISTED", 11)
    x, y = datasets.load_iris(return_X_y=True)
    for density in DENSITIES:
        params = GenerativeBayes(density=density)
        assert summary(params, learn(params, x, y).state)["columns"] is None
