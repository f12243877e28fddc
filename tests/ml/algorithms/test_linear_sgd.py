"""Gradient descent against the pseudo-inverse, the rule of Widrow and Hoff, a plain twin and scikit-learn's minima."""

import warnings

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn import datasets
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.svm import SVC, SVR

from app.ml.algorithms import linear_sgd
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.linear_models.interior_point import proven
from app.ml.numerics.linear_models.losses import Loss, MeanLoss, losses, slopes
from app.ml.numerics.linear_models.stochastic_gradient import sgd_pass

LMS = {"solver": "online", "schedule": "constant", "epochs": 1, "shuffle": False, "l2": 0.0}
EXACT = {"max_iter": 100_000, "tol": 1e-10}


def numbers(x, y, **more):
    return Data.of(Task.REGRESSION, x, y, **more)


def classes(x, y, **more):
    return Data.of(Task.CLASSIFICATION, x, y, **more)


def fitted(data, seed=0, **params):
    return linear_sgd.fit(linear_sgd.LinearSGD(**params), data, Context.of(seed))


def cost(data, state, **params):
    return linear_sgd.objective(linear_sgd.LinearSGD(**params), state, data)


def state_of(coef, intercept, k=0):
    coef = np.atleast_2d(coef)
    return linear_sgd.State(coef, np.broadcast_to(intercept, len(coef)) * 1.0, np.ones(k, bool), 1.0, 1.0, 0)


def scaled(name):
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1), y


def drawn(seed, k=0):
    """Rows of all sorts: dependent or constant columns, fewer rows than columns, weights."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(3, 60), rng.integers(1, 8)
    x = rng.normal(size=(n, d)) * rng.choice([0.5, 1, 3], d)
    if seed % 3 == 0:
        x[:, -1] = x[:, 0] if seed % 2 else 0.7
    y = rng.integers(0, k, n) if k else x @ rng.normal(size=d) + rng.normal(size=n)
    y[:k] = np.arange(k) if k else y[:k]
    return x, y, rng.uniform(0.2, 3, n)


# the gradient


@pytest.mark.parametrize("kind", Loss)
def test_the_slope_is_the_derivative(kind):
    rng = np.random.default_rng(kind)
    z = rng.normal(size=(40, 3))
    t = rng.normal(size=(40, 3)) if kind <= Loss.ABSOLUTE else np.where(np.eye(3)[rng.integers(0, 3, 40)] > 0, 1.0, -1)
    for c in range(3):
        step = np.zeros(3)
        step[c] = 1e-6
        by_difference = (losses(kind, z + step, t) - losses(kind, z - step, t)) / 2e-6
        np.testing.assert_allclose(slopes(kind, z, t)[:, c], by_difference, atol=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_coordinates_do_not_change_the_loss(seed):
    x, y, w = drawn(seed)
    for kind in (Loss.SQUARED, Loss.ABSOLUTE):
        own, plain = (made(kind, x, y[:, None], w, 0.1, intercept=True) for made in (MeanLoss.scaled, MeanLoss.plain))
        point = np.random.default_rng(seed).normal(size=own.zero.shape)
        coef, intercept = own.linear(point)
        np.testing.assert_allclose(own.point(coef, intercept), point, rtol=1e-9, atol=1e-12)
        power = 2 if kind is Loss.SQUARED else 1
        result = own.value(point) * own.spread**power
        assert result == pytest.approx(plain.value(np.vstack([coef, intercept])), rel=1e-10)


def twin(kind, x, targets, weights, order, batch, constant, coef, rates, alpha, power, steps, limit):  # noqa: PLR0917 - as the kernel
    total = 0.0
    for begin in range(0, len(order), batch):
        rows = order[begin : begin + batch]
        inputs = np.column_stack([x[rows], np.full(len(rows), constant)])
        scores = inputs @ coef.T
        total += weights[rows] @ losses(Loss(kind), scores, targets[rows])
        slope = (weights[rows, None] * slopes(Loss(kind), scores, targets[rows])).T @ inputs / len(rows)
        slope[:, :-1] += alpha * coef[:, :-1]
        length = weights[rows] @ (inputs**2).sum(axis=1) / len(rows)
        coef -= min(rates[0] / (1 + steps / rates[1]) ** power, limit / length) * slope
        steps += 1
    return total


@pytest.mark.parametrize("kind", Loss)
@pytest.mark.parametrize(("batch", "limit"), [(1, np.inf), (1, 0.5), (7, np.inf), (7, 0.01)])
def test_the_kernel_does_what_its_twin_does(kind, batch, limit):
    rng = np.random.default_rng(int(kind) + batch)
    s = 3 if kind is Loss.SOFTMAX else 2
    x, weights, order = rng.normal(size=(50, 4)), rng.uniform(0.5, 2, 50), rng.permutation(50)
    targets = rng.normal(size=(50, s)) if kind <= Loss.ABSOLUTE else 2.0 * np.eye(s)[rng.integers(0, s, 50)] - 1
    start = rng.normal(size=(s, 5))
    ours, theirs = start.copy(), start.copy()
    rest = (np.array([0.05, 20.0]), 0.01, 0.5, 30, limit)
    one = sgd_pass(int(kind), x, targets, weights, order, batch, 1.0, ours, *rest)
    other = twin(kind, x, targets, weights, order, batch, 1.0, theirs, *rest)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    assert one == pytest.approx(other, rel=1e-10)


# B3.6, N8: what the books say


@pytest.mark.parametrize("seed", range(5))
def test_it_converges_to_the_pseudo_inverse_just_below_the_limit_and_runs_away_just_above(seed):
    """B3.6, E = Σr²: ε < 2/λmax(2XᵀX). Here E = ½ mean r², so that the rate is 2nε."""
    x, y = np.random.default_rng(seed).normal(size=(2, 30, 3))
    y = y[:, 0]
    limit = 2 / np.linalg.eigvalsh(2 * x.T @ x)[-1]
    below, above = (
        fitted(numbers(x, y), fit_intercept=False, l2=0.0, learning_rate=2 * 30 * limit * share, max_iter=50_000)
        for share in (0.99, 1.01)
    )
    assert below.converged
    np.testing.assert_allclose(below.state.coef[0], np.linalg.pinv(x) @ y, rtol=1e-6, atol=1e-8)
    assert not above.converged
    assert "too large" in above.warnings[0]
    assert np.isfinite(above.state.coef).all()
    assert cost(numbers(x, y), above.state) <= 0.5 * (y**2).mean()


def test_one_row_at_a_time_is_widrow_and_hoff():
    """B3.6: w ← w + ε(y − w·x)x."""
    x, y, _ = drawn(1)
    w, b = np.zeros(x.shape[1]), 0.0
    for row, target in zip(x, y, strict=True):
        error = target - w @ row - b
        w, b = w + 0.01 * error * row, b + 0.01 * error
    state = fitted(numbers(x, y), **LMS, learning_rate=0.01).state
    np.testing.assert_allclose(state.coef[0], w, rtol=1e-12)
    np.testing.assert_allclose(state.intercept[0], b, rtol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_the_mean_of_single_steps_is_the_step_of_all(loss):
    """N8: the mean of the stochastic gradients is the batch gradient over P."""
    x, y, _ = drawn(2)
    data, how = numbers(x, y), {**LMS, "learning_rate": 0.1, "loss": loss}
    params = linear_sgd.LinearSGD(**how)
    singles = [linear_sgd.fit(params, data.take(np.array([i])), Context.of(0)).state for i in range(len(y))]
    whole = fitted(data, **how | {"batch_size": len(y)}).state
    np.testing.assert_allclose(whole.coef, np.mean([s.coef for s in singles], axis=0), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(whole.intercept, np.mean([s.intercept for s in singles], axis=0), rtol=1e-10)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_a_batch_more_is_the_longer_pass(loss):
    x, y, _ = drawn(4)
    data, params = numbers(x, y), linear_sgd.LinearSGD(**LMS | {"l2": 0.01}, learning_rate=0.02, loss=loss)
    half = len(y) // 2
    first = linear_sgd.fit(params, data.take(np.arange(half)), Context.of(0)).state
    both = linear_sgd.update(params, first, data.take(np.arange(half, len(y))), Context.of(7)).state
    whole = linear_sgd.fit(params, data, Context.of(0)).state
    assert both.coef.tobytes() == whole.coef.tobytes()
    assert both.intercept.tobytes() == whole.intercept.tobytes()
    assert both.steps == whole.steps == len(y)


def test_schedules_fall_as_they_say():
    """The t-th step on the same row, from the same place: its length is the rate."""
    data = numbers([[1.0]], [1e9])
    for schedule, power in (("constant", 0), ("root", 0.5), ("inverse", 1)):
        params = linear_sgd.LinearSGD(
            **LMS | {"schedule": schedule, "loss": "absolute"}, learning_rate=0.5, settling=10.0, fit_intercept=False
        )
        state = state_of([[0.0]], 0.0)._replace(rate=0.5)
        at = []
        for steps in (0, 10, 30):
            after = linear_sgd.update(params, state._replace(steps=steps), data, Context.of(0)).state
            at.append(after.coef[0, 0])
        np.testing.assert_allclose(at, 0.5 / np.array([1, 2, 4.0]) ** power)


# minima


@pytest.mark.parametrize("intercept", [True, False])
def test_squared_loss_ends_where_ridge_does(intercept):
    x, y = scaled("diabetes")
    n, alpha = len(y), 1e-3
    how = {"l2": alpha, "fit_intercept": intercept}
    fit = fitted(numbers(x, y), **how, **EXACT)
    peer = Ridge(alpha=n * alpha, fit_intercept=intercept, solver="svd").fit(x, y)
    assert fit.converged
    best = cost(numbers(x, y), state_of(peer.coef_, peer.intercept_), **how)
    assert cost(numbers(x, y), fit.state, **how) == pytest.approx(best, rel=1e-8)
    np.testing.assert_allclose(fit.state.coef[0], peer.coef_, rtol=1e-5, atol=1e-5)


def test_without_a_penalty_it_ends_at_least_squares():
    x, y = scaled("diabetes")
    fit = fitted(numbers(x, y), l2=0.0, **EXACT)
    peer = LinearRegression().fit(x, y)
    assert fit.converged
    best = cost(numbers(x, y), state_of(peer.coef_, peer.intercept_), l2=0.0)
    assert cost(numbers(x, y), fit.state, l2=0.0) == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("name", ["breast_cancer", "iris", "wine"])
def test_logistic_loss_ends_where_logistic_regression_does(name):
    x, y = scaled(name)
    n, alpha, data = len(y), 1e-3, classes(x, y)
    fit = fitted(data, l2=alpha, **EXACT)
    peer = LogisticRegression(C=1 / (n * alpha), tol=1e-12, max_iter=10_000, solver="newton-cg").fit(x, y)
    assert fit.converged
    best = cost(data, state_of(peer.coef_, peer.intercept_, max(y) + 1), l2=alpha)
    assert cost(data, fit.state, l2=alpha) == pytest.approx(best, rel=1e-8)
    predicted = linear_sgd.predict(linear_sgd.LinearSGD(), fit.state, x)
    np.testing.assert_allclose(predicted, peer.predict_proba(x), atol=1e-5)


@pytest.mark.parametrize("seed", range(50))
def test_drawn_problems_end_at_the_minimum(seed):
    k = (0, 2, 3)[seed % 3]
    x, y, weights = drawn(seed, k)
    alpha, n = 0.01, weights.sum()
    data = classes(x, y, weights=weights) if k else numbers(x, y, weights=weights)
    fit = fitted(data, l2=alpha, **EXACT)
    if k:
        peer = LogisticRegression(C=1 / (n * alpha), tol=1e-13, max_iter=10_000).fit(x, y, weights)
    else:
        peer = Ridge(alpha=n * alpha, solver="svd").fit(x, y, weights)
    best = cost(data, state_of(peer.coef_, peer.intercept_, k), l2=alpha)
    assert fit.converged
    assert cost(data, fit.state, l2=alpha) <= best * (1 + 1e-8)


def least_by_programme(x, y, weights, loss):
    """The least mean loss without a penalty, by scipy's linear programme, of our own writing."""
    n, d = x.shape
    a, w, free = np.column_stack([x, np.ones(n)]), weights / weights.sum(), [(None, None)] * (d + 1)
    if loss == "absolute":
        split = np.hstack([a, np.eye(n), -np.eye(n)])
        return linprog(np.r_[np.zeros(d + 1), w, w], A_eq=split, b_eq=y, bounds=free + [(0, None)] * (2 * n)).fun
    right = np.hstack([a * (2 * y - 1)[:, None], np.eye(n)])
    return linprog(np.r_[np.zeros(d + 1), w], A_ub=-right, b_ub=-np.ones(n), bounds=free + [(0, None)] * n).fun


def degenerate(seed, k=0):
    """`drawn`, and besides: ties, columns in other units, rows or targets all alike, more columns than rows."""
    x, y, weights = drawn(seed, k)
    match seed % 6:
        case 1:
            x = np.round(x)
            y = np.round(y) if not k else y
        case 2:
            x = x * 10.0 ** np.linspace(-6, 6, x.shape[1])
        case 3:
            x[:] = x[0]
        case 4:
            x = np.random.default_rng(seed).normal(size=(len(y), len(y) + 5))
        case 5 if not k:
            y[:] = y[0]
    return x, y, weights


@pytest.mark.parametrize("loss", ["absolute", "hinge"])
@pytest.mark.parametrize("seed", range(50))
def test_a_corner_without_a_penalty_is_at_the_minimum_of_the_linear_programme(loss, seed):
    x, y, weights = degenerate(seed, 2 * (loss == "hinge"))
    data = classes(x, y, weights=weights) if loss == "hinge" else numbers(x, y, weights=weights)
    how = {"loss": "absolute", "class_loss": "hinge", "l2": 0.0}
    fit = fitted(data, **how)
    found = cost(data, fit.state, **how)
    assert fit.converged
    assert not fit.warnings
    assert found == pytest.approx(least_by_programme(x, y, weights, loss), rel=1e-8, abs=1e-13 * np.abs(y).max())
    gaps = fit.curves.get("duality_gap", [0.0])
    assert 0 <= gaps[-1] <= 1e-9


@pytest.mark.parametrize("loss", ["absolute", "hinge"])
@pytest.mark.parametrize("seed", range(50))
def test_a_corner_with_a_penalty_is_where_support_vectors_say(loss, seed):
    """By libsvm: its multipliers u bound the minimum from below by u·y − ‖Xᵀu‖²/2α."""
    x, y, weights = degenerate(seed, 2 * (loss == "hinge"))
    x = x if seed % 6 != 2 else x * 10.0 ** -np.linspace(-6, 6, x.shape[1])
    alpha, share = 10.0 ** (seed % 3 - 1), weights / weights.sum()
    how = {"loss": "absolute", "class_loss": "hinge", "l2": alpha}
    limits = {"kernel": "linear", "C": 1.0, "tol": 1e-9, "max_iter": 100_000}
    peer = (SVC(**limits) if loss == "hinge" else SVR(epsilon=0, **limits)).fit(x, y, share / alpha)
    data = classes(x, y, weights=weights) if loss == "hinge" else numbers(x, y, weights=weights)
    u = np.zeros(len(y))
    u[peer.support_] = alpha * peer.dual_coef_[0]
    bound = u @ (2 * y - 1 if loss == "hinge" else y) - np.square(x.T @ u).sum() / (2 * alpha)
    fit = fitted(data, **how)
    assert fit.converged
    assert cost(data, fit.state, **how) == pytest.approx(bound, rel=1e-8, abs=1e-13 * np.abs(y).max())


@pytest.mark.parametrize("name", ["breast_cancer", "iris", "wine"])
@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_the_gap_of_a_corner_is_proven_on_real_data(name, loss):
    """Of classes too: with one score for each, a looser end is above the tighter one by no more than its gap says."""
    x, y = scaled(name)
    data, how = classes(x, y), {"class_loss": loss, "l2": 1e-3}
    loose, tight = (fitted(data, **how, tol=tol) for tol in (1e-2, 1e-12))
    values = [cost(data, fit.state, **how) for fit in (loose, tight)]
    gap = loose.curves["duality_gap"][-1]
    assert loose.iterations < tight.iterations
    assert 0 < gap <= 1e-2
    assert values[1] <= values[0] <= values[1] * (1 + 1e-12) + gap * values[0]


@pytest.mark.parametrize("x", [[[0.0], [0.0], [0.0]], [[1e-200], [-1e-200], [3e-200]], [[1e150], [-1e150], [1.0]]])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", [0.0, 1e12])
def test_columns_of_no_or_of_enormous_length_do_no_harm_at_a_corner(x, intercept, penalty):
    how = {"loss": "absolute", "class_loss": "hinge", "fit_intercept": intercept, "l2": penalty}
    for data in (numbers(x, [1.0, 2.0, 9.0]), classes(x, [0, 1, 2])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fit = fitted(data, **how)
        assert fit.converged
        zero = state_of(np.zeros((len(fit.state.coef), 1)), 0.0, fit.state.seen.size)
        assert cost(data, fit.state, **how) <= cost(data, zero, **how) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_classes_that_a_plane_parts_have_its_widest_margin_however_small_the_penalty(seed):
    """The loss is then ½·l2·‖β‖² of that plane, and falls with l2 to far below the rounding of the loss at zero."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 4))
    signs = np.where(x[:, :1] > 0, 1.0, -1.0)
    shares = []
    for l2 in (1e-6, 1e-8, 1e-10, 1e-12):
        function = MeanLoss.scaled(Loss.HINGE, x, signs, np.ones(60), l2, intercept=True)
        bottom = proven(function, 1e-9, 2000, lambda *_: None)
        assert bottom.converged
        shares.append(function.value(bottom.point) / l2)
    margin = SVC(kernel="linear", C=1e10, tol=1e-10).fit(x, signs[:, 0])
    assert shares[0] == pytest.approx(0.5 * float(np.square(margin.coef_).sum()), rel=1e-3)
    assert shares == pytest.approx(shares[:1] * 4, rel=2e-8)
    free = fitted(classes(x, signs[:, 0] > 0), class_loss="hinge", l2=0.0)
    assert free.converged
    assert cost(classes(x, signs[:, 0] > 0), free.state, class_loss="hinge", l2=0.0) < 1e-12


def test_too_few_iterations_for_a_corner_say_so():
    x, y = scaled("diabetes")
    fit = fitted(numbers(x, y), loss="absolute", max_iter=3)
    assert not fit.converged
    assert fit.iterations == 3
    assert "corner" in fit.warnings[0]
    assert fit.curves["duality_gap"][-1] > 1e-9


def test_the_search_without_slopes_ends_there_too():
    x, y, weights = drawn(4)
    data = numbers(x, y, weights=weights)
    felt, followed = (fitted(data, solver=solver, l2=0.01, **EXACT) for solver in ("search", "batch"))
    assert felt.converged
    assert cost(data, felt.state, l2=0.01) == pytest.approx(cost(data, followed.state, l2=0.01), rel=1e-8)
    x, y, weights = drawn(5, 3)
    data = classes(x, y, weights=weights)
    felt, followed = (fitted(data, solver=solver, l2=0.1, **EXACT) for solver in ("search", "batch"))
    assert cost(data, felt.state, l2=0.1) == pytest.approx(cost(data, followed.state, l2=0.1), rel=1e-8)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "absolute"])
@pytest.mark.parametrize("batch_size", [1, 16])
def test_row_by_row_comes_near_the_minimum(loss, batch_size):
    x, y = scaled("wine")
    data, how = classes(x, y), {"class_loss": loss, "l2": 1e-2}
    online = fitted(data, **how, solver="online", batch_size=batch_size, epochs=60)
    batch = fitted(data, **how, max_iter=10_000)
    zero = cost(data, state_of(np.zeros((3, 13)), 0.0, 3), **how)
    least = cost(data, batch.state, **how)
    assert cost(data, online.state, **how) - least < 0.12 * (zero - least)
    predicted = linear_sgd.predict(linear_sgd.LinearSGD(class_loss=loss), online.state, x)
    assert (predicted.argmax(axis=1) == y).mean() > 0.95


# faults and their reports


@pytest.mark.parametrize("solver", ["batch", "online"])
@pytest.mark.parametrize("loss", ["squared", "absolute", "hinge", "logistic"])
def test_a_rate_that_is_too_large_gives_finite_predictions(solver, loss):
    x, y = scaled("iris")
    data = classes(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        params = linear_sgd.LinearSGD(class_loss=loss, solver=solver, learning_rate=1e12, l2=0.0)
        fit = linear_sgd.fit(params, data, Context.of(0))
        predicted = linear_sgd.predict(params, fit.state, x)
    assert np.isfinite(predicted).all()
    assert not fit.converged
    if loss == "squared":
        assert "too large" in fit.warnings[0]


def test_a_batch_that_would_blow_up_is_not_learned():
    params = linear_sgd.LinearSGD(**LMS, learning_rate=0.1)
    state = linear_sgd.fit(params, numbers([[1.0], [2.0]], [1.0, 2.0]), Context.of(0)).state
    after = linear_sgd.update(params, state, numbers([[1e200], [1e200]], [1.0, 1.0]), Context.of(0))
    assert "not learned" in after.warnings[0]
    np.testing.assert_array_equal(after.state.coef, state.coef)


def test_without_a_rate_no_step_overshoots_its_row():
    """Squared loss, one row: after the step the error has its old sign, or is zero (Nagumo & Noda)."""
    params = linear_sgd.LinearSGD(solver="online", l2=0.0)
    state = linear_sgd.fit(params, numbers([[1.0], [2.0]], [1.0, 2.0]), Context.of(0)).state
    for size in (1.0, 1e3, 1e6):
        row = numbers([[size]], [0.0])
        before = linear_sgd.predict(params, state, row.x)[0]
        after = linear_sgd.predict(params, linear_sgd.update(params, state, row, Context.of(0)).state, row.x)[0]
        assert -1e-9 * abs(before) <= after / np.sign(before) <= abs(before)


@pytest.mark.parametrize("solver", ["batch", "online", "search"])
def test_the_error_curve_is_reported_while_it_falls(solver):
    seen = []
    context = Context.of(0, lambda _, **measures: seen.append(measures["loss"]))
    params = linear_sgd.LinearSGD(solver=solver, epochs=5)
    fit = linear_sgd.fit(params, numbers(*scaled("diabetes")), context)
    assert seen == fit.curves["loss"]
    assert seen[-1] < seen[0]


def test_a_curve_of_the_penalty():
    """B3.5: error plus complexity. The more the penalty weighs, the larger the error, the smaller the coefficients."""
    data = numbers(*scaled("diabetes"))
    states = [fitted(data, l2=alpha).state for alpha in (1e-3, 1e-1, 10.0)]
    errors = [cost(data, state, l2=0.0) for state in states]
    sizes = [np.linalg.norm(state.coef) for state in states]
    assert errors == sorted(errors)
    assert sizes == sorted(sizes, reverse=True)


def test_one_class_is_certain_and_says_so():
    for solver in ("batch", "online", "search"):
        fit = fitted(classes([[1.0], [2.0]], [1, 1], classes=3), solver=solver)
        assert fit.warnings == ("There is only one class.",)
        predicted = linear_sgd.predict(linear_sgd.LinearSGD(), fit.state, np.array([[-50.0]]))
        np.testing.assert_array_equal(predicted, [[0, 1, 0]])
