"""Columns selected by what a learner loses without them: scikit-learn as an oracle, grouped categories, stability."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.feature_selection import RFE, SequentialFeatureSelector
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from app.base.errors import InvalidRequest
from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import unheard
from app.ml.jobs.select import KIND, SelectRequest
from app.ml.kinds.job import Inputs, JobContext, Source
from app.ml.models.model import decode
from app.ml.training.planning.plan import plan
from app.ml.training.rows.training_set import TrainingSet
from tests.ml.jobs.test_combine import flats
from tests.ml.jobs.test_evaluate import NOWHERE, sheet

KFOLD = {"method": "kfold", "folds": 4, "test_fraction": 0}


def request(**changes):
    expected = {"dataset": NOWHERE, "target": "y", "algorithm": {"name": "linear"}, "validation": KFOLD, "resamples": 0}
    return SelectRequest.model_validate(expected | changes)


def selected(table, progress=unheard, **changes):
    requested, known = request(**changes), JobContext((sheet(table),))
    estimate = KIND.check(requested, known).estimate
    assert estimate.fits > 0
    source = Source(known.datasets[0], iter([table.slice(0, 50), table.slice(50)]))
    return KIND.run(requested, Inputs((source,)), progress)


def faults(table, **changes):
    with pytest.raises(InvalidRequest) as raised:
        KIND.check(request(**changes), JobContext((sheet(table),)))
    return [fault.pointer for fault in raised.value.faults]


def diabetes(columns=7):
    data = load_diabetes()
    x = data.data[:, :columns] / data.data[:, :columns].std(axis=0)
    return x, data.target, pa.table({f"x{place}": x[:, place] for place in range(columns)} | {"y": data.target})


@pytest.fixture(scope="module")
def folds():
    """The folds that a selection of all rows uses, read off its own code."""
    table = diabetes()[2]
    requested = request()
    training_set = TrainingSet.read(plan(requested.as_training, sheet(table).columns, table.num_rows), table)
    rng = np.random.Generator(np.random.PCG64(0))
    rows = training_set.holdout(0.0, rng).train
    return [(split.train, split.test) for split in training_set.folds(rows, 4, rng)]


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_selection_in_steps_is_as_scikit_learn_has_it(direction, folds):
    x, y, table = diabetes()
    for size in (2, 4):
        peer = SequentialFeatureSelector(
            LinearRegression(),
            n_features_to_select=size,
            direction=direction,
            scoring="neg_mean_squared_error",
            cv=folds,
        )
        kept = peer.fit(x, y).get_support()
        found = selected(table, strategy=direction, metric="rmse", min_columns=size, max_columns=size).result
        by_rmse = SequentialFeatureSelector(
            LinearRegression(), n_features_to_select=size, direction=direction,
            scoring="neg_root_mean_squared_error", cv=folds,
        )  # fmt: skip
        assert found.chosen == [f"x{place}" for place in np.flatnonzero(by_rmse.fit(x, y).get_support())]
        assert kept.sum() == len(found.chosen)
        step = next(one for one in found.steps if one.columns == size)
        expected = -cross_val_score(
            LinearRegression(), x[:, by_rmse.get_support()], y, cv=folds, scoring="neg_root_mean_squared_error"
        )
        np.testing.assert_allclose(step.folds, expected, rtol=1e-9)
        assert step.behind is None


@pytest.mark.parametrize("size", [1, 3, 5])
def test_recursive_elimination_is_as_scikit_learn_has_it(size):
    x, y, table = diabetes()
    kept = RFE(Ridge(1.0), n_features_to_select=size).fit(x, y).get_support()
    limits = {"min_columns": size, "max_columns": size}
    found = selected(table, strategy="recursive_elimination", algorithm={"name": "ridge", "l2": 1.0}, **limits).result
    assert found.chosen == [f"x{place}" for place in np.flatnonzero(kept)]
    assert [one.columns for one in found.steps] == [*range(7, size - 1, -1)]


def test_recursive_elimination_of_a_support_vector_machine():
    data = load_wine()
    rows = data.target < 2
    x, y = data.data[rows], data.target[rows]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    table = pa.table({f"x{place}": x[:, place] for place in range(13)} | {"y": np.array(["a", "b"])[y]})
    kept = RFE(SVC(kernel="linear", tol=1e-6), n_features_to_select=4, step=3).fit(x, y).get_support()
    found = selected(
        table, strategy="recursive_elimination", algorithm={"name": "svm", "kernel": "linear", "tol": 1e-6},
        metric="accuracy", step=3, min_columns=4, max_columns=4,
    ).result  # fmt: skip
    assert found.chosen == [f"x{place}" for place in np.flatnonzero(kept)]
    assert [one.columns for one in found.steps] == [13, 10, 7, 4]


@pytest.mark.parametrize("name", ["decision_tree", "random_forest", "gradient_boosting", "logistic", "linear"])
@pytest.mark.parametrize("strategy", ["forward", "recursive_elimination"])
def test_the_indicators_of_a_column_stay_together(name, strategy):
    rng = np.random.default_rng(0)
    place = rng.choice([*"abcdefgh"], 160)
    effect = {letter: (-1) ** n * (1 + n) for n, letter in enumerate("abcdefgh")}
    x = rng.normal(size=(160, 2))
    score = np.array([effect[one] for one in place]) + 0.1 * x[:, 0]
    table = pa.table({"noise": x[:, 1], "weak": x[:, 0], "place": place, "y": np.where(score > 0, "up", "down")})
    more = {"n_estimators": 20} if name in {"random_forest", "gradient_boosting"} else {}
    found = selected(
        table, strategy=strategy, algorithm={"name": name, **more}, metric="accuracy", max_columns=1
    ).result
    assert found.chosen == ["place"]
    assert found.left_out == ["noise", "weak"]


def test_dates_and_named_imputations_follow_their_columns():
    rng = np.random.default_rng(0)
    days = rng.integers(0, 700, 120)
    x = rng.normal(size=120)
    when = pa.array(days.astype("datetime64[D]").astype("datetime64[us]"), pa.timestamp("us", "UTC"))
    table = pa.table({"when": when, "x": x, "noise": rng.normal(size=120), "y": 3 * x + np.cos(days / 58.1)})
    columns = [TableColumn(n, "datetime" if n == "when" else "numeric", 0, 100) for n in table.column_names]
    for strategy in ("backward", "recursive_elimination"):
        requested = request(
            strategy=strategy, rule="best",
            preprocessing={"dates": {"when": ["cyclic_month"]}, "imputation": {"noise": "median"}},
        )  # fmt: skip
        known = JobContext((sheet(table)._replace(columns=tuple(columns)),))
        KIND.check(requested, known)
        found = KIND.run(requested, Inputs((Source(known.datasets[0], iter([table])),)), unheard).result
        assert {"when", "x"} <= {*found.chosen}


def noisy(n=200, d=10, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    y = 3 * x[:, 0] - 2 * x[:, 1] + x[:, 2] + rng.normal(size=n)
    return pa.table({f"x{place}": x[:, place] for place in range(d)} | {"y": y})


@pytest.mark.parametrize("strategy", ["forward", "backward", "recursive_elimination"])
def test_columns_of_noise_are_left_out_and_the_choice_is_stable(strategy):
    found = selected(noisy(150, 7), strategy=strategy, resamples=6).result
    assert found.chosen == ["x0", "x1", "x2"]
    assert found.stability.resamples == 6
    assert found.stability.value.value == pytest.approx(1, abs=0.15)
    frequent = found.stability.columns[:3]
    assert {one.column for one in frequent if one.chosen} == {*found.chosen}
    assert all(one.selected.lower <= one.selected.value <= one.selected.upper for one in found.stability.columns)
    assert sum(one.selected.value for one in found.stability.columns) == pytest.approx(3)


RELIABLE = "No column was chosen reliably"


def test_choices_among_columns_of_noise_are_warned_of_and_those_with_a_signal_are_not():
    """The best of four columns of noise may look reliable on the folds that chose it, but seldom does."""
    counts = []
    for signal in (False, True):
        tables = [noisy(150, 4, seed) for seed in range(5)]
        if not signal:
            tables = [table.set_column(4, "y", tables[place - 1]["y"]) for place, table in enumerate(tables)]
        warnings = [selected(table).result.warnings for table in tables]
        counts.append(sum(any(RELIABLE in warning for warning in own) for own in warnings))
    assert counts[0] >= 4
    assert counts[1] == 0
    coins = np.where(np.random.default_rng(0).random(150) < 0.5, "up", "down")
    classes = noisy(150, 7).set_column(7, "y", pa.array(coins.tolist()))
    assert RELIABLE in selected(classes, algorithm={"name": "logistic"}).result.warnings[0]


def test_one_standard_error_takes_no_more_columns_than_the_best():
    best, fewer = (selected(noisy(60, 8, 3), rule=rule).result for rule in ("best", "one_standard_error"))
    assert len(fewer.chosen) <= len(best.chosen)
    by_size = {one.columns: one.validation.value for one in best.steps}
    assert by_size[len(best.chosen)] == min(by_size.values())
    spread = np.std(next(one.folds for one in best.steps if one.columns == len(best.chosen)), ddof=1) / 2
    limit = by_size[len(best.chosen)] + spread
    assert len(fewer.chosen) == min(size for size, value in by_size.items() if value <= limit)


def test_the_version_is_trained_on_the_chosen_columns_and_evaluated_on_rows_that_chose_nothing():
    seen = []
    outcome = selected(
        noisy(), lambda fraction, *_: seen.append(fraction), model="few", validation={"method": "kfold"}, resamples=2
    )
    model = decode(outcome.trained.blob)
    assert [column.name for column in model.preparation.inputs] == outcome.result.chosen == ["x0", "x1", "x2"]
    assert outcome.trained.report.rows_test == 40
    assert outcome.evaluation_rows.rows == "0.2 held out with seed 0, target 'y'"
    assert "160 training rows" in outcome.result.evidence
    assert seen == sorted(seen)
    assert 0.9 < seen[-1] <= 1


def test_rows_of_a_table_with_gaps_and_categories():
    found = selected(
        flats(150), target="rent", features=["size", "rooms", "place", "garden"], strategy="backward"
    ).result
    assert {"size", "rooms"} <= {*found.chosen}
    assert found.steps[0].changed == ["size", "rooms", "place", "garden"]
    assert [one.columns for one in found.steps] == [4, 3, 2, 1]


def test_the_same_request_has_the_same_result():
    one, other = (selected(noisy(80, 5), resamples=3).result.model_dump_json() for _ in range(2))
    assert one == other


@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        ({"algorithm": {"name": "knn"}, "strategy": "recursive_elimination"}, ["/algorithm/name"]),
        ({"algorithm": {"name": "svr", "kernel": "rbf"}, "strategy": "recursive_elimination"}, ["/algorithm/name"]),
        (
            {"algorithm": {"name": "random_forest", "importance": False}, "strategy": "recursive_elimination"},
            ["/algorithm/name"],
        ),
        ({"algorithm": {"name": "kmeans"}, "target": None}, ["/algorithm/name"]),
        ({"metric": "accuracy"}, ["/metric"]),
        ({"metric": "acuracy"}, ["/metric"]),
        ({"validation": {"method": "holdout"}}, ["/validation/method"]),
        ({"min_columns": 3, "max_columns": 2}, ["/max_columns"]),
        ({"min_columns": 30}, ["/min_columns"]),
        ({"features": ["x0"]}, ["/features"]),
        ({"features": ["x0", "x99"], "resamples": 1}, ["/features/1", "/resamples"]),
        ({"preprocessing": {"basis": [{"kind": "polynomial"}]}}, ["/preprocessing/basis"]),
        ({"target": "z"}, ["/target"]),
    ],
)
def test_every_fault_has_its_place(changes, pointers):
    assert sorted(set(faults(noisy(50, 4), **changes))) == pointers


def test_too_many_fits_are_refused():
    table = pa.table({f"x{place}": np.arange(5.0) + place for place in range(2, 1000)} | {"y": np.arange(5.0)})
    assert faults(table) == ["/strategy"]
