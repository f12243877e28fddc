"""Parts of dates: those of pandas, the same for one row as for many, named, checked, stored and restored."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.base.errors import InvalidData, InvalidRequest
from app.ml.contract.algorithm import Accepts
from app.ml.contract.columns import TableColumn
from app.ml.models import stored_preparation
from app.ml.models.golden import check_golden
from app.ml.models.model import decode
from app.ml.preparation.date_parts import LABELS, DateParts, part_names
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.request import Preprocessing
from app.ml.preparation.restoring import restore
from app.ml.training.fitting import out_of_core
from app.ml.training.planning import cost
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.ml.preparation.test_preparation import TREE, read, table
from tests.ml.training.beyond_memory import plan_within as plan

PARTS = tuple(LABELS)
TIMES = [datetime(2024, 2, 29, 12, 30, tzinfo=UTC), None, datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)]
DAYS = [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 6, 7)]


def fit(rows, dates, accepts=(), **how):
    how = Preprocessing.model_validate({"dates": dates, **how})
    return Preparation.fit(read(rows), np.arange(rows.num_rows), how, accepts)


def matrix(preparation, rows):
    return preparation.matrix(preparation.raw(rows))


def microseconds(*texts):
    return np.array(texts, "M8[us]").astype(np.int64).tolist()


@settings(max_examples=25)
@given(st.lists(st.integers(*microseconds("1650-01-01", "2242-01-01")), min_size=1, max_size=20))
@example(microseconds("1968-02-29", "1900-03-01", "2000-02-29T23", "1969-12-31T23:59:59.999999"))
@example(microseconds("1970-01-01", "1970-01-05", "2100-02-28T23:59:59.999999"))
def test_parts_are_those_of_the_oracle(moments):
    times = pd.Series(np.array(moments, "M8[us]"))
    raw = read(pa.table({"d": pa.array(moments, pa.timestamp("us", "UTC"))}))
    found, oracle = DateParts(date="d", parts=PARTS).values(raw.values), times.dt
    plain = np.column_stack([oracle.year, oracle.month, oracle.day_of_week, oracle.hour])
    np.testing.assert_array_equal(found[:, :4], plain)
    np.testing.assert_array_equal(found[:, 2], oracle.isocalendar().day - 1)
    np.testing.assert_allclose(found[:, 4], (times - pd.Timestamp(0).as_unit("us")) / pd.Timedelta(days=1), rtol=1e-15)
    turns = np.column_stack([(oracle.month - 1) / 12, oracle.day_of_week / 7, oracle.hour / 24]) * 2 * np.pi
    np.testing.assert_allclose(found[:, 5::2], np.sin(turns), atol=1e-14)
    np.testing.assert_allclose(found[:, 6::2], np.cos(turns), atol=1e-14)


def test_circles_are_exact_on_their_axes_and_the_same_on_either_side():
    months = [datetime(2023, month, 1, tzinfo=UTC) for month in range(1, 13)]
    sine, cosine = DateParts(date="d", parts=("cyclic_month",)).values(read(table(d=months)).values).T
    assert sine[[0, 3, 6, 9]].tolist() == [0, 1, 0, -1]
    assert cosine[[0, 3, 6, 9]].tolist() == [1, 0, -1, 0]
    assert (cosine[1:] == cosine[:0:-1]).all()
    assert (sine[1:] == -sine[:0:-1]).all()


def test_names_and_places_of_the_columns():
    rows = table(d=TIMES, n=[1, 2, 3], d2=[TIMES[0]] * 3, c=["a", "b", "a"])
    cyclic = ["d: weekday sine", "d: weekday cosine"]
    preparation = fit(rows, {"d": ["cyclic_weekday", "year"]})
    assert preparation.layout.names == ("n", "d2", *cyclic, "d: year", "c=a", "c=b")
    assert preparation.layout.plain_names == preparation.layout.names
    assert fit(rows, ["month"]).layout.names == ("n", "d: month", "d2: month", "c=a", "c=b")
    assert fit(rows, []).layout.names == fit(rows, {}).layout.names == ("d", "n", "d2", "c=a", "c=b")
    squares = {"kind": "polynomial", "columns": ["d"]}
    assert fit(rows, {"d": ["year"]}, basis=[squares]).layout.plain_names[:4] == ("d", "n", "d2", "d: year")
    formula = {"kind": "expression", "expression": "d / 86400"}
    assert fit(rows, {"d": ["year"]}, basis=[formula]).layout.names[:4] == ("n", "d2", "d: year", "d / 86400")


@pytest.mark.parametrize("accepts", [(), TREE, {Accepts.MISSING}])
@pytest.mark.parametrize("scaling", ["standard", "none"])
def test_rows_are_prepared_alike_in_training_and_for_a_client(accepts, scaling):
    rows = table(d=TIMES, n=[1, None, 3], c=["a", None, "b"])
    preparation = fit(rows, list(PARTS), accepts, scaling=scaling)
    together = preparation.of(read(rows), np.arange(3))
    alone = [matrix(preparation, rows.slice(i, 1)) for i in range(3)]
    assert together.tobytes() == np.concatenate(alone).tobytes()
    prepared = preparation.prepared(preparation.raw(rows))
    assert prepared[1].tobytes() == together.tobytes()
    assert together.shape[1] == preparation.layout.width == len(preparation.layout.names)
    dates = [place for place, name in enumerate(preparation.layout.names) if name.startswith("d")]
    assert len(dates) == 11
    if accepts:
        assert np.isnan(together[1, dates]).all()
    else:
        assert together[1, dates] == pytest.approx(together[[0, 2]][:, dates].mean(axis=0)), "imputed by the mean"
        assert [(flag.code, flag.column) for flag in prepared[0]] == [("imputed", "n"), ("imputed", "d")][::-1]


def test_a_date_that_no_training_row_has_is_a_constant():
    rows = table(d=TIMES, n=[1, 2, 3])
    preparation = Preparation.fit(read(rows), np.array([1, 1]), Preprocessing(dates=["year", "hour"]))
    assert (matrix(preparation, rows.slice(1, 1)) == 0).all()


def test_hours_are_left_out_or_refused_where_there_is_no_time_of_day():
    rows = table(d=DAYS, d2=TIMES)
    names = fit(rows, ["hour", "weekday", "cyclic_hour"]).layout.names
    assert names == ("d: weekday", "d2: hour", "d2: weekday", "d2: hour sine", "d2: hour cosine")
    for dates, at in (({"d": ["hour", "year"]}, "/preprocessing/dates/d"), (["hour"], "/preprocessing/dates")):
        with pytest.raises(InvalidData, match=r"The dates of 'd' have no time of day: leave out hour\.") as refused:
            fit(rows, dates)
        assert refused.value.faults[0].pointer == at


@pytest.mark.parametrize(
    ("parts", "days", "more", "flagged"),
    [
        (["weekday", "cyclic_weekday"], 8, {}, False),
        (["weekday"], 7, {}, True),  # six days apart: one weekday may be new
        (["cyclic_month", "hour"], 367, {}, False),
        (["cyclic_month", "hour"], 300, {}, True),
        (["cyclic_weekday", "elapsed_days"], 900, {}, True),
        (["cyclic_weekday"], 900, {"basis": [{"kind": "expression", "expression": "d / 86400"}]}, True),
        ([], 900, {}, True),
    ],
)
def test_a_date_after_those_of_the_training_is_flagged_unless_all_that_is_read_of_it_comes_again(
    parts, days, more, flagged
):
    first = datetime(2023, 1, 2, 6, tzinfo=UTC)
    rows = table(d=[first + timedelta(days=day) for day in range(days)], n=[1.0] * days)
    preparation = fit(rows, {"d": parts} if parts else [], **more)
    later = table(d=[first + timedelta(days=3650), None], n=[1.0, 2.0])
    flags = {(flag.code, flag.column) for flag in preparation.prepared(preparation.raw(later))[0]}
    expected = {("outside_range", "n"), ("imputed", "d")} | ({("outside_range", "d")} if flagged else set())
    assert {flag for flag in flags if flag[0] != "undefined"} == expected


@pytest.mark.parametrize("scaling", ["none", "standard", "minmax"])
@pytest.mark.parametrize("accepts", [(), TREE])
def test_elapsed_days_bring_a_date_back(accepts, scaling):
    rows = table(n=[1, 2, 3], d=[TIMES[0], *DAYS[:2]], c=["a", "b", "a"])
    preparation = fit(rows, ["month", "elapsed_days", "cyclic_month"], accepts, scaling=scaling)
    restored = [row.model_dump()["values"] for row in restore(preparation, matrix(preparation, rows))]
    back = [datetime.fromisoformat(row["d"]).timestamp() for row in restored]
    assert back == pytest.approx([moment.timestamp() for moment in rows["d"].to_pylist()], rel=0, abs=1e-3)
    assert [row["n"] for row in restored] == pytest.approx([1, 2, 3])
    preparation = fit(rows, ["month"], accepts)
    assert {row.model_dump()["values"]["d"] for row in restore(preparation, matrix(preparation, rows))} == {None}


def sales(rows=400):
    """Sold by weekday, without a trend."""
    days = [datetime(2023, 1, 2, tzinfo=UTC) + timedelta(days=day) for day in range(rows)]
    rng = np.random.default_rng(0)
    sold = [10.0 + 5 * np.sin(2 * np.pi * day.weekday() / 7) for day in days] + rng.normal(0, 0.1, rows)
    return pa.table({"day": pa.array(days, pa.timestamp("us", "UTC")), "sold": sold, "size": rng.normal(size=rows)})


SHEET = [TableColumn("day", "datetime", 0, 400), TableColumn("sold", "numeric", 0, 400)]
SHEET.append(TableColumn("size", "numeric", 0, 400))


def planned(dates, memory_bytes=float("inf"), **more):
    request = {"algorithm": {"name": "ridge"}, "target": "sold", "preprocessing": {"dates": dates}}
    return plan(TrainSpec.model_validate(request | more), SHEET, 400, memory_bytes)


@pytest.mark.parametrize("accepts", [(), TREE, {Accepts.MISSING}])
def test_a_preparation_is_stored_with_them(accepts):
    """For algorithms that take dates imputed, and for trees, which take what is missing: no fit is needed for that."""
    rows = table(d=[*TIMES, *DAYS], n=[1, None, 3, 4, 5, 6], c=["a", None, "b", "a", "a", "b"])
    preparation, arrays = fit(rows, list(PARTS), accepts), {}
    stored = stored_preparation.pack(preparation, "preparation", arrays)
    again = stored_preparation.unpack(json.loads(json.dumps(stored)), arrays)
    assert again.layout.names == preparation.layout.names
    assert matrix(again, rows).tobytes() == matrix(preparation, rows).tobytes()
    assert "d: weekday sine" in again.layout.names


def test_a_model_keeps_them():
    made = train(planned(["weekday", "cyclic_weekday"]), sales(), data_digest="sha256:0")
    assert made.report.columns == ["size", *part_names("day", ["weekday", "cyclic_weekday"])]
    check_golden(decode(made.blob), made.golden)
    (error,) = [metric.value for metric in made.report.test if metric.name == "r2"]
    assert error > 0.99


def test_a_table_beyond_memory_is_learned_by_parts(monkeypatch):
    monkeypatch.setattr(cost, "BATCH_CELLS", 300)
    monkeypatch.setattr(cost, "FEWEST", 50)
    monkeypatch.setattr(out_of_core, "BLOCK", 16)
    request = planned(["cyclic_weekday"], 1.0, algorithm={"name": "linear_sgd", "epochs": 30})
    made = train(request, sales(), data_digest="sha256:0")
    assert any("in batches" in warning for warning in made.report.warnings)
    (score,) = [metric.value for metric in made.report.test if metric.name == "r2"]
    assert score > 0.95


@pytest.mark.parametrize(
    ("dates", "features", "faults"),
    [
        (
            ["weekday"],
            ["size"],
            [("", "No feature is a date: leave dates out, or name a column of dates in features.")],
        ),
        ({"dax": ["year"]}, None, [("/dax", "The features have no column 'dax'; did you mean 'day'?")]),
        ({"size": ["year"]}, None, [("/size", "'size' is numeric: only dates have such parts.")]),
        (["year", "month", "year"], None, [("/2", "year is named twice.")]),
        (
            {"a/b": ["year"], "day": ["hour", "hour"]},
            None,
            [("/a~1b", "The features have no column 'a/b'."), ("/day/1", "hour is named twice.")],
        ),
    ],
)
def test_what_has_no_such_parts_is_refused(dates, features, faults):
    with pytest.raises(InvalidRequest) as refused:
        planned(dates, features=features)
    expected = [(f"/preprocessing/dates{at}", detail) for at, detail in faults]
    assert [(fault.pointer, fault.detail) for fault in refused.value.faults] == expected


def test_columns_that_parts_make_count_and_have_names_before_any_row():
    groups = {"algorithm": {"name": "random_subspace", "groups": [["day: year"], ["day: hour", "size"]]}}
    assert planned({"day": ["year", "hour"]}, **groups).features == ("day", "size")
    replaced = {"algorithm": {"name": "random_subspace", "groups": [["day"]]}}
    assert planned([], **replaced).features == ("day", "size")
    for request, at in ((groups, "/algorithm/groups/1/0"), (replaced, "/algorithm/groups/0/0")):
        with pytest.raises(InvalidRequest) as refused:
            planned(["year", "hour"], **request)
        assert [fault.pointer for fault in refused.value.faults] == [at]
