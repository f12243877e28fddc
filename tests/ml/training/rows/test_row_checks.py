"""Warnings about the rows of a training: in dry run and report alike, bounded, and without a part in the bytes."""

import numpy as np
import pandas as pd
import pytest

from app.ml.evaluation import like_groups
from app.ml.evaluation.like_groups import drawn_groups
from app.ml.kinds.job import Source
from app.ml.training import drawn_rows
from app.ml.training.dry_run import row_look
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows import row_checks
from app.ml.training.train import train
from tests.ml.training.rows.public_tables import sheet_of, to_arrow, warnings_of

RNG = np.random.default_rng(0)
N = 400
PLAIN = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N), "town": RNG.choice(["u", "v"], N)}).assign(
    y=lambda table: table["a"] + RNG.normal(size=N)
)


def looked_at(table, **spec):
    return warnings_of(table, "y", **spec)[1]


def trained(table, **spec):
    table = to_arrow(table)
    spec = TrainSpec.model_validate({"algorithm": {"name": "linear"}, "target": "y"} | spec)
    planned = plan(spec, sheet_of(table).columns, table.num_rows)
    return train(planned, table, data_digest="sha256:0")


def test_the_report_has_the_warnings_of_the_dry_run():
    leaking = pd.concat([PLAIN.assign(copy=2 * PLAIN["y"]), PLAIN.assign(copy=2 * PLAIN["y"]).head(90)])
    warnings = looked_at(leaking, algorithm={"name": "linear"})
    assert len(warnings) == 2
    assert set(warnings) <= set(trained(leaking).report.warnings)
    assert looked_at(leaking) == looked_at(leaking)


def test_a_model_has_the_same_bytes_without_the_checks(monkeypatch):
    table = PLAIN.assign(copy=PLAIN["y"])
    checked = trained(table)
    monkeypatch.setattr(drawn_rows, "row_warnings", lambda *_: [])
    assert trained(table).blob == checked.blob


def test_a_warning_has_the_column_its_strength_and_the_remedy():
    (warning,) = looked_at(PLAIN.assign(late=PLAIN["y"] + RNG.normal(size=N) / 10))
    assert warning.startswith("Column 'late' (9")
    assert "of its variation that the column explains in 400 rows" in warning
    assert "leave it out of features" in warning


def test_several_columns_are_one_warning():
    (warning,) = looked_at(
        PLAIN.assign(early=PLAIN["y"] + RNG.normal(size=N) / 10, late=PLAIN["y"] + RNG.normal(size=N) / 20)
    )
    assert warning.startswith("Each of the columns 'late' (9")
    assert "'early' (9" in warning


@pytest.mark.parametrize("features", [["a", "b"], ["a"]])
def test_columns_that_are_not_learned_from_leak_nothing(features):
    assert looked_at(PLAIN.assign(copy=PLAIN["y"]), features=features) == []


def test_a_column_of_its_own_may_determine_the_target_unless_it_is_a_copy():
    steady = pd.DataFrame({"x": np.arange(100.0), "y": np.arange(100.0) ** 2})
    assert looked_at(steady.sample(frac=1, random_state=0).assign(x=lambda table: table["x"] / 7)) == []
    (warning,) = looked_at(steady.assign(x=steady["y"] / 7))
    assert "in other units: the target is 7 times it, in all 100 rows" in warning


def test_a_clock_beside_a_steady_series_is_no_leak():
    steps = RNG.normal(size=N).cumsum()
    assert looked_at(PLAIN.assign(y=steps, clock=np.arange(N) / 3 + 1)) == []


def test_dates_of_birth_are_no_times_of_rows():
    born = pd.Timestamp("1960-01-01") + pd.to_timedelta(RNG.integers(0, 10_000, N), unit="D")
    dates = PLAIN.assign(birth_date=born, visit=born + pd.to_timedelta(RNG.integers(9_000, 20_000, N), unit="D"))
    assert looked_at(dates) == []
    (warning,) = looked_at(dates.rename(columns={"birth_date": "opened"}))
    assert "'visit' (in 100% of the rows) is later than 'opened', the earliest date of the rows" in warning
    assert "name its column in validation.time" in warning


def grouped():
    people = np.repeat(np.arange(N // 4), 4)
    level = RNG.normal(size=N // 4)
    table = PLAIN.assign(a=RNG.normal(size=N // 4)[people], b=level[people], y=level[people] + RNG.normal(size=N) / 5)
    return table.assign(person=people * 3 + 7)


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        ({}, True),
        ({"features": ["a", "b"]}, True),
        ({"validation": {"group": "person"}}, False),
        ({"validation": {"test_fraction": 0}}, False),
        ({"validation": {"test_fraction": 0, "method": "kfold"}}, True),
    ],
)
def test_groups_matter_where_a_split_is_by_row(spec, warned):
    assert any("set validation.group to 'person'" in text for text in looked_at(grouped(), **spec)) == warned


def test_rare_classes_are_counted():
    labels = np.array(["common"] * 396 + ["rare"] * 3 + ["lone"])
    (warning,) = looked_at(PLAIN.assign(y=labels))
    assert "'lone' (1 row), 'rare' (3 rows)" in warning
    assert looked_at(PLAIN.assign(y=np.array(["common"] * 390 + ["rare"] * 10))) == []
    assert looked_at(PLAIN.assign(y=[f"class {n % 130}" for n in range(N)])) == []


def test_no_more_rows_are_looked_at_than_the_bound(monkeypatch):
    sizes = []
    read = row_checks.Raw.read
    monkeypatch.setattr(row_checks, "MAX_CHECKED_ROWS", 100)
    monkeypatch.setattr(like_groups, "MAX_COMPARED_ROWS", 50)
    monkeypatch.setattr(
        row_checks.Raw, "read", lambda table, columns: sizes.append(table.num_rows) or read(table, columns)
    )
    spec = TrainSpec.model_validate({"algorithm": {"name": "linear"}, "target": "y"})
    table = to_arrow(grouped().assign(copy=PLAIN["a"]))
    training_set = drawn_rows.TrainingSet.read(plan(spec, sheet_of(table).columns, N), table)
    sizes.clear()
    split = training_set.holdout(0.2, np.random.default_rng(0))
    row_checks.row_warnings(plan(spec, sheet_of(table).columns, N), table, training_set, split)
    assert [size for size in sizes if size] == [100, 100, 50]


def test_groups_are_drawn_whole_and_rows_without_one_are_not():
    codes = np.concatenate([np.full(30, -1), np.repeat(np.arange(400), 5), np.arange(400, 500), np.full(3_000, 500)])
    rows = drawn_groups(codes, np.random.default_rng(0))
    drawn, sizes = np.unique(codes[rows], return_counts=True)
    assert rows.size == like_groups.MAX_COMPARED_ROWS
    assert drawn.min() >= 0
    assert not set(drawn) & set(range(400, 500))
    assert sizes.max() <= like_groups.MAX_GROUP_ROWS
    assert (sizes >= 4).mean() > 0.9
    assert drawn_groups(np.full(9, -1), np.random.default_rng(0)).size == 0


def test_a_sample_is_stated():
    table = to_arrow(PLAIN.assign(copy=PLAIN["y"]))
    sheet, spec = sheet_of(table), TrainSpec.model_validate({"algorithm": {"name": "linear"}, "target": "y"})
    look = row_look(plan(spec, sheet.columns, sheet.rows), {})
    *_, last = look(Source(sheet, iter([table.slice(0, 100)])))
    assert last == "Rows were looked at in a sample, 100 of 400: the report is about all."
    assert look(Source(sheet, iter([table.slice(0, 1)]))) == [], "rows that cannot be used are named by the job"


def test_whole_numbers_that_lose_digits_are_named():
    """Those of a column of floats have lost theirs before."""
    numbers = np.arange(300) * 3
    table = pd.DataFrame({"code": numbers + 2**53, "count": numbers, "size": numbers * 2.0**50, "y": numbers % 7})
    (warning,) = [each for each in looked_at(table, features=["code", "count", "size"]) if "2⁵³" in each]
    assert "become one: code." in warning
    assert not any("2⁵³" in each for each in looked_at(table, features=["count", "size"]))


@pytest.mark.parametrize(
    ("leak", "sentence"),
    [
        (lambda t: t["y"] - t["a"], "'a' plus 'part'"),
        (lambda t: t["a"] - t["y"], "'a' minus 'part'"),
        (lambda t: (t["y"] - 2 * t["a"] - 5) / 3, "2 times 'a' plus 3 times 'part' plus 5"),
    ],
)
def test_two_columns_whose_sum_is_the_target_are_named(leak, sentence):
    (warning,) = looked_at(PLAIN.assign(part=leak(PLAIN)))
    assert warning.startswith(f"The target 'y' is {sentence}, in all 400 rows compared")


def test_dates_whose_distance_is_the_target_are_named():
    begun = pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 1000, N), unit="D")
    ended = begun + pd.to_timedelta(PLAIN["y"].abs() * 10, unit="D").dt.floor("s")
    table = PLAIN.assign(begun=begun, ended=ended, y=(ended - begun).dt.total_seconds() / 3600)
    assert any("times 'ended'" in text and "minus" in text for text in looked_at(table)) or any(
        "times 'begun' plus" in text for text in looked_at(table)
    )


@pytest.mark.parametrize(
    "part",
    [
        lambda t: t["y"] - t["a"] + RNG.normal(size=N) / 100,
        lambda t: (t["y"] - t["a"]).where(np.arange(N) > 0),
        lambda t: t["a"] + 1e-9 * RNG.normal(size=N),
    ],
)
def test_a_sum_that_is_not_exact_in_every_row_is_none(part):
    assert not any("The target 'y' is" in text for text in looked_at(PLAIN.assign(part=part(PLAIN))))


def test_the_sum_of_classes_is_no_leak():
    assert not any(
        "The target" in text for text in looked_at(PLAIN.assign(part=PLAIN["y"] - PLAIN["a"], y=PLAIN["town"]))
    )
