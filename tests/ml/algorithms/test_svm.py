"""Support vector machines for classes against published numbers, identities and libsvm."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from app.base.errors import InvalidData
from app.ml.algorithms import perceptron, svm
from app.ml.contract.algorithm import Affine, Context, Data, Meaning, Task
from app.ml.contract.relations import Relations
from app.ml.contract.sparse_rows import SparseRows
from app.ml.numerics.kernel_functions.anova_kernel import Anova
from app.ml.numerics.kernel_functions.linear_kernel import Linear
from app.ml.numerics.kernel_functions.polynomial_kernel import Polynomial
from app.ml.numerics.kernel_functions.rbf_kernel import Rbf
from app.ml.numerics.kernel_functions.sigmoid_kernel import Sigmoid

HARD = {"C": None, "kernel": "linear", "tol": 1e-9, "cv": None}


def of(x, y, **more):
    return Data.of(Task.CLASSIFICATION, x, y, **more)


def fitted(data, seed=0, **params):
    params = svm.SVM(**params)
    return params, svm.fit(params, data, Context.of(seed)).state


def given(square, y):
    square = np.ascontiguousarray(square)
    square.setflags(write=False)
    return of(square, y, relations=Relations(Meaning.KERNEL, square))


def separable(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 3))
    y = (x @ [1.0, -2.0, 0.5] > 0) * 1
    x += np.where(y, 0.2, -0.2)[:, None] * np.array([1.0, -2.0, 0.5])
    return x, y


def scaled(name):
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1), y


def test_two_points():
    """S7: λ = (¼, ¼), w = (½, ½), b = 0, width 2√2, and Σλ = ‖w‖²."""
    _, state = fitted(of([[1.0, 1], [-1, -1]], [1, 0]), **HARD)
    np.testing.assert_allclose(state.machine.weights, [[0.5, 0.5]], atol=1e-9)
    np.testing.assert_allclose(state.machine.coef, [[0.25, -0.25]], atol=1e-9)
    assert state.machine.intercept[0] == pytest.approx(0, abs=1e-12)
    assert state.margins[0] == pytest.approx(2 * np.sqrt(2))
    assert np.abs(state.machine.coef).sum() == pytest.approx((state.machine.weights**2).sum())


def test_xor_by_a_polynomial():
    """S10: λ = ⅛ each, b = 0, values ±1; as a given Gram matrix as well."""
    x, y = np.array([[-1.0, -1], [-1, 1], [1, -1], [1, 1]]), [0, 1, 1, 0]
    params, state = fitted(of(x, y), **HARD | {"kernel": "poly"}, degree=2, gamma=1.0, coef0=1.0)
    np.testing.assert_allclose(state.machine.coef, [[-0.125, 0.125, 0.125, -0.125]], atol=1e-9)
    np.testing.assert_allclose(svm.decision(params, state, x)[:, 0], [-1, 1, 1, -1], atol=1e-9)
    square = (1 + x @ x.T) ** 2
    params, state = fitted(given(square, y), **HARD)
    np.testing.assert_allclose(svm.decision(params, state, square)[:, 0], [-1, 1, 1, -1], atol=1e-9)


def test_features_of_a_polynomial():
    """S10: φ(x) = (1, √2 x, x²) reproduces (1 + xy)²; S11: with degree 1 it is the linear kernel and 1."""
    x = np.random.default_rng(0).normal(size=(6, 1))
    features = np.column_stack([np.ones(6), np.sqrt(2) * x, x**2])
    np.testing.assert_allclose(Polynomial(1.0, 2, 1.0).matrix(x, x), features @ features.T, rtol=1e-12)
    np.testing.assert_allclose(Polynomial(1.0, 1, 1.0).matrix(x, x), 1 + Linear().matrix(x, x), rtol=1e-14)


KERNELS = [Linear(), Polynomial(0.5, 3, 1.0), Rbf(np.array([0.5])), Anova(0.5, 1), Anova(0.5, 2), Anova(0.5, 3)]


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_positive_semidefinite(kernel):
    """S11."""
    x = np.random.default_rng(1).normal(size=(40, 3))
    square = kernel.matrix(x, x)
    np.testing.assert_array_equal(square, square.T)
    np.testing.assert_allclose(square.diagonal(), kernel.diagonal(x), rtol=1e-12)
    values = np.linalg.eigvalsh(square)
    assert values[0] >= -1e-12 * values[-1]


def test_the_sigmoid_kernel_is_refused_or_projected():
    """S11: it is not positive semidefinite in general."""
    x, y = scaled("iris")
    sigmoid = {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0}
    least = np.linalg.eigvalsh(Sigmoid(1.0, -1.0).matrix(x, x))[0]
    assert least < -1
    with pytest.raises(InvalidData, match=r"smallest eigenvalue is -\d") as refused:
        fitted(of(x, y), **sigmoid)
    assert f"{least:.3g}" in str(refused.value)
    params, state = fitted(of(x, y), **sigmoid, indefinite="project")
    report = svm.summary(params, state)
    assert report["kernel_projected"]
    assert report["smallest_eigenvalue_share"] < 0
    assert report["duality_gap"] < 1e-3
    assert (svm.predict(params, state, x).argmax(axis=1) == y).mean() > 0.8


def test_a_projected_kernel_decides_as_the_nearest_definite_one():
    x, y = scaled("iris")
    x, y = x[50:], y[50:] - 1
    square = Sigmoid(1.0, -1.0).matrix(x, x)
    values, vectors = np.linalg.eigh(square)
    nearest = (vectors * np.maximum(values, 0)) @ vectors.T
    params, state = fitted(given(square, y), indefinite="project", tol=1e-8, cv=None)
    theirs = SVC(kernel="precomputed", tol=1e-8).fit(nearest, y)
    np.testing.assert_allclose(svm.decision(params, state, square)[:, 0], theirs.decision_function(nearest), atol=1e-5)


def test_a_hard_margin():
    """S6, S7: y f ≥ 1, as wide as that of no other plane, and none of the other rows has a part in it."""
    x, y = separable()
    data = of(x, y)
    params, state = fitted(data, **HARD)
    sides = np.where(y, 1, -1) * svm.decision(params, state, x)[:, 0]
    assert sides.min() == pytest.approx(1, abs=1e-7)
    np.testing.assert_allclose(sides[state.machine.places], 1, atol=1e-7)
    other = perceptron.fit(perceptron.Perceptron(), data, Context.of(0)).state
    signed = np.where(y, 1, -1) * (x @ other.coef[1, :-1] + other.coef[1, -1])
    assert state.margins[0] / 2 >= signed.min() / np.linalg.norm(other.coef[1, :-1]) > 0
    again = fitted(data.take(state.machine.places), **HARD)[1]
    np.testing.assert_allclose(again.machine.weights, state.machine.weights, rtol=1e-6)
    np.testing.assert_allclose(again.machine.intercept, state.machine.intercept, atol=1e-6)
    large = fitted(data, **HARD | {"C": 1e6})[1]  # S8: C → ∞
    np.testing.assert_allclose(large.machine.weights, state.machine.weights, rtol=1e-6)


@pytest.mark.parametrize("x", [[[0, 0], [1, 1], [0, 1], [1, 0]], [[0.0, 0], [0, 0], [1, 1], [1, 1]]])
def test_no_hard_margin(x):
    """S6: XOR by a plane, and equal rows of other classes by anything."""
    with pytest.raises(InvalidData, match="hard margin does not exist"):
        fitted(of(x, [0, 0, 1, 1] if x[0] != x[1] else [0, 1, 0, 1]), **HARD)


def test_no_hard_margin_of_overlapping_classes():
    x, y = datasets.load_breast_cancer(return_X_y=True)
    with pytest.raises(InvalidData, match="hard margin does not exist"):
        fitted(of(x[:, :2], y), **HARD)


def test_slack_and_costs():
    """S8: λ = C beyond the margin, the hinge falls with C. S9: so does that of a class with its own cost."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(80, 2)), rng.integers(0, 2, 80)
    x[:, 0] += y

    def slack(rows=slice(None), weights=None, cost=1.0):
        data = of(x, y, weights=weights)
        params, state = fitted(data, C=cost, tol=1e-6, cv=None)
        sides = np.where(y, 1, -1) * svm.decision(params, state, x)[:, 0]
        coef = np.zeros(80)
        coef[state.machine.places] = np.abs(state.machine.coef[0])
        bound = cost * (np.ones(80) if weights is None else weights)
        np.testing.assert_allclose(coef[sides < 1 - 1e-4], bound[sides < 1 - 1e-4])
        assert (coef[sides > 1 + 1e-4] == 0).all()
        return np.maximum(0, 1 - sides)[rows].sum()

    by_cost = [slack(cost=cost) for cost in (0.01, 0.1, 1, 10)]
    assert (np.diff(by_cost) <= 1e-5).all()
    of_class = [slack(y == 1, np.where(y, factor, 1.0)) for factor in (0.3, 1, 3, 10)]
    assert (np.diff(of_class) <= 1e-5).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_decision_values_of_libsvm(kernel):
    x, y = scaled("wine")
    params, state = fitted(of(x, y), kernel=kernel, tol=1e-6, cv=None)
    theirs = SVC(kernel=kernel, tol=1e-6, decision_function_shape="ovo").fit(x, y)
    np.testing.assert_allclose(-svm.decision(params, state, x), theirs.decision_function(x), atol=1e-4)
    assert state.machine.places.tolist() == sorted(theirs.support_.tolist())


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
@pytest.mark.parametrize("multiclass", ["one_vs_one", "one_vs_rest"])
def test_held_out_rows_are_predicted_as_well_as_by_libsvm(name, multiclass):
    """Within one standard error of its accuracy."""
    x, y = scaled(name)
    ours, theirs, losses = [], [], []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(x, y):
        params, state = fitted(of(x[train], y[train]), multiclass=multiclass)
        p = svm.predict(params, state, x[test])
        ours.append(p.argmax(axis=1) == y[test])
        theirs.append(SVC().fit(x[train], y[train]).predict(x[test]) == y[test])
        losses.append(-np.log(p[np.arange(len(test)), y[test]]))
    ours, theirs = np.concatenate(ours), np.concatenate(theirs)
    assert ours.mean() >= theirs.mean() - theirs.std() / np.sqrt(len(y))
    assert np.concatenate(losses).mean() < 0.25


def test_a_given_kernel_is_that_of_the_rows():
    x, y = scaled("wine")
    square = x @ x.T
    by_square = fitted(given(square, y), tol=1e-7, cv=None)
    by_rows = fitted(of(x, y), tol=1e-7, cv=None, kernel="linear")
    np.testing.assert_allclose(svm.decision(*by_square, square), svm.decision(*by_rows, x), atol=1e-5)


def test_shares_without_folds():
    """(1 ± f)/2 cut off at 0 and 1; of three classes the mean of those of pairs."""
    x, y = scaled("iris")
    params, state = fitted(of(x, y), cv=None)
    f = svm.decision(params, state, x)
    share = np.clip((1 + f) / 2, 0, 1)
    expected = np.column_stack([(2 - share[:, 0] - share[:, 1]), share[:, 0] + 1 - share[:, 2], share[:, 1:].sum(1)])
    np.testing.assert_allclose(svm.predict(params, state, x), expected / 3, atol=1e-14)


def test_the_report_names_rows_and_bounds():
    """S3, S5: the capacity of the machine, h ≤ min(⌈R²‖w‖²⌉, d) + 1, and the risk."""
    x, y = separable()
    numbers = np.arange(100, 160)
    items = np.array([f"row {i}" for i in numbers])
    params, state = fitted(of(x, y, numbers=numbers, items=items), **HARD)
    report = svm.summary(params, state)
    (machine,) = report["machines"]
    assert report["support_vector_items"] == [f"row {i}" for i in report["support_vector_rows"]]
    assert min(report["support_vector_rows"]) >= 100
    radius = np.linalg.norm(x - x.mean(axis=0), axis=1).max()
    assert report["radius"] == pytest.approx(radius)
    assert machine["vc_dimension"] == min(np.ceil((2 * radius / machine["margin"]) ** 2), 3) + 1
    assert machine["training_errors"] == 0
    assert 0 < machine["risk_bound"] <= 1


def test_every_kernel_is_fitted():
    x, y = scaled("iris")
    for kernel, multiclass in itertools.product(["linear", "poly", "rbf", "anova"], ["one_vs_one", "one_vs_rest"]):
        params, state = fitted(of(x, y), kernel=kernel, multiclass=multiclass)
        assert (svm.predict(params, state, x).argmax(axis=1) == y).mean() > 0.85, kernel


@pytest.mark.parametrize("multiclass", ["one_vs_one", "one_vs_rest"])
def test_sparse_rows_have_the_machines_of_dense_ones(multiclass):
    rng = np.random.default_rng(4)
    x = rng.poisson(0.1, (240, 60)) * rng.exponential(size=60)
    y = (x @ rng.normal(size=(60, 3)) + 0.3 * rng.normal(size=(240, 3))).argmax(axis=1)
    dense = of(x, y, weights=rng.choice([0.5, 1.5], 240))
    rows = SparseRows(scipy.sparse.csr_array(x))
    sparse = replace(dense, x=rows)
    params, state = fitted(sparse, kernel="linear", multiclass=multiclass, tol=1e-6)
    _, other = fitted(dense, kernel="linear", multiclass=multiclass, tol=1e-6)
    np.testing.assert_allclose(svm.decision(params, state, rows), svm.decision(params, other, x), atol=1e-4)
    np.testing.assert_allclose(svm.predict(params, state, rows), svm.predict(params, other, x), atol=1e-3)
    np.testing.assert_array_equal(svm.predict(params, state, rows[5:6])[0], svm.predict(params, state, rows)[5])
    np.testing.assert_allclose(state.objectives, other.objectives, rtol=1e-5)
    assert svm.capacity(params, state, sparse).margin_dimension == pytest.approx(61, abs=1)
    towards = svm.terms(params, state)
    assert towards.shape == (60, 3)
    scores = rows @ towards
    assert (scores.argmax(axis=1) == y).mean() > 0.9


def test_a_linear_machine_can_be_read():
    """Multipliers, planes and intercepts are those of the peer, in the columns and in the table's own units."""
    x, y = datasets.load_iris(return_X_y=True)
    mean, spread = x.mean(axis=0), x.std(axis=0)
    params, state = fitted(of((x - mean) / spread, y), kernel="linear", tol=1e-9, cv=None)
    report = svm.summary(params, state)
    theirs = SVC(kernel="linear", tol=1e-9).fit((x - mean) / spread, y)
    np.testing.assert_allclose(report["coefficients"], -theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(report["intercepts"], -theirs.intercept_, atol=1e-5)
    duals = np.array(report["dual_coefficients"])
    rows = (x[report["support_vector_rows"]] - mean) / spread
    np.testing.assert_allclose(duals @ rows, report["coefficients"], atol=1e-9)
    units = Affine(scipy.sparse.diags_array(1 / spread).tocsr(), -mean / spread)
    unscaled = svm.ALGORITHM.unscaled(params, state, units)
    values = x @ np.array(unscaled["coefficients"]).T + unscaled["intercepts"]
    np.testing.assert_allclose(values, svm.decision(params, state, (x - mean) / spread), atol=1e-9)
    params, state = fitted(of(x, y))
    assert svm.ALGORITHM.unscaled(params, state, units) is None
    assert "coefficients" not in svm.summary(params, state)
