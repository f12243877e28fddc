"""Losses of gradient boosting: slopes and constants by definition, refusals, quantiles in order, rivals as good."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.metrics import mean_gamma_deviance, mean_pinball_loss, mean_poisson_deviance, mean_tweedie_deviance

from app.base.errors import InvalidData
from app.ml.algorithms.gradient_boosting import ALGORITHM, GradientBoosting, fit, predict, scores
from app.ml.contract.algorithm import Context, Data, Inputs, Size, Task
from app.ml.numerics.boosting.response_losses import Absolute, CrossEntropy, Focal, Huber, Quantile, Tweedie
from app.ml.numerics.unit_deviance import unit_deviances

SMOOTH = [Tweedie(1.0), Tweedie(1.5), Tweedie(2.0), CrossEntropy(), Focal(2.0), Focal(0.5), Huber(0.7)]
ALL = [*SMOOTH, Absolute(), Quantile(0.1), Quantile(0.9)]
LOG = [Tweedie(1.0), Tweedie(1.5), Tweedie(2.0)]


def rows(n=600, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    return x, 0.6 * np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] * (x[:, 2] > 0), rng


def truths(loss, n, rng):
    if isinstance(loss, Focal):
        return rng.integers(0, 2, n) * 1.0
    return rng.uniform(0.05, 0.95, n) if isinstance(loss, CrossEntropy) else rng.gamma(2.0, size=n)


def fitted(data, seed=0, **params):
    params = GradientBoosting(**params)
    return params, fit(params, data, Context.of(seed)).state


@pytest.mark.parametrize("loss", SMOOTH, ids=str)
def test_slopes_are_derivatives_of_the_loss(loss):
    rng = np.random.default_rng(0)
    total, step = rng.normal(size=200), 1e-5
    y = truths(loss, 200, rng)
    gradients, curvatures = loss.slopes(total, y)
    near = [loss.losses(total + move, y) for move in (-step, step)]
    np.testing.assert_allclose(gradients, (near[1] - near[0]) / (2 * step), rtol=1e-6, atol=1e-8)
    if curvatures is not None:
        sides = [loss.slopes(total + move, y)[0] for move in (-step, step)]
        exact = (sides[1] - sides[0]) / (2 * step)
        if isinstance(loss, Focal):
            p = 1 / (1 + np.exp(-total))
            exact = np.maximum(exact, 0.1 * p * (1 - p))
        np.testing.assert_allclose(curvatures, exact, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("loss", ALL, ids=str)
@pytest.mark.parametrize("offset", [False, True])
def test_the_base_is_the_best_constant(loss, offset):
    rng = np.random.default_rng(1)
    y, weights = truths(loss, 301, rng), rng.uniform(0.5, 2, 301)
    beside = rng.normal(size=301) if offset else np.zeros(301)
    found = loss.base(y, weights, beside)

    def total(constant):
        return weights @ loss.losses(constant + beside, y)

    best = minimize_scalar(total, bounds=(-8, 8), method="bounded", options={"xatol": 1e-12})
    assert total(found) <= best.fun * (1 + 1e-9)


def test_deviances_are_those_of_scikit_learn():
    rng = np.random.default_rng(2)
    y, mean = rng.gamma(2, size=50), rng.gamma(2, size=50)
    for power, other in ((1.0, mean_poisson_deviance), (2.0, mean_gamma_deviance)):
        assert unit_deviances(y, mean, power).mean() == pytest.approx(other(y, mean), rel=1e-12)
    assert unit_deviances(y, mean, 1.3).mean() == pytest.approx(mean_tweedie_deviance(y, mean, power=1.3), rel=1e-12)


@pytest.mark.parametrize("loss", LOG, ids=str)
def test_a_leaf_alone_predicts_the_mean(loss):
    """The first Newton steps of one leaf go from any start to the mean of its rows, for each log link."""
    x = np.repeat([[0.0], [1.0]], 40, axis=0)
    y = np.where(x[:, 0] > 0, 6.0, 2.0) + np.tile([-0.5, 0.5], 40)
    name = {1.0: "poisson", 2.0: "gamma"}.get(loss.power, "tweedie")
    params, state = fitted(Data.of(Task.REGRESSION, x, y), loss=name, l2=0, learning_rate=1.0, min_samples_leaf=1)
    np.testing.assert_allclose(predict(params, state, np.array([[0.0], [1.0]])), [2.0, 6.0], rtol=1e-7)


def test_medians_and_quantiles_of_leaves_are_exact():
    x = np.repeat([[0.0], [1.0]], 41, axis=0)
    y = np.concatenate([np.arange(41.0), 100 + np.arange(41.0) ** 2])
    data, ends = Data.of(Task.REGRESSION, x, y), np.array([[0.0], [1.0]])
    for loss, level in (("absolute", 0.5), ("quantile", 0.8)):
        params, state = fitted(data, loss=loss, quantiles=[level], learning_rate=1.0, n_estimators=3)
        wanted = [np.quantile(part, level, method="inverted_cdf") for part in (y[:41], y[41:])]
        assert predict(params, state, ends).tolist() == wanted


def test_quantiles_never_cross_and_cover():
    x, f, rng = rows(4000)
    y = f + rng.gumbel(size=4000) * np.exp(0.4 * x[:, 1])
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    params, state = fitted(
        Data.of(Task.REGRESSION, x[:3000], y[:3000]), loss="quantile", quantiles=levels[::-1], n_estimators=60
    )
    found = ALGORITHM.outputs["quantiles"].compute(params, state, np.ascontiguousarray(x[3000:]))
    assert (np.diff(found, axis=1) >= 0).all()
    assert predict(params, state, np.ascontiguousarray(x[3000:])).tolist() == found[:, 2].tolist()
    for column, level in zip(found.T, levels, strict=True):
        assert np.mean(y[3000:] <= column) == pytest.approx(level, abs=0.06)
        assert mean_pinball_loss(y[3000:], column, alpha=level) < 0.97 * mean_pinball_loss(
            y[3000:], np.full(1000, np.quantile(y[:3000], level)), alpha=level
        )


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie", "absolute", "huber", "quantile", "cross_entropy"])
def test_weights_count_as_rows(loss):
    x, f, rng = rows(200)
    y = 1 / (1 + np.exp(-f)) if loss == "cross_entropy" else rng.gamma(2, np.exp(f))
    counts = rng.integers(1, 4, 200)
    twice = np.repeat(np.arange(200), counts)
    options = {
        "loss": loss,
        "l2": 0.0,
        "min_samples_leaf": 1.0,
        "max_leaf_nodes": 3,
        "n_estimators": 5,
        "huber_delta": 1.0,
    }
    params, weighted = fitted(Data.of(Task.REGRESSION, x, y, weights=counts), **options)
    _, repeated = fitted(Data.of(Task.REGRESSION, x[twice], y[twice]), **options)
    np.testing.assert_allclose(predict(params, weighted, x), predict(params, repeated, x), rtol=1e-5)


@pytest.mark.parametrize("loss", ["poisson", "tweedie"])
def test_units_of_the_target_do_not_matter(loss):
    x, f, rng = rows()
    y, unit = rng.gamma(2, np.exp(f)), 2.0**40
    params, state = fitted(Data.of(Task.REGRESSION, x, y), loss=loss, l2=0)
    _, other = fitted(Data.of(Task.REGRESSION, x, y * unit), loss=loss, l2=0)
    np.testing.assert_allclose(predict(params, other, x) / unit, predict(params, state, x), rtol=1e-3)


def test_focal_of_power_0_is_logistic():
    x, f, rng = rows()
    data = Data.of(Task.CLASSIFICATION, x, (f + rng.normal(size=600) > 0) * 1.0)
    options = {"n_estimators": 5, "max_leaf_nodes": 4, "min_samples_leaf": 1}
    logistic, state = fitted(data, **options)
    focal, other = fitted(data, class_loss="focal", focal_gamma=0, **options)
    np.testing.assert_allclose(predict(focal, other, x), predict(logistic, state, x), atol=2e-3)


@pytest.mark.parametrize(
    ("loss", "ends"),
    [("poisson", (-1.0, 3.0)), ("gamma", (0.0, 3.0)), ("tweedie", (-0.1, 1.0)), ("cross_entropy", (0, 2))],
)
def test_targets_without_a_loss_are_refused_before_the_job(loss, ends):
    params = GradientBoosting(loss=loss)
    (fault,) = ALGORITHM.faults(params, Inputs({}, Size(10, 2), target_ends=ends))
    assert (fault.pointer, fault.code) == ("/loss", "undefined")
    assert f"{ends[0]:g} to {ends[1]:g}" in fault.detail
    data = Data.of(Task.REGRESSION, np.zeros((2, 1)), np.array(ends))
    with pytest.raises(InvalidData, match=loss):
        fit(params, data, Context.of(0))


def test_contributions_add_up_to_the_logarithm():
    x, f, rng = rows(300)
    params, state = fitted(Data.of(Task.REGRESSION, x, rng.poisson(np.exp(f)) * 1.0), loss="poisson", n_estimators=10)
    found = scores(params, state)
    explained = found.explained(np.arange(4))
    totals = explained.mean + explained.contributions(x).sum(axis=2)
    assert found.unit == "log(target)"
    np.testing.assert_allclose(np.exp(totals[:, 0]), predict(params, state, x), rtol=1e-12)


def made(y, x, **params):
    """The model of a training on these columns, as its bytes have it, and the report."""
    import pyarrow as pa

    from app.ml.contract.columns import TableColumn
    from app.ml.models.model import decode
    from app.ml.training.planning.plan import plan
    from app.ml.training.planning.train_spec import TrainSpec
    from app.ml.training.train import train

    table = pa.table({**{f"x{j}": column for j, column in enumerate(x.T)}, "y": y})
    columns = [
        TableColumn(name, "numeric", 0, len(np.unique(cells)), minimum=float(min(cells)), maximum=float(max(cells)))
        for name, cells in zip(table.column_names, (column.to_numpy() for column in table.columns), strict=True)
    ]
    body = {
        "algorithm": {"name": "gradient_boosting", "n_estimators": 10, **params},
        "target": "y",
        "task": "regression",
    }
    planned = plan(TrainSpec.model_validate(body), columns, len(y))
    result = train(planned, table, data_digest="sha256:0")
    return decode(result.blob), result.report, table


def test_reports_have_the_metric_of_the_loss():
    x, f, rng = rows(400)
    y = rng.poisson(np.exp(f)) * 1.0
    model, report, table = made(y, x, loss="poisson")
    (metric,) = [one for one in report.test if one.name == "poisson_deviance"]
    assert metric.lower < metric.value < metric.upper
    assert (model.predict(table).values > 0).all()
    assert "quantiles" not in model.algorithm.outputs


def test_targets_of_a_table_are_refused_with_their_place():
    from app.base.errors import InvalidRequest

    x, f, _ = rows(50)
    with pytest.raises(InvalidRequest) as refused:
        made(f, x, loss="gamma")
    assert [fault.pointer for fault in refused.value.faults] == ["/algorithm/loss"]


def test_quantiles_are_explained_by_their_own_scores():
    from app.ml.models.included_outputs import predict_with
    from app.ml.models.reasons import reasons_of

    x, f, rng = rows(300)
    model, _, table = made(f + rng.normal(size=300), x, loss="quantile", quantiles=[0.9, 0.5, 0.1])
    predicted = predict_with(model, table, ["quantiles", "contributions"])
    found = predicted.contributions
    assert predicted.outputs["quantiles"].shape == (300, 3)
    assert found.scores == (0.1, 0.5, 0.9)
    np.testing.assert_allclose(found.base + found.values.sum(axis=2), found.raw, atol=1e-9)
    np.testing.assert_array_equal(np.sort(found.raw, axis=1), predicted.outputs["quantiles"])
    (reason,) = reasons_of(found, table, predicted, 1)[0]
    assert "the quantile of 0.5 by" in reason.text
