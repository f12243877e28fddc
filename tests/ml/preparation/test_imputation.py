"""Imputation by column: the values of SimpleImputer, seen by all that reads the column, flagged, stored, reported."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from app.base.errors import InvalidData, InvalidRequest
from app.ml.contract.algorithm import Accepts
from app.ml.models import stored_preparation
from app.ml.models.golden import check_golden
from app.ml.models.model import decode, encode
from app.ml.preparation.request import Preprocessing
from app.ml.preparation.restoring import imputed, restore
from app.ml.preparation.stored_state_checks import checked
from app.ml.training.fitting import out_of_core
from app.ml.training.fitting.leave_one_out import closed_form
from app.ml.training.planning import cost
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet
from app.ml.training.train import train
from tests.ml.preparation.test_preparation import TREE, fit, flags, numbers, read, table
from tests.ml.training.beyond_memory import plan_within as plan
from tests.ml.training.test_train import run, sheet

DAY = datetime(2024, 2, 29, 12, tzinfo=UTC)
ROWS = table(
    n=[1, None, 4, 4, 9],
    n2=[1, 2, None, 7, 8],
    b=[True, None, False, True, True],
    c=["x", "y", None, "y", "x"],
    d=[DAY, None, DAY, None, datetime(2024, 3, 2, tzinfo=UTC)],
)


def how(imputation, **more):
    return Preprocessing.model_validate({"imputation": imputation} | more)


def prepared(rows, imputation, train=None, accepts=(), **more):
    return fit(rows, train, accepts, **dict(how(imputation, **more)))


def matrix(preparation, rows):
    return preparation.matrix(preparation.raw(rows))


GAPS = st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0, None]), min_size=4, max_size=12)


@settings(max_examples=30)
@given(GAPS, GAPS, st.sampled_from(["mean", "median", "most_frequent", {"constant": 7}]))
def test_numbers_are_those_of_the_oracle(training, new, strategy):
    named = isinstance(strategy, dict)
    oracle = SimpleImputer(strategy="constant" if named else strategy, fill_value=7 if named else None)
    preparation = prepared(table(n=[*training, *new]), {"n": strategy}, range(len(training)), scaling="none")
    found = matrix(preparation, table(n=new))
    if any(value is not None for value in training) or named:
        oracle.fit(np.array(training, float)[:, None])
        np.testing.assert_allclose(found, oracle.transform(np.array(new, float)[:, None]), rtol=1e-15)
    else:
        assert found.tolist() == [[value or 0.0] for value in new]


@pytest.mark.parametrize("constant", ["y", "w", "zz"], ids=["frequent", "first of all", "last of all"])
@pytest.mark.parametrize("max_levels", [64, 2])
def test_categories_are_those_of_a_table_that_the_oracle_filled(constant, max_levels):
    words = ["x", "y", None, "y", "x", "z", None, None]
    for strategy in ("most_frequent", {"constant": constant}):
        given = {"strategy": strategy}
        if isinstance(strategy, dict):
            given = {"strategy": "constant", "fill_value": constant}
        whole = SimpleImputer(**given, missing_values=None).fit_transform(np.array(words, object)[:, None])[:, 0]
        rows, full = table(c=words), table(c=whole.tolist())
        one = prepared(rows, {"c": strategy}, max_levels=max_levels)
        other = prepared(full, "mean", max_levels=max_levels)
        assert one.layout.names == other.layout.names
        np.testing.assert_array_equal(matrix(one, rows), matrix(other, full))
        np.testing.assert_array_equal(one.of(read(rows), np.arange(8)), matrix(one, rows))
        assert flags(one, rows)["imputed", "c"] == [2, 6, 7]


def test_a_category_that_no_training_row_had_is_unseen():
    preparation = prepared(ROWS, {"c": {"constant": "new"}}, [0, 1, 3, 4])
    assert preparation.layout.names[-2:] == ("c=x", "c=y")
    assert matrix(preparation, ROWS)[2, -2:].tolist() == [0, 0]
    assert flags(preparation, ROWS)["missing_category", "c"] == [2]
    assert imputed(preparation)["c"] is None
    without = prepared(table(c=[None, None]), {"c": "most_frequent"})
    assert without.layout.names == ("c=(missing)",), "nothing is frequent: the level of missing values stays"


@pytest.mark.parametrize("word", ["mean", "median"])
def test_every_number_by_name_is_the_single_word(word):
    alone, named = prepared(ROWS, word), prepared(ROWS, dict.fromkeys(["n", "n2", "b", "d"], word) | {"c": "level"})
    assert matrix(alone, ROWS).tobytes() == matrix(named, ROWS).tobytes()
    assert flags(alone, ROWS) == flags(named, ROWS)
    assert alone.fills is None
    rest, mean = prepared(ROWS, {"n": "median"}), prepared(ROWS, "mean")
    assert matrix(rest, ROWS)[:, 1:].tobytes() == matrix(mean, ROWS)[:, 1:].tobytes(), "others as by mean"


@pytest.mark.parametrize("accepts", [(), TREE, {Accepts.MISSING}])
@pytest.mark.parametrize("scaling", ["standard", "none"])
def test_rows_are_filled_alike_in_training_and_for_a_client(accepts, scaling):
    strategies = {"n": "most_frequent", "b": {"constant": True}, "c": {"constant": "x"}, "d": "median"}
    preparation = prepared(ROWS, strategies, accepts=accepts, scaling=scaling)
    together = preparation.of(read(ROWS), np.arange(5))
    alone = [preparation.prepared(preparation.raw(ROWS.slice(i, 1)))[1] for i in range(5)]
    assert together.tobytes() == np.concatenate(alone).tobytes()
    assert preparation.prepared(preparation.raw(ROWS))[1].tobytes() == together.tobytes()
    found = {name: row for name, row in flags(preparation, ROWS).items() if name[0] == "imputed"}
    expected = {("imputed", "n"): [1], ("imputed", "b"): [1], ("imputed", "c"): [2], ("imputed", "d"): [1, 3]}
    arrays: dict[str, np.ndarray] = {}
    stored = stored_preparation.unpack(stored_preparation.pack(preparation, "preparation", arrays), arrays)
    assert matrix(stored, ROWS).tobytes() == together.tobytes()
    assert found == (expected if accepts else expected | {("imputed", "n2"): [2]})
    assert np.isnan(together).sum() == (1 if accepts else 0), "what is not named is left to an algorithm that takes it"
    rows = [row.model_dump()["values"] for row in restore(preparation, together)]
    assert [rows[1]["n"], rows[1]["b"], rows[2]["c"]] == [pytest.approx(4), True, "x"]
    assert rows[1]["d"] == "2024-02-29T12:00:00Z"
    assert imputed(preparation) == {"n": 4, "n2": None if accepts else 4.5, "b": 1, "c": "x", "d": rows[1]["d"]}


def test_functions_and_parts_of_dates_see_the_value():
    values = np.random.default_rng(0).normal(size=(30, 2))
    values[::4, 0] = np.nan
    oracle = make_pipeline(SimpleImputer(strategy="median"), PolynomialFeatures(2, include_bias=False))
    squares = {"kind": "polynomial"}
    preparation = prepared(numbers(values), dict.fromkeys(["n0", "n1"], "median"), scaling="none", basis=[squares])
    np.testing.assert_allclose(matrix(preparation, numbers(values)), oracle.fit_transform(values), rtol=1e-12)
    dated = prepared(ROWS, {"d": {"constant": "2023-12-31T23:00:00Z"}}, scaling="none", dates=["year", "hour"])
    places = [dated.layout.names.index(f"d: {part}") for part in ("year", "hour")]
    assert matrix(dated, ROWS)[1, places].tolist() == [2023, 23]
    assert imputed(dated)["d"] == "2023-12-31T23:00:00Z"
    assert imputed(prepared(ROWS, "mean", dates=["year", "hour"]))["d"] is None
    with pytest.raises(InvalidData, match=r"log\(n\): 1"):
        prepared(ROWS, {"n": {"constant": 0}}, basis=[{"kind": "expression", "expression": "log(n)"}])


def test_many_categories_become_means_of_the_target_with_their_gaps_filled():
    words = [None if i % 7 == 0 else f"w{i % 5}" for i in range(60)]
    target = [float(i % 5) for i in range(60)]
    rows = pa.table({"c": words, "y": target})
    full = pa.table({"c": [word or "w2" for word in words], "y": target})
    encoded = {"categories": "target", "max_levels": 3}
    one = run(rows, target="y", preprocessing=encoded | {"imputation": {"c": {"constant": "w2"}}})
    other = run(full, target="y", preprocessing=encoded)
    assert [metric.value for metric in one.report.test] == [metric.value for metric in other.report.test]


def test_a_model_keeps_its_values():
    rows = pa.concat_tables([ROWS] * 12).append_column("y", pa.array(np.arange(60.0) % 5))
    strategies = {"n": {"constant": -1}, "c": "most_frequent", "d": {"constant": "2020-01-01"}}
    made = run(rows, target="y", preprocessing={"imputation": strategies})
    model = decode(made.blob)
    check_golden(model, made.golden)
    assert encode(model) == made.blob
    assert made.report.imputed["n"] == -1
    assert made.report.imputed["d"] == "2020-01-01T00:00:00Z"
    assert model.receipt["spec"]["preprocessing"]["imputation"] == strategies
    for wrong in (np.zeros(2), np.full(5, np.inf), np.full(5, 0.5), np.full(5, 99.0), np.zeros(5, np.float32)):
        with pytest.raises(ValueError, match="missing values"):
            checked(replace(model.preparation, fills=wrong))


def test_values_are_of_the_training_rows_alone_and_need_a_fit_for_each_row_left_out():
    rows = numbers(np.array([[0.0], [0.0], [100.0], [np.nan]]))
    assert imputed(prepared(rows, {"n0": "mean"}, [0, 1, 3]))["n0"] == 0
    assert imputed(prepared(rows, {"n0": "mean"}, [0, 2, 2, 3]))["n0"] == pytest.approx(200 / 3), "as often as drawn"
    for imputation, closed in (("mean", True), ({"c": "most_frequent"}, False)):
        rows = table(c=[*"abc"] * 6).append_column("y", pa.array(np.arange(18.0)))
        request = {"algorithm": {"name": "linear"}, "target": "y", "preprocessing": {"imputation": imputation}}
        planned = plan(TrainSpec.model_validate(request), sheet(rows), 18)
        assert (closed_form(TrainingSet.read(planned, rows), np.arange(18)) is not None) is closed


def test_a_table_beyond_memory_is_filled_by_its_sample(monkeypatch):
    monkeypatch.setattr(cost, "BATCH_CELLS", 300)
    monkeypatch.setattr(cost, "FEWEST", 50)
    monkeypatch.setattr(out_of_core, "BLOCK", 16)
    rng = np.random.default_rng(0)
    x, town = rng.normal(size=900), np.array(["Bonn", "Ulm"])[rng.integers(0, 2, 900)]
    y = x + (town == "Ulm")
    rows = pa.table({"x": pa.array(x, mask=rng.random(900) < 0.1), "c": pa.array(town, mask=town == "Ulm"), "y": y})
    strategies = {"x": "median", "c": {"constant": "elsewhere"}}
    request = {"algorithm": {"name": "linear_sgd", "epochs": 20}, "target": "y"}
    request["preprocessing"] = {"imputation": strategies}
    made = train(plan(TrainSpec.model_validate(request), sheet(rows), 900, 1.0), rows, data_digest="sha256:0")
    assert any("medians, levels, metrics" in warning for warning in made.report.warnings)
    assert made.report.imputed["x"] == pytest.approx(0, abs=0.3)
    assert made.report.imputed["c"] == "elsewhere"
    (score,) = [metric.value for metric in made.report.test if metric.name == "r2"]
    assert score > 0.8


@pytest.mark.parametrize(
    ("name", "strategy", "at", "detail"),
    [
        ("nn", "mean", "", "The features have no column 'nn'; did you mean 'n'?"),
        ("c", "median", "", "'c' is categorical and has no median: set it to most_frequent, level or a constant."),
        ("n", "level", "", "'n' is numeric: only categories have a level for missing values."),
        ("n", {"constant": "4"}, "/constant", "'n' is numeric: its constant is a number."),
        ("n", {"constant": True}, "/constant", "'n' is numeric: its constant is a number."),
        ("n", {"constant": 1e200}, "/constant", "Numbers beyond 1e+100 are too large to compute with."),
        ("b", {"constant": 1}, "/constant", "'b' is boolean: its constant is true or false."),
        ("c", {"constant": 4}, "/constant", "'c' is categorical: its constant is a string."),
        (
            "d",
            {"constant": "31.12.2024"},
            "/constant",
            "'d' is datetime: its constant is a string with a date, or a date and time, in ISO 8601.",
        ),
    ],
)
def test_what_does_not_fit_a_column_is_refused(name, strategy, at, detail):
    request = {"algorithm": {"name": "kmeans"}, "preprocessing": {"imputation": {name: strategy, "n2": "mean"}}}
    with pytest.raises(InvalidRequest) as refused:
        plan(TrainSpec.model_validate(request), sheet(ROWS), 5)
    expected = [(f"/preprocessing/imputation/{name}{at}", detail)]
    assert [(fault.pointer, fault.detail) for fault in refused.value.faults] == expected
