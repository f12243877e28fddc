"""Metric learning: losses beside plain sums and scikit-learn, slopes beside differences, optimality of pairs, and
neighbours of rows held out.
"""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import optimize
from scipy.spatial.distance import cdist, pdist
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis

from app.ml.algorithms.metric_learning import ALGORITHM, MetricLearning, fit, predict
from app.ml.contract.algorithm import Context, Data, Inputs, Size, TargetKind, Task
from app.ml.contract.relations import Edges, Form, Meaning, Relations
from app.ml.numerics.metric_learning import class_blocks, neighbourhood_components
from app.ml.numerics.metric_learning.class_blocks import ClassRows
from app.ml.numerics.metric_learning.large_margin import Margins, target_neighbours
from app.ml.numerics.metric_learning.neighbourhood_components import expected_error
from app.ml.numerics.metric_learning.pair_ratio import PairRatio

RNG = np.random.default_rng(4)
X = RNG.normal(size=(40, 3)) * [1.0, 0.5, 2.0]
CODES = np.sort(RNG.integers(0, 3, 40))
WEIGHTS = RNG.uniform(0.5, 2, 40)
ROWS = ClassRows.of(X, CODES, WEIGHTS)
FACTOR = RNG.normal(size=(2, 3))
ALONE = ClassRows.of(X, CODES, np.ones(40))


def labelled(x, y, **more):
    return Data.of(Task.PROJECTION, x, y, target=TargetKind.CLASSES, **more)


def learned(x, y, **params):
    params = MetricLearning(**params)
    result = fit(params, labelled(x, y), Context.of(0))
    return result, lambda rows: predict(params, result.state, rows)


def edges_of(pairs):
    pairs = sorted(pairs)
    return Edges(*(np.array(part) for part in zip(*pairs, strict=True)))


def of_pairs(x, pairs, **params):
    data = Data.of(Task.PROJECTION, x, relations=Relations(Meaning.CONSTRAINT, edges=edges_of(pairs)))
    params = MetricLearning(method="pairs", **params)
    result = fit(params, data, Context.of(0))
    return result, lambda rows: predict(params, result.state, rows)


def drawn_pairs(y, count, seed=0):
    rng = np.random.default_rng(seed)
    drawn = {tuple(sorted(rng.choice(len(y), 2, replace=False).tolist())) for _ in range(count)}
    return [(i, j, 1.0 if y[i] == y[j] else -1.0) for i, j in drawn]


def standardised(x):
    spread = x.std(axis=0)
    return (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1)


def pair_ratio():
    pairs = edges_of(drawn_pairs(CODES, 60))
    return PairRatio.of(X, pairs, 0.1, diagonal=False)


LOSSES = {
    "nca": lambda factor: expected_error(ROWS, factor),
    "lmnn": Margins.of(ROWS, 3, 0.4).loss,
    "pairs": pair_ratio().loss,
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_slope_is_that_of_differences(name):
    loss = LOSSES[name]
    found = loss(FACTOR)[1].ravel()
    expected = optimize.approx_fprime(FACTOR.ravel(), lambda flat: loss(flat.reshape(2, 3))[0], 1e-7)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_expected_error_is_its_definition(monkeypatch):
    monkeypatch.setattr(class_blocks, "BLOCK", 100)
    shares = ROWS.weights * np.exp(-cdist(ROWS.x @ FACTOR.T, ROWS.x @ FACTOR.T, "sqeuclidean"))
    np.fill_diagonal(shares, 0)
    right = ((CODES[:, None] == CODES) * shares).sum(axis=1) / shares.sum(axis=1)
    assert expected_error(ROWS, FACTOR)[0] == pytest.approx(1 - ROWS.weights @ right / 40, rel=1e-12)


def test_the_margin_loss_is_its_definition(monkeypatch):
    monkeypatch.setattr(class_blocks, "BLOCK", 100)
    far, targets = cdist(ROWS.x @ FACTOR.T, ROWS.x @ FACTOR.T, "sqeuclidean"), target_neighbours(ROWS, 3)
    total = 0.0
    for i, near in enumerate(targets):
        for j in near:
            total += 0.6 * ROWS.weights[i] * far[i, j]
            others = np.flatnonzero(CODES[i] != CODES)
            total += 0.4 * ROWS.weights[i] * ROWS.weights[others] @ np.maximum(0, 1 + far[i, j] - far[i, others])
    assert Margins.of(ROWS, 3, 0.4).loss(FACTOR)[0] == pytest.approx(total / 40, rel=1e-12)


def test_target_neighbours_are_scikit_learns():
    found = target_neighbours(ROWS, 4)
    for code in range(3):
        own = np.flatnonzero(code == CODES)
        peer = KNeighborsClassifier(5).fit(X[own], CODES[own]).kneighbors(X[own], return_distance=False)[:, 1:]
        np.testing.assert_array_equal(found[own], own[peer])


def test_a_class_with_few_rows_has_fewer_targets():
    rows = ClassRows.of(X[:4], np.array([0, 0, 1, 2]), np.ones(4))
    assert target_neighbours(rows, 2).tolist() == [[1, 0], [0, 1], [2, 2], [3, 3]]
    assert np.isfinite(Margins.of(rows, 2, 0.5).loss(np.eye(3))[0])


@pytest.mark.parametrize("load", [datasets.load_iris, datasets.load_wine])
def test_the_expected_error_is_scikit_learns(load):
    x, y = load(return_X_y=True)
    x = standardised(x)
    peer = NeighborhoodComponentsAnalysis(init="identity", max_iter=100).fit(x, y)
    rows = ClassRows.of(x, y, np.ones(len(x)))
    result, _ = learned(x, y)
    assert result.curves["loss"][0] == pytest.approx(expected_error(rows, np.eye(x.shape[1]))[0], rel=1e-9)
    assert result.curves["loss"][-1] < expected_error(rows, peer.components_)[0] + 0.005
    assert result.converged


def test_single_precision_is_near_double(monkeypatch):
    x, y = datasets.load_digits(return_X_y=True)
    rows = ClassRows.of(standardised(x[:300]), y[:300], np.ones(300))
    factor = np.random.default_rng(0).normal(size=(5, 64)) / 8
    value, slope = expected_error(rows, factor)
    monkeypatch.setattr(neighbourhood_components, "SINGLE_ROWS", 1)
    single, approximate = expected_error(rows, factor)
    assert single != value
    assert single == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(approximate, slope, atol=1e-5 * np.abs(slope).max())


@pytest.mark.parametrize("method", ["nca", "lmnn"])
def test_a_turn_a_shift_and_a_common_factor_change_no_distance(method):
    x, y = datasets.load_wine(return_X_y=True)
    x = standardised(x)
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(13, 13)))
    _, plain = learned(x, y, method=method, max_iter=20)
    moved = 1000 * (x @ turn) + 7
    _, other = learned(moved, y, method=method, max_iter=20)
    np.testing.assert_allclose(pdist(other(moved)), pdist(plain(x)), rtol=1e-5)


@pytest.mark.parametrize("method", ["nca", "lmnn"])
def test_the_order_of_rows_changes_no_bit(method):
    x, y = datasets.load_iris(return_X_y=True)
    x = x + np.random.default_rng(2).normal(size=x.shape) / 1000  # no two rows are the same
    order = np.random.default_rng(3).permutation(len(x))
    one, other = (learned(x[rows], y[rows], method=method)[0].state for rows in (np.arange(len(x)), order))
    assert one.loadings.tobytes() == other.loadings.tobytes()


def test_coordinates_vary_less_and_less_and_fewer_are_kept():
    x, y = datasets.load_wine(return_X_y=True)
    result, z = learned(standardised(x), y, n_components=2)
    variance = z(standardised(x)).var(axis=0)
    np.testing.assert_allclose(result.state.variance, variance)
    assert variance.size == 2
    assert variance[0] >= variance[1]
    assert learned(x[:, :2], y, n_components=5)[0].warnings == ["There are only 2 directions, not 5."]


@pytest.mark.parametrize("method", ["nca", "lmnn"])
def test_an_irrelevant_column_loses_its_weight(method):
    rng = np.random.default_rng(6)
    y = np.arange(120) % 2
    x = np.column_stack([2.0 * y + 0.3 * rng.normal(size=120), 3 * rng.normal(size=120)])
    weights = ALGORITHM.summary(MetricLearning(), learned(x, y, method=method, metric_form="diagonal")[0].state)
    assert weights["column_weights"][1] < 0.05 * weights["column_weights"][0]


def test_one_class_has_the_plain_metric():
    result, z = learned(X, np.zeros(40))
    assert result.warnings == ["There are fewer than two classes: the metric is the plain one."]
    ratio = pdist(z(X)) / pdist(X)
    np.testing.assert_allclose(ratio, ratio[0])


@pytest.mark.parametrize("metric_form", ["full", "diagonal"])
def test_pairs_that_belong_together_come_nearer_than_those_that_do_not(metric_form):
    x, y = datasets.load_wine(return_X_y=True)
    x = standardised(x)
    pairs = drawn_pairs(y, 300)
    must, cannot = (edges_of([pair for pair in pairs if sign * pair[2] > 0]) for sign in (1, -1))

    def ratio(z):
        near, far = (np.linalg.norm(z[some.first] - z[some.second], axis=1).mean() for some in (must, cannot))
        return near / far

    result, z = of_pairs(x, pairs, metric_form=metric_form)
    assert result.converged
    assert result.warnings == []
    assert ratio(z(x)) < 0.9 * ratio(x)
    assert np.linalg.norm(z(x)[cannot.first] - z(x)[cannot.second], axis=1).mean() == pytest.approx(1)


def test_no_other_metric_of_pairs_is_better():
    """Karush, Kuhn and Tucker: no direction gains more for its share of the constraint than those that have one."""
    pairs = pair_ratio()

    def flat_loss(flat):
        value, slope = pairs.loss(flat.reshape(3, 3))
        return value, slope.ravel()

    factor = optimize.minimize(flat_loss, np.eye(3).ravel(), jac=True, options={"gtol": 1e-9}).x.reshape(3, 3)
    data = Data.of(Task.PROJECTION, X, relations=Relations(Meaning.CONSTRAINT, edges=edges_of(drawn_pairs(CODES, 60))))
    ours = fit(MetricLearning(method="pairs", tol=1e-12), data, Context.of(0)).curves["loss"][-1]
    assert ours == pytest.approx(pairs.loss(factor)[0], abs=1e-6)
    far = np.linalg.norm(pairs.gaps @ factor.T, axis=1)
    gain = (pairs.gaps * (pairs.weights / far)[:, None]).T @ pairs.gaps / (pairs.weights @ far)
    values = np.linalg.eigvalsh(gain) * np.square(factor).sum()
    assert values.max() == pytest.approx(1, abs=1e-3)


def test_pairs_that_only_belong_together_have_the_inverse_of_their_scatter():
    """Relevant component analysis."""
    pairs = [(i, i + 1, 1.0) for i in range(0, 40, 2)]
    result, _ = of_pairs(X, pairs, shrinkage=0)
    gaps = X[::2] - X[1::2]
    metric = result.state.loadings.T @ result.state.loadings
    np.testing.assert_allclose(metric @ (gaps.T @ gaps / 20), np.eye(3), atol=1e-9)
    assert result.warnings == ["No pair cannot be together: the metric only draws together those that must be."]


def test_an_irrelevant_column_of_pairs_has_no_weight():
    rng = np.random.default_rng(8)
    y = np.arange(100) % 2
    x = np.column_stack([y + 0.1 * rng.normal(size=100), rng.normal(size=100)])
    result, _ = of_pairs(x, drawn_pairs(y, 200), metric_form="diagonal", shrinkage=0, tol=1e-10)
    weights = np.square(result.state.loadings).sum(axis=0)
    assert weights[1] < 1e-6 * weights[0]


@pytest.mark.parametrize(
    ("params", "classes", "relations", "pointers"),
    [
        ({}, 3, None, []),
        ({}, 0, None, ["/method"]),
        ({"method": "lmnn"}, 3, Form.PAIRS, ["/method"]),
        ({"method": "pairs"}, 0, Form.PAIRS, []),
        ({"method": "pairs"}, 3, None, ["/method", "/method"]),
        ({"metric_form": "diagonal", "n_components": 2}, 0, None, ["/method", "/n_components"]),
    ],
)
def test_parameters_and_data_fit_each_other(params, classes, relations, pointers):
    inputs = Inputs({}, Size(10, 2, classes), relations)
    assert [fault.pointer for fault in ALGORITHM.faults(MetricLearning(**params), inputs)] == pointers


def six_tables():
    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield name, *getattr(datasets, f"load_{name}")(return_X_y=True)
    votes = sm.datasets.anes96.load_pandas()
    yield "anes96", votes.exog.drop(columns="vote", errors="ignore").to_numpy(float), votes.data["vote"].to_numpy(int)
    fair = sm.datasets.fair.load_pandas()
    yield "fair", fair.exog.to_numpy(float)[::4], (fair.endog.to_numpy()[::4] > 0).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["nca", "lmnn"])
@pytest.mark.parametrize(("name", "x", "y"), list(six_tables()), ids=lambda part: part if isinstance(part, str) else "")
def test_neighbours_of_rows_held_out_are_no_worse(method, name, x, y):
    """By no more than one standard error, of folds that share rows."""
    leads = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(x, y):
        mean, spread = x[train].mean(axis=0), x[train].std(axis=0)
        one, other = ((x[rows] - mean) / np.where(spread > 0, spread, 1) for rows in (train, test))
        _, z = learned(one, y[train], method=method)
        own, plain = (
            KNeighborsClassifier(5).fit(a, y[train]).score(b, y[test]) for a, b in ((z(one), z(other)), (one, other))
        )
        leads.append(own - plain)
    error = np.std(leads, ddof=1) * np.sqrt(1 / 5 + 1 / 4)
    assert np.mean(leads) >= -error - 1e-9
