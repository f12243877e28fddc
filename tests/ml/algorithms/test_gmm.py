"""Gaussian mixtures beside scikit-learn and scipy, and what EM promises: the likelihood never falls."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp
from sklearn import datasets, mixture
from sklearn.exceptions import ConvergenceWarning

from app.ml.algorithms import gmm, kmeans
from app.ml.algorithms.gmm import GMM
from app.ml.contract.algorithm import ColumnUnits, Context, Data, Task
from app.ml.numerics.density import gaussian_mixture
from app.ml.numerics.density.gaussian_mixture import Components, Options, em, of_labels

IRIS = datasets.load_iris().data
MOONS = datasets.make_moons(100, noise=0.1, random_state=4)[0]
TYPES = {"full": "full", "diagonal": "diag", "spherical": "spherical"}
"""Forms of a covariance, and their names in scikit-learn."""


def fitted(x, task=Task.DENSITY, *, weights=None, **params):
    params = GMM(**params)
    return params, gmm.fit(params, Data.of(task, x, weights=weights), Context.of(0))


def rising(curve):
    assert (np.diff(curve) >= 0).all()
    return curve


def covariances(state):
    factors = gmm.components_of(state).factors
    return factors @ factors.transpose(0, 2, 1)


@pytest.mark.parametrize("kind", TYPES)
def test_ten_steps_are_those_of_scikit_learn_from_the_same_start(kind):
    options = Options(kind, 1e-9, max_iter=10, tol=0)
    start = of_labels(IRIS, np.ones(150), np.arange(150) // 50, 3, options)
    run = em(IRIS, np.ones(150), start, options)
    precisions = start.whitening.transpose(0, 2, 1) @ start.whitening
    given = {"full": precisions, "diagonal": start.whitening[:, 0] ** 2, "spherical": start.whitening[:, 0, 0] ** 2}[
        kind
    ]
    own = {"weights_init": start.shares, "means_init": start.means, "precisions_init": given}
    rival = mixture.GaussianMixture(3, covariance_type=TYPES[kind], tol=0, reg_covar=0, max_iter=10, **own)
    with pytest.warns(ConvergenceWarning):
        rival.fit(IRIS)
    assert run.curve[-1] == pytest.approx(rival.score(IRIS), rel=1e-10)
    np.testing.assert_allclose(run.components.means, rival.means_, rtol=1e-8)
    np.testing.assert_allclose(run.components.shares, rival.weights_, rtol=1e-8)
    found = gaussian_mixture.memberships(gaussian_mixture.log_joint(run.components, IRIS))
    np.testing.assert_allclose(found, rival.predict_proba(IRIS), atol=1e-8)
    state = gmm.State(*run.components, 0.0, np.zeros(1), labels=False)
    assert gmm.free_parameters(GMM(covariance=kind), state) == rival._n_parameters()


@pytest.mark.parametrize("kind", TYPES)
def test_log_densities_and_memberships_are_those_of_scipy(kind):
    params, fit = fitted(IRIS, covariance=kind)
    state = fit.state
    whole = zip(state.shares, state.means, covariances(state), strict=True)
    joint = np.stack([np.log(pi) + stats.multivariate_normal(mu, s).logpdf(IRIS) for pi, mu, s in whole], axis=1)
    logs = logsumexp(joint, axis=1)
    np.testing.assert_allclose(gmm.predict(params, state, IRIS), logs, rtol=1e-9)
    found = gmm.memberships(params, state, IRIS)
    np.testing.assert_allclose(found, np.exp(joint - logs[:, None]), atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    assert fit.curves["log_density"][-1] == pytest.approx(logs.mean(), rel=1e-9)
    assert (gmm.label(params, state, IRIS) == joint.argmax(axis=1)).all()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("init", ["kmeans", "random"])
@pytest.mark.parametrize("floor", [1e-12, 1e-6, 0.5])
def test_the_likelihood_never_falls(kind, init, floor):
    """Also where components collapse on a few rows: five for rows of which many are equal, and collinear columns."""
    equal = np.repeat(MOONS[:8], np.arange(1, 9), axis=0)
    options = {"covariance": kind, "init": init, "covariance_floor": floor}
    for x in (MOONS, IRIS, equal, np.column_stack([MOONS, MOONS @ [1, 2]])):
        _, fit = fitted(x, n_components=5, tol=0, max_iter=60, n_init=1, **options)
        rising(fit.curves["log_density"])
        assert len(fit.curves["log_density"]) > (5 if x is MOONS else 0)


def test_five_diagonal_components_of_two_moons_after_thirty_steps():
    """The example of the lecture, whose density without its factor 1/|Σ| fell in 9 of 30 steps, and became NaN."""
    _, fit = fitted(MOONS, n_components=5, covariance="diagonal", init="random", max_iter=30, tol=0, n_init=1)
    assert fit.iterations == 30
    rising(fit.curves["log_density"])
    assert np.isfinite(fit.state.means).all()


@pytest.mark.parametrize("kind", TYPES)
def test_one_component_has_the_moments_of_the_rows(kind):
    weights = np.linspace(1, 3, 150)
    _, fit = fitted(IRIS, n_components=1, covariance=kind, weights=weights)
    np.testing.assert_allclose(fit.state.means[0], np.average(IRIS, axis=0, weights=weights), rtol=1e-10)
    whole = np.cov(IRIS.T, aweights=weights, bias=True)
    mean = np.eye(4) * np.trace(whole) / 4
    expected = {"full": whole, "diagonal": np.diag(np.diag(whole)), "spherical": mean}[kind]
    np.testing.assert_allclose(covariances(fit.state)[0], expected, rtol=1e-9, atol=1e-12)
    scale = np.array([0.5, 2.0, -3.0, 10.0])
    (described,) = gmm.in_units(GMM(), fit.state, ColumnUnits(np.ones(4), scale))["components"]
    assert ("covariance" in described) == (kind == "full")
    if kind == "full":
        reported = np.abs(np.outer(scale, scale)) * whole
        np.testing.assert_allclose(described["covariance"], reported, rtol=1e-9)
        np.testing.assert_allclose(np.square(described["standard_deviations"]), np.diag(reported), rtol=1e-9)


@pytest.mark.parametrize("kind", TYPES)
def test_a_density_integrates_to_one(kind):
    params, fit = fitted(MOONS, covariance=kind, n_components=2)

    def density(b, a):
        return np.exp(gmm.predict(params, fit.state, np.array([[a, b]]))[0])

    total, _ = integrate.dblquad(density, -4, 5, -4, 4, epsabs=1e-3)
    assert total == pytest.approx(1, abs=2e-3)


def test_small_equal_variances_make_k_means_of_it():
    """Hard responsibilities, equal shares and equal spherical variances: every row belongs to the nearest mean."""
    means = IRIS[[0, 60, 120]]
    tight = Components(np.full(3, 1 / 3), means, np.full((3, 1, 4), 1e3))
    found = gaussian_mixture.memberships(gaussian_mixture.log_joint(tight, IRIS))
    state = kmeans.State(means, np.zeros(3, int), *np.zeros((4, 3)))
    assert (found.argmax(axis=1) == kmeans.predict(kmeans.KMeans(), state, IRIS)).all()
    assert set(np.unique(found.round(6))) == {0.0, 1.0}


def test_the_floor_is_the_likeliest_covariance_above_it():
    """No covariance with a larger determinant, or another direction, is likelier and above the floor."""
    rng = np.random.default_rng(0)
    x = np.ascontiguousarray(
        rng.normal(size=(200, 3)) @ np.diag([1, 0.5, 0.05]) @ stats.ortho_group.rvs(3, random_state=1)
    )
    options = Options("full", 0.04, max_iter=1, tol=0)
    found = of_labels(x, np.ones(200), np.zeros(200, int), 1, options)
    best, covariance = _mean_log_density(found, x), np.linalg.inv(found.whitening[0].T @ found.whitening[0])
    assert np.linalg.eigvalsh(covariance)[0] == pytest.approx(0.04)
    for _ in range(100):
        change = rng.normal(size=(3, 3)) * 0.05
        values, vectors = np.linalg.eigh(covariance + change + change.T)
        other = vectors * np.maximum(values, 0.04) @ vectors.T
        whitening = np.linalg.inv(np.linalg.cholesky(other))
        assert _mean_log_density(found._replace(whitening=np.ascontiguousarray(whitening[None])), x) < best


def _mean_log_density(components, x):
    return gaussian_mixture.log_density(gaussian_mixture.log_joint(components, x)).mean()


def test_a_component_without_rows_stays_where_it_is():
    x = np.ascontiguousarray(MOONS)
    start = Components(np.array([0.5, 0.5]), np.array([[0.0, 0.0], [1e6, 1e6]]), np.ones((2, 1, 2)))
    run = em(x, np.ones(100), start, Options("diagonal", 1e-6, max_iter=5, tol=0))
    assert run.components.shares.tolist() == [1, 0]
    assert run.components.means[1].tolist() == [1e6, 1e6]
    rising(run.curve)


def test_the_best_of_several_starts_is_kept():
    _, fit = fitted(MOONS, n_components=8, init="random", n_init=6)
    assert len(fit.state.starts) == 6
    assert np.ptp(fit.state.starts) > 0.01
    assert fit.curves["log_density"][-1] == pytest.approx(fit.state.starts.max(), abs=1e-9)


def test_as_a_clustering_it_predicts_the_label():
    params, fit = fitted(IRIS, Task.CLUSTERING, n_init=5)
    labels = gmm.predict(params, fit.state, IRIS)
    assert (labels == gmm.memberships(params, fit.state, IRIS).argmax(axis=1)).all()
    species = datasets.load_iris().target
    assert sum(np.bincount(species[labels == c]).max() for c in range(3)) == 145  # as published of this mixture
    np.testing.assert_array_equal(fit.state.means, fitted(IRIS, n_init=5)[1].state.means)


def test_fewer_distinct_rows_than_components():
    params, fit = fitted(np.repeat(IRIS[:2], 10, axis=0), n_components=5)
    assert fit.warnings[1].endswith("There are only 2 distinct rows, so there are 2 components.")
    assert len(fit.state.shares) == 2
    assert np.isfinite(gmm.predict(params, fit.state, IRIS)).all()


def test_constant_and_collinear_columns_are_reported():
    x = np.column_stack([IRIS[:, :2], np.full(150, 7.0)])
    _, fit = fitted(x, n_components=2)
    assert fit.warnings[0] == "These columns do not vary, so that their variance is the floor: 2."
    variances = covariances(fit.state)[:, 2, 2]
    np.testing.assert_allclose(variances, 1e-6 * x.var(axis=0).mean(), rtol=1e-6)
    _, fit = fitted(np.column_stack([IRIS[:, 0], 2 * IRIS[:, 0]]), n_components=1)
    assert fit.warnings[0].startswith("1 of 1 components have a variance at the floor")


def test_units_shift_the_log_density_and_nothing_else():
    units = np.array([1e9, 1e-9, 1.0, 1e3])
    options = {"tol": 1e-12, "max_iter": 1000}
    (params, one), (_, other) = fitted(IRIS, **options), fitted(IRIS * units, **options)
    found = gmm.predict(params, other.state, IRIS * units) + np.log(units).sum()
    np.testing.assert_allclose(found, gmm.predict(params, one.state, IRIS), rtol=1e-5)
    np.testing.assert_allclose(np.diff(one.state.starts), np.diff(other.state.starts), atol=1e-6)


@pytest.mark.parametrize("contamination", [0, 0.02, 0.5])
def test_a_share_of_the_training_rows_are_anomalies(contamination):
    x = np.random.default_rng(0).normal(size=(500, 3))
    params, fit = fitted(x, contamination=contamination)
    assert gmm.anomaly(params, fit.state, x).mean() == pytest.approx(contamination, abs=0.002)
    assert gmm.anomaly(params, fit.state, np.full((1, 3), 30.0)).tolist() == [contamination > 0]


def test_distances_and_their_tail_are_those_of_the_own_component():
    params, fit = fitted(IRIS)
    distances, labels = gmm.distance(params, fit.state, IRIS), gmm.label(params, fit.state, IRIS)
    inverse = np.linalg.inv(covariances(fit.state))[labels]
    gaps = IRIS - fit.state.means[labels]
    np.testing.assert_allclose(np.square(distances), np.einsum("ni,nij,nj->n", gaps, inverse, gaps), rtol=1e-8)
    tails = gmm.tail_probability(params, fit.state, IRIS)
    np.testing.assert_allclose(tails, stats.chi2(4).sf(np.square(distances)), rtol=1e-9)
