"""Coordinate descent against a plain twin and optimality; sums of products of parts against the rows themselves."""

import numpy as np
import pytest

from app.ml.contract.algorithm import Data, Task
from app.ml.numerics.linear_models.fold_sums import Sums, mean_point
from app.ml.numerics.linear_models.lasso_path import Moments
from app.ml.numerics.linear_models.lasso_rows import LassoRows


def twin(moments, penalty, sweeps=20_000):
    """Every coordinate in its turn, until nothing moves."""
    coef = np.zeros(len(moments.product))
    for _ in range(sweeps):
        before = coef.copy()
        for j in np.flatnonzero(moments.gram.diagonal()):
            alone = moments.product[j] - moments.gram[j] @ coef + moments.gram[j, j] * coef[j]
            coef[j] = np.sign(alone) * max(abs(alone) - penalty / 2, 0) / moments.gram[j, j]
        if np.abs(coef - before).max() <= 1e-15 * np.abs(coef).max():
            break
    return coef


def drawn(rng, n=40, d=8, *, rank=None):
    x = rng.normal(size=(n, rank or d)) @ rng.normal(size=(rank or d, d))
    y = x @ rng.normal(size=d) + rng.normal(size=n)
    return Moments(x.T @ x, x.T @ y, float(y @ y))


@pytest.mark.parametrize("seed", range(8))
def test_as_the_plain_twin(seed):
    moments = drawn(np.random.default_rng(seed))
    penalties = moments.largest * np.array([0.9, 0.3, 0.05, 0.01])
    path = moments.follow(penalties, np.zeros(8), 1e-13, 100_000)
    for penalty, coef in zip(penalties, path.coefs, strict=True):
        np.testing.assert_allclose(coef, twin(moments, penalty), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("n", "d", "rank"), [(60, 60, 60), (30, 80, 80), (50, 40, 10)])
def test_the_gap_closes_on_hard_problems(n, d, rank):
    """As many columns as rows, more, and dependent ones: optimal by the conditions."""
    moments = drawn(np.random.default_rng(n), n, d, rank=rank)
    penalties = moments.largest * np.geomspace(1, 1e-3, 30)
    path = moments.follow(penalties, np.zeros(d), 1e-10, 10_000)
    assert (path.gaps <= 1e-10).all()
    assert path.sweeps.max() < 10_000
    pull = 2 * (moments.product[:, None] - moments.gram @ path.coefs.T)
    assert (np.abs(pull) <= penalties * (1 + 1e-4)).all()


@pytest.mark.parametrize(("n", "d", "rank"), [(30, 80, 80), (50, 40, 10), (60, 200, 12)])
def test_a_working_set_of_columns_comes_to_the_same_path(n, d, rank):
    rng = np.random.default_rng(d)
    a, b = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)), rng.normal(size=n)
    b += a[:, :3].sum(axis=1)
    rows, moments = LassoRows(a, b), Moments(a.T @ a, a.T @ b, float(b @ b))
    penalties = moments.largest * np.geomspace(1, 1e-2, 20)
    for start in (np.zeros(d), rng.normal(size=d) * (np.arange(d) < 5)):
        ours, twins = (problem.follow(penalties, start, 1e-11, 100_000) for problem in (rows, moments))
        assert (ours.gaps <= 1e-11).all()
        pull = 2 * a.T @ (b[:, None] - a @ ours.coefs.T)
        assert (np.abs(pull) <= penalties * (1 + 1e-5)).all()
        for penalty, coef, twin_coef in zip(penalties, ours.coefs, twins.coefs, strict=True):
            values = [((b - a @ c) ** 2).sum() + penalty * np.abs(c).sum() for c in (coef, twin_coef)]
            assert values[0] == pytest.approx(values[1], rel=1e-10)
    few = rows.follow(penalties[-1:], np.zeros(d), 1e-15, 4)
    assert few.sweeps.tolist() == [4]


def test_limits_are_kept():
    moments = drawn(np.random.default_rng(0), 30, 25)
    few = moments.follow(np.array([moments.largest * 1e-3]), np.zeros(25), 1e-15, 4)
    assert few.sweeps.tolist() == [4]
    none = moments.follow(np.array([moments.largest * 1.01]), np.zeros(25), 1e-10, 100)
    assert none.coefs.tolist() == [[0.0] * 25]
    assert none.sweeps.tolist() == [0]


def test_columns_of_zeros_and_no_target():
    zeros = Moments(np.diag([0.0, 4]), np.array([0.0, 2]), 1.0)
    assert zeros.follow(np.array([1.0]), np.zeros(2), 1e-12, 100).coefs.tolist() == [[0, 3 / 8]]
    silent = Moments(np.eye(2), np.zeros(2), 0.0)
    assert silent.follow(np.array([1.0]), np.zeros(2), 1e-12, 100).gaps.tolist() == [0]


def table(rng, n=3000, d=4, shift=0.0):
    return Data.of(
        Task.REGRESSION, rng.normal(size=(n, d)) + shift, rng.normal(size=n) + 5, weights=rng.uniform(1, 3, n)
    )


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_parts_make_the_whole(shift):
    rng = np.random.default_rng(1)
    data = table(rng, shift=shift)
    origin = mean_point(data)
    fold = rng.permutation(3000) % 3
    parts = [Sums.of(data, origin, np.flatnonzero(fold == k)) for k in range(3)]
    for rows, chosen in ((np.arange(3000), parts), (np.flatnonzero(fold != 1), [parts[0], parts[2]])):
        moments, means = Sums.union(chosen).centred(origin)
        w, x, y = data.weights[rows], data.x[rows], data.y[rows]
        a, b = x - np.average(x, axis=0, weights=w), y - np.average(y, weights=w)
        np.testing.assert_allclose(moments.gram, (a.T * w) @ a, rtol=1e-9, atol=1e-6)
        np.testing.assert_allclose(moments.product, a.T @ (w * b), rtol=1e-9, atol=1e-6)
        assert moments.square == pytest.approx(w @ b**2)
        np.testing.assert_allclose(means.inputs, np.average(x, axis=0, weights=w), rtol=1e-14)
    whole, _ = Sums.of(data, origin).centred(origin)
    np.testing.assert_allclose(whole.gram, Sums.union(parts).centred(origin)[0].gram, rtol=1e-10, atol=1e-9)


def test_a_constant_column_leaves_nothing():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(500, 3))
    x[:, 1] = 0.1
    data = Data.of(Task.REGRESSION, x, x[:, 0], weights=rng.uniform(1, 2, 500))
    origin = mean_point(data)
    moments, _ = Sums.of(data, origin).centred(origin)
    assert not moments.gram[1].any()
    assert moments.product[1] == 0


def test_a_column_of_ones_counts_as_an_input():
    data = table(np.random.default_rng(3), n=50)
    origin = mean_point(data)._replace(inputs=np.zeros(4), target=0.0)
    moments = Sums.of(data, origin).with_constant()
    design = np.column_stack([data.x, np.ones(50)])
    np.testing.assert_allclose(moments.gram, (design.T * data.weights) @ design)
    np.testing.assert_allclose(moments.product, design.T @ (data.weights * data.y))
