"""Exposure and offset of gradient boosting: rates, identities, requests without the column, refusals."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import InvalidData, InvalidRequest
from app.ml.algorithms.gradient_boosting import GradientBoosting, fit, predict
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.contract.columns import TableColumn
from app.ml.contract.offset_column import OffsetColumn
from app.ml.models.model import decode
from app.ml.tables.rows import read_rows
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

SEVERAL = {"n_estimators": 15, "l2": 0.0, "min_samples_leaf": 5.0, "max_leaf_nodes": 6}


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    exposure = rng.uniform(0.1, 2, n)
    return x, exposure, rng.poisson(exposure * np.exp(0.7 * x[:, 0] - 0.4 * (x[:, 1] > 0))) * 1.0


def fitted(x, y, offset=None, *, logarithm=True, weights=None, task=Task.REGRESSION, **params):
    """The fit with an offset in a further column, and predictions of its rows."""
    wide = x if offset is None else np.column_stack([x, offset])
    column = None if offset is None else OffsetColumn(x.shape[1], logarithm)
    params = GradientBoosting(**SEVERAL | params)
    state = fit(params, Data.of(task, wide, y, weights=weights, offset=column), Context.of(0)).state
    return params, state, predict(params, state, np.ascontiguousarray(wide))


def test_counts_with_exposure_are_rates_weighed_by_it():
    """Poisson: y beside an offset ln e has the slopes of y/e with the weight e."""
    x, exposure, y = rows()
    _, _, counts = fitted(x, y, exposure, loss="poisson")
    _, _, rates = fitted(x, y / exposure, weights=exposure, loss="poisson")
    np.testing.assert_allclose(counts / exposure, rates, rtol=1e-5)


def test_an_offset_of_numbers_is_taken_off_the_target():
    x, exposure, y = rows()
    _, _, beside = fitted(x, y, exposure, logarithm=False)
    _, _, less = fitted(x, y - exposure)
    np.testing.assert_allclose(beside, less + exposure, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", ["absolute", "huber", "quantile"])
def test_an_offset_is_taken_off_by_other_losses_too(loss):
    x, exposure, y = rows()
    _, _, beside = fitted(x, y, exposure, logarithm=False, loss=loss)
    _, _, less = fitted(x, y - exposure, loss=loss)
    np.testing.assert_allclose(beside, less + exposure, rtol=1e-6, atol=1e-6)


def test_log_odds_of_an_offset_are_added_to_two_classes():
    rng = np.random.default_rng(0)
    x, offset = rng.normal(size=(3000, 1)), rng.normal(size=3000)
    y = (rng.random(3000) < 1 / (1 + np.exp(-offset - (x[:, 0] > 0)))) * 1.0
    options = {"task": Task.CLASSIFICATION, "n_estimators": 40, "max_leaf_nodes": 2, "min_samples_leaf": 500.0}
    _, _, p = fitted(x, y, offset, logarithm=False, **options)
    log_odds = np.log(p[:, 1] / p[:, 0]) - offset
    assert log_odds[x[:, 0] <= 0].mean() == pytest.approx(0, abs=0.25)
    assert log_odds[x[:, 0] > 0].mean() == pytest.approx(1, abs=0.25)


def test_no_tree_splits_the_exposure():
    x, exposure, y = rows()
    _, state, _ = fitted(x, y, exposure, loss="poisson")
    assert 3 not in state.trees.column
    assert state.importance[3] == 0


def table_of(n=400, **changes):
    x, exposure, y = rows(n)
    table = pa.table({"age": x[:, 0], "years": exposure, "claims": y, "town": x[:, 1]})
    for name, cells in changes.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(cells))
    columns = [
        TableColumn(name, "numeric", cells.null_count, None, minimum=min(present), maximum=max(present))
        for name, cells in zip(table.column_names, table.columns, strict=True)
        for present in [cells.drop_null().to_pylist()]
    ]
    return table, columns


def planned(columns, n=400, **changes):
    body = {"target": "claims", "task": "regression", "exposure": "years"}
    algorithm = {"name": "gradient_boosting", "loss": "poisson"} | SEVERAL
    return plan(TrainSpec.model_validate(body | {"algorithm": algorithm} | changes), columns, n)


@pytest.fixture(scope="module")
def made():
    table, columns = table_of()
    return table, train(planned(columns), table, data_digest="sha256:0")


def test_a_model_predicts_in_proportion_to_the_exposure(made):
    table, result = made
    model = decode(result.blob)
    assert [(column.name, column.role) for column in model.inputs] == [
        ("age", None),
        ("town", None),
        ("years", "exposure"),
    ]
    twice = table.set_column(1, "years", pa.array(2 * table["years"].to_numpy()))
    np.testing.assert_allclose(model.predict(twice).values, 2 * model.predict(table).values, rtol=1e-12)
    (metric,) = [metric for metric in result.report.test if metric.name == "poisson_deviance"]
    assert metric.value > 0


@pytest.mark.parametrize(
    "body", [{"rows": [{"age": 0.5, "town": 1.0}]}, {"columns": ["town", "age"], "data": [[1.0, 0.5]]}]
)
def test_a_request_without_exposure_is_a_rate(made, body):
    model = decode(made[1].blob)
    incoming = read_rows(body, model.inputs, max_rows=10)
    assert incoming.assumed == {"years": 1.0}
    full = pa.table({"age": [0.5], "town": [1.0], "years": [1.0]})
    assert model.predict(incoming.table).values == model.predict(full).values


def test_a_missing_exposure_has_no_prediction_and_one_of_0_is_refused(made):
    model = decode(made[1].blob)
    rows_of = {"columns": ["age", "town", "years"], "data": [[0.5, 1.0, None], [0.5, 1.0, 2.0]]}
    predicted = model.predict(read_rows(rows_of, model.inputs, max_rows=10).table)
    assert np.isnan(predicted.values).tolist() == [True, False]
    assert "missing_number:years" in {flag.text for flag in predicted.flags}
    rows_of["data"][0][2] = 0.0
    with pytest.raises(InvalidData) as refused:
        model.predict(read_rows(rows_of, model.inputs, max_rows=10).table)
    assert [(fault.pointer, fault.code) for fault in refused.value.faults] == [("/rows/0/years", "bad_exposure")]


@pytest.mark.parametrize(
    ("changes", "places"),
    [
        ({"algorithm": {"name": "ridge"}}, {"/exposure"}),
        ({"algorithm": {"name": "gradient_boosting"}}, {"/algorithm/loss"}),
        ({"offset": "town"}, {"/offset"}),
        ({"exposure": "yeers"}, {"/exposure"}),
        ({"features": ["age", "years"]}, {"/features/1"}),
        ({"preprocessing": {"target": "sqrt"}}, {"/preprocessing/target"}),
        ({"exposure": "town"}, {"/exposure"}),
    ],
)
def test_what_has_no_exposure_is_refused_by_name(changes, places):
    with pytest.raises(InvalidRequest) as refused:
        planned(table_of()[1], **changes)
    assert {fault.pointer for fault in refused.value.faults} == places


def test_rows_without_exposure_are_refused_before_the_job():
    years = np.ones(400)
    for cells, code in ((np.append(years[:-1], 0.0), "bad_exposure"), ([None, *years[1:]], "missing_exposure")):
        with pytest.raises(InvalidRequest) as refused:
            planned(table_of(years=cells)[1])
        assert [fault.code for fault in refused.value.faults] == [code]
