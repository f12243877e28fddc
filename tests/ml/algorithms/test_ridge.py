"""Ridge against published numbers, identities and scikit-learn."""

import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets
from sklearn.linear_model import Ridge as Peer

from app.ml.algorithms import ridge
from app.ml.contract import Context, Data, Task

NIST = Path(__file__).parents[1] / "data" / "nist"
CORNERS = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
XOR = np.array([0.0, 1, 1, 0])


def fitted(x, y, penalty=1.0, task=Task.REGRESSION, **more):
    data = Data.of(task, x, y, **more)
    return ridge.fit(ridge.Ridge(penalty=penalty), data, Context.of(0))


def nist(name):
    table, certified = (
        list(csv.reader((NIST / file).read_text().splitlines()))[1:]
        for file in (f"{name}.csv", f"{name}.certified.csv")
    )
    rows = np.array(table, float)
    return rows[:, 1:], rows[:, 0], np.array([float(row[1]) for row in certified if row[0].startswith("b")])


@pytest.mark.parametrize(
    ("name", "degree", "digits"),
    [
        ("norris", 1, 12),
        ("longley", 0, 12),
        ("wampler1", 5, 9.5),
        ("wampler2", 5, 12.5),
        ("wampler3", 5, 9),
        ("wampler5", 5, 6),
    ],
)
def test_certified_coefficients(name, degree, digits):
    """NIST StRD, linear regression: significant digits in common with the certified values."""
    x, y, certified = nist(name)
    state = fitted(np.hstack([x**power for power in range(1, degree + 1)]) if degree else x, y, penalty=0).state
    error = np.abs(np.append(state.intercept, state.coef) / certified - 1)
    assert -np.log10(error.max() + 1e-16) > digits


def test_shrinks_an_orthonormal_design_by_one_over_one_plus_penalty():
    """B4.9: least squares (3, 0.4), penalty 1, gives (1.5, 0.2)."""
    x = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]]) / 2  # orthonormal, centred
    y = x @ [3, 0.4]
    np.testing.assert_allclose(fitted(x, y, penalty=0).state.coef, [3, 0.4], rtol=1e-14)
    np.testing.assert_allclose(fitted(x, y, penalty=1).state.coef, [1.5, 0.2], rtol=1e-14)


def test_a_collinear_pair_shares_its_coefficient():
    """B4.9: x2 = x1 + 1e-9 noise, y = 2x1, penalty 1e-3: (0.99973, 0.99973)."""
    x1 = np.array([-1.0, 0, 1]) * np.sqrt(1.85 / 2)  # Σx² = 1.85 gives the published shrinkage
    x = np.column_stack([x1, x1 + 1e-9 * np.array([1, -2, 1])])
    fit = fitted(x, 2 * x1, penalty=1e-3)
    np.testing.assert_allclose(fit.state.coef, [0.99973, 0.99973], atol=5e-6)
    assert fit.warnings == ()
    assert "nearly dependent" in fitted(x, 2 * x1, penalty=0).warnings[0]


def test_xor_is_beyond_a_plane():
    """B4.4: least squares on ±1 finds nothing at all."""
    fit = fitted(CORNERS, XOR, penalty=0, task=Task.CLASSIFICATION)
    np.testing.assert_allclose(fit.state.coef, 0, atol=1e-15)
    np.testing.assert_allclose(ridge.predict(ridge.Ridge(), fit.state, CORNERS), 0.5)


@pytest.mark.parametrize(("target", "coef", "intercept"), [(XOR, [1, 1, -2], 0), (2 * XOR - 1, [2, 2, -4], -1)])
def test_xor_with_the_product_is_a_plane(target, coef, intercept):
    """B4.4: φ = (1, x1, x2, x1x2)."""
    state = fitted(np.column_stack([CORNERS, CORNERS.prod(axis=1)]), target, penalty=0).state
    np.testing.assert_allclose(state.coef, coef, rtol=1e-13)
    np.testing.assert_allclose(state.intercept, intercept, atol=1e-14)


def test_the_shortest_of_many_exact_fits():
    """B4.4: with all quadratic columns XᵀX is singular; the pseudo-inverse gives (0, ½, ½, −2, ½, ½)."""
    x1, x2 = CORNERS.T
    fit = fitted(np.column_stack([x1, x2, x1 * x2, x1**2, x2**2]), XOR, penalty=0)
    np.testing.assert_allclose(fit.state.coef, [0.5, 0.5, -2, 0.5, 0.5], atol=1e-14)
    np.testing.assert_allclose(fit.state.intercept, 0, atol=1e-14)
    assert fit.state.rank == 3
    assert "use a penalty above 0 (ridge)" in fit.warnings[0]


def test_an_equal_score_is_neither_class_and_the_sign_decides():
    """B4.4: classes by the sign of the score; probabilities (1 + s)/2 within reach of the targets."""
    x = np.array([[-1.0], [1.0]])
    state = fitted(x, [0, 1], penalty=0, task=Task.CLASSIFICATION).state
    answer = ridge.predict(ridge.Ridge(), state, np.array([[-5.0], [-0.5], [0], [0.5], [5]]))
    np.testing.assert_allclose(answer[:, 1], [0, 0.25, 0.5, 0.75, 1], atol=1e-15)


def test_where_every_score_is_low_the_largest_takes_all():
    state = ridge.State(np.array([[1.0, 2.0, 3.0]]), np.array([-2.0, -4.0, -6.0]), 1, 1.0)
    np.testing.assert_allclose(ridge.predict(ridge.Ridge(), state, np.array([[0.5]])), [[1, 0, 0]])
    tied = ridge.State(np.zeros((1, 3)), np.full(3, -2.0), 1, 1.0)
    np.testing.assert_allclose(ridge.predict(ridge.Ridge(), tied, np.array([[0.5]])), [[1 / 3] * 3])


def test_the_largest_score_always_wins():
    """Also beyond 1, where a cut would make classes equal."""
    state = ridge.State(np.array([[1.4, 1.9, -3.0]]), np.zeros(3), 1, 1.0)
    assert ridge.predict(ridge.Ridge(), state, np.array([[1.0]])).argmax() == 1


@pytest.mark.parametrize("penalty", [1e-6, 1.0, 1e4])
def test_as_low_as_the_peer(penalty):
    x, y = datasets.load_diabetes(return_X_y=True)
    data = Data.of(Task.REGRESSION, x, y)
    peer = Peer(alpha=penalty, solver="svd").fit(x, y)
    params = ridge.Ridge(penalty=penalty)
    state = ridge.fit(params, data, Context.of(0)).state
    theirs = ridge.State(peer.coef_, np.asarray(peer.intercept_), 10, 1.0)
    assert ridge.objective(params, state, data) <= ridge.objective(params, theirs, data) * (1 + 1e-12)
    np.testing.assert_allclose(state.coef, peer.coef_, rtol=1e-9, atol=1e-9)


def test_weights_agree_with_the_peer():
    x, y = datasets.load_diabetes(return_X_y=True)
    weights = np.random.default_rng(0).uniform(0.1, 3, len(y))
    peer = Peer(alpha=0.01, solver="svd").fit(x, y, sample_weight=weights)
    np.testing.assert_allclose(fitted(x, y, 0.01, weights=weights).state.coef, peer.coef_, rtol=1e-9)


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 50)), rng.normal(size=20)
    np.testing.assert_allclose(fitted(x, y, 0.1).state.coef, Peer(alpha=0.1).fit(x, y).coef_, rtol=1e-9, atol=1e-12)
    exact = fitted(x, y, 0)
    np.testing.assert_allclose(ridge.predict(ridge.Ridge(), exact.state, x), y, rtol=1e-9)
    centred = x - x.mean(axis=0)
    np.testing.assert_allclose(exact.state.coef, np.linalg.pinv(centred) @ (y - y.mean()), rtol=1e-9, atol=1e-12)


def test_the_summary_says_how_firm_the_ground_is():
    x = np.random.default_rng(0).normal(size=(100, 3))
    state = fitted(x, x @ [1, 2, 3]).state
    told = ridge.summary(ridge.Ridge(), state)
    assert told["rank"] == 3
    unit = x - x.mean(axis=0)
    assert told["condition_number"] == pytest.approx(np.linalg.cond(unit / np.linalg.norm(unit, axis=0)), rel=1e-9)
    flat = fitted(np.column_stack([x, np.full(100, 7.0)]), x @ [1, 2, 3])
    assert flat.state.rank == 3
    assert ridge.summary(ridge.Ridge(), flat.state)["condition_number"] is None
    assert flat.state.coef[3] == 0
