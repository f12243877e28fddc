"""Selected columns against fits by least squares."""

import numpy as np
import pytest
from sklearn import datasets, linear_model, preprocessing

from app.base.errors import InvalidData
from app.ml.algorithms import select_columns
from app.ml.contract.algorithm import Context, Data, Task

WINE = preprocessing.scale(datasets.load_wine().data)


def fitted(x, weights=None, names=(), **params):
    params = select_columns.SelectColumns(**params)
    data = Data.of(Task.PROJECTION, x, weights=weights, names=names)
    return params, select_columns.fit(params, data, Context.of(0))


def explained(x, kept, weights=None):
    """Share of the variance of all columns that a linear fit by these explains."""
    peer = linear_model.LinearRegression().fit(x[:, kept], x, weights)
    mean = np.average(x, axis=0, weights=weights)
    left, all_of_it = (
        np.average(np.square(part), axis=0, weights=weights).sum() for part in (x - peer.predict(x[:, kept]), x - mean)
    )
    return 1 - left / all_of_it


@pytest.mark.parametrize("weighted", [False, True])
def test_each_column_explains_the_most(weighted):
    weights = np.random.default_rng(0).uniform(0.2, 3, len(WINE)) if weighted else None
    _, fit = fitted(WINE, weights, n_components=5)
    for place in range(5):
        before, chosen = fit.state.kept[:place].tolist(), fit.state.kept[place]
        rest = [j for j in range(13) if j not in before]
        shares = {j: explained(WINE, [*before, j], weights) for j in rest}
        assert max(shares, key=shares.get) == chosen
        assert fit.state.explained[place] == pytest.approx(shares[chosen], rel=1e-9)


def test_columns_are_kept_as_they_are_and_restore_the_others():
    params, fit = fitted(WINE, n_components=4)
    z = select_columns.predict(params, fit.state, WINE)
    np.testing.assert_array_equal(z, WINE[:, fit.state.kept])
    peer = linear_model.LinearRegression().fit(z, WINE)
    rebuilt = select_columns.inverse(params, fit.state, z)
    np.testing.assert_allclose(rebuilt, peer.predict(z), atol=1e-10)
    np.testing.assert_allclose(rebuilt[:, fit.state.kept], z, atol=1e-12)
    lost = select_columns.lost(params, fit.state, WINE)
    assert (lost**2).sum() == pytest.approx((1 - fit.state.explained[-1]) * WINE.size, rel=1e-9)


def test_columns_that_others_make_up_are_never_chosen():
    x = np.column_stack([WINE[:, :3], WINE[:, 0] + WINE[:, 1], np.ones(len(WINE))])
    params, fit = fitted(x, n_components=5)
    assert len(fit.state.kept) == 3
    assert 4 not in fit.state.kept
    assert fit.state.explained[-1] == pytest.approx(1, abs=1e-12)
    assert fit.warnings[0] == "There are only 3 columns to choose, not 5: they make up the others."
    np.testing.assert_allclose(select_columns.inverse(params, fit.state, x[:, fit.state.kept]), x, atol=1e-12)


def test_named_columns_come_in_their_order_once():
    names = ("age", "plan=pro", "plan=free", "planet")
    _, fit = fitted(WINE[:, :4], names=names, column_names=["planet", "plan", "plan=pro"])
    assert fit.state.kept.tolist() == [3, 1, 2]
    shares = [explained(WINE[:, :4], [3, 1, 2][:k]) for k in (1, 2, 3)]
    np.testing.assert_allclose(fit.state.explained, shares, rtol=1e-9)


def test_named_columns_may_depend_on_each_other():
    x = np.column_stack([WINE[:, 0], 2 * WINE[:, 0], WINE[:, 1]])
    params, fit = fitted(x, names=("a", "b", "c"), column_names=["b", "a"])
    assert fit.state.explained[0] == pytest.approx(fit.state.explained[1])
    rebuilt = select_columns.inverse(params, fit.state, x[:, [1, 0]])
    np.testing.assert_allclose(rebuilt[:, :2], x[:, :2], atol=1e-12)
    assert np.isfinite(rebuilt).all()


def test_names_that_preparation_left_out():
    with pytest.raises(InvalidData, match="None of the columns to keep is left"):
        fitted(WINE[:, :2], names=("a", "b"), column_names=["c"])
