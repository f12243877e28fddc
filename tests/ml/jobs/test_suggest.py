"""Next experiments by a Gaussian process: where they are, what they promise, batches, limits, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from app.base.errors import InvalidRequest
from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import unheard
from app.ml.jobs import suggest
from app.ml.kinds.job import Inputs, JobContext, Loaded, Sheet, Source, Version
from app.ml.models.header import read_header
from app.ml.models.model import decode, digest
from app.ml.numerics.acquisition.improvement import log_expected_improvement
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

NOWHERE = "00000000-0000-7000-8000-000000000000"
RNG = np.random.default_rng(4)
HEAT, TIME = RNG.uniform(20, 80, 14), RNG.uniform(1, 9, 14)
SOLVENT = ["water", "ethanol"] * 7


def yielded(heat, time, solvent):
    return 50 - (heat - 55) ** 2 / 40 - (time - 6) ** 2 + 5 * (np.array(solvent) == "ethanol")


TABLE = pa.table({"heat": HEAT, "time": TIME, "solvent": SOLVENT, "y": yielded(HEAT, TIME, SOLVENT)})


def sheet(table=TABLE):
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        numeric = pa.types.is_floating(column.type)
        ends = (min(column.to_pylist()), max(column.to_pylist())) if numeric else (None, None)
        kind = "numeric" if numeric else "categorical"
        columns.append(TableColumn(name, kind, 0, len(column.unique()), minimum=ends[0], maximum=ends[1]))
    return Sheet("sha256:own", len(table), tuple(columns))


def surrogate(name="gaussian_process", table=TABLE, **spec):
    given = {"algorithm": {"name": name}, "target": "y", "validation": {"test_fraction": 0}} | spec
    made = train(
        plan(TrainSpec.model_validate(given), sheet(table).columns, len(table)), table, data_digest="sha256:own"
    )
    return Loaded(Version(name, 1, digest(made.blob), read_header(made.blob)), decode(made.blob))


def suggested(table=TABLE, **changes):
    body = {"dataset": NOWHERE, "target": "y", "noise": 0} | changes
    request = suggest.SuggestRequest.model_validate(body)
    suggest.KIND.check(request, JobContext((sheet(table),)))
    return suggest.KIND.run(request, Inputs((Source(sheet(table), iter([table])),)), unheard).result


def faults(models=(), **changes):
    body = {"dataset": NOWHERE, "target": "y"} | changes
    request = suggest.SuggestRequest.model_validate({k: v for k, v in body.items() if v is not None})
    with pytest.raises(InvalidRequest) as raised:
        suggest.KIND.check(request, JobContext((sheet(),), models))
    return sorted((fault.pointer, fault.code) for fault in raised.value.faults)


def test_the_suggestion_has_the_largest_expected_improvement_of_a_grid():
    """No point of a fine grid promises more, by the predictions and variances of the same function."""
    table = TABLE.select(["heat", "y"])
    result = suggested(table, seed=3)
    (one,) = result.suggestions
    model = surrogate(table=table, algorithm={"name": "gaussian_process", "sigma": 0}, seed=3).model
    grid = np.linspace(HEAT.min(), HEAT.max(), 4001)[:, None]
    x = model.preparation.matrix(grid)
    deviation = np.sqrt(model.algorithm.outputs["variance"].compute(model.params, model.state, x))
    promised = np.exp(log_expected_improvement(model.predict(grid).values, deviation, np.array(result.best)))
    assert one.acquisition == pytest.approx(promised.max(), rel=1e-3)
    assert one.row["heat"] == pytest.approx(grid[promised.argmax(), 0], abs=0.1)
    assert result.best == pytest.approx(max(table["y"].to_pylist()))
    assert one.lower < one.prediction < one.upper


def test_a_known_posterior_gives_the_improvement_of_scikit_learn():
    x, y = np.array([[0.0], [0.2], [0.55], [1.0]]), np.array([0.3, 1.0, 0.2, -0.5])
    table = pa.table({"x": x[:, 0], "y": y})
    given = {"name": "gaussian_process", "kernel": "rbf", "length_scale": 1.0, "amplitude": 0.7, "sigma": 0.1}
    loaded = surrogate(table=table, algorithm=given, preprocessing={"scaling": "none"})
    request = suggest.SuggestRequest.model_validate({"surrogate": {"model": "m"}})
    suggest.KIND.check(request, JobContext(models=(loaded.version,)))
    result = suggest.KIND.run(request, Inputs(models=(loaded,)), unheard).result
    peer = GaussianProcessRegressor(0.7**2 * kernels.RBF(1.0), alpha=0.1**2, optimizer=None).fit(x, y - y.mean())
    best = peer.predict(x).max() + y.mean()
    mean, deviation = peer.predict([[result.suggestions[0].row["x"]]], return_std=True)
    assert result.best == pytest.approx(best, rel=1e-9)
    promised = np.exp(log_expected_improvement(mean + y.mean(), deviation, np.array(best)))[0]
    assert result.suggestions[0].acquisition == pytest.approx(promised, rel=1e-6)
    assert result.rows == 4


def test_a_few_suggestions_find_the_optimum():
    table = TABLE
    for seed in range(4):
        row = suggested(table, seed=seed).suggestions[0].row
        new = {name: [row[name]] for name in ("heat", "time", "solvent")}
        new["y"] = yielded(*(np.array(new[name]) for name in ("heat", "time", "solvent")))
        table = pa.concat_tables([table, pa.table(new)])
    assert max(table["y"].to_pylist()) > 54.5  # of 55


def test_minimising_the_negative_is_the_same():
    negative = TABLE.set_column(3, "y", pa.array(-np.array(TABLE["y"])))
    up, down = suggested(seed=1), suggested(negative, goal="minimise", seed=1)
    assert up.best == pytest.approx(-down.best)
    first, second = up.suggestions[0], down.suggestions[0]
    assert first.acquisition == pytest.approx(second.acquisition, rel=1e-3)
    assert first.row["heat"] == pytest.approx(second.row["heat"], abs=0.5)


@pytest.mark.parametrize("batch", ["sampled", "kriging_believer", "constant_liar"])
def test_a_batch_is_of_different_experiments_within_the_limits(batch):
    result = suggested(
        batch=batch, n_suggestions=4, variables=[{"column": "time", "minimum": 1, "maximum": 9, "integer": True}],
        constraints=[{"coefficients": {"heat": 1, "time": 10}, "at_most": 125}], fixed={"solvent": "water"},
    )  # fmt: skip
    rows = [one.row for one in result.suggestions]
    assert len({tuple(row.values()) for row in rows}) == 4
    for row in rows:
        assert row["heat"] + 10 * row["time"] <= 125 + 1e-6
        assert row["solvent"] == "water"
        assert row["time"] in range(1, 10)


def test_pure_uncertainty_looks_far_from_the_rows():
    table = pa.table({"x": [0.0, 0.1, 0.2, 1.0], "y": [0.0, 0.1, 0.2, 0.9]})
    (one,) = suggested(table, acquisition="uncertainty").suggestions
    assert 0.4 < one.row["x"] < 0.8
    assert one.acquisition == pytest.approx(one.deviation, rel=1e-6)


def test_a_bound_is_the_mean_and_its_deviations():
    (one,) = suggested(acquisition="confidence_bound", kappa=1.5).suggestions
    assert one.acquisition == pytest.approx(one.prediction + 1.5 * one.deviation, rel=1e-6)


def test_an_experiment_beyond_the_measured_range_is_flagged():
    variables = [{"column": "heat", "minimum": 200, "maximum": 300}]
    (one,) = suggested(variables=variables).suggestions
    assert one.outside_range == ["heat"]


def test_the_same_seed_gives_the_same_suggestions():
    assert suggested(n_suggestions=2, seed=7) == suggested(n_suggestions=2, seed=7)


def test_equal_experiments():
    same = TABLE.take([0, 0, 0]).set_column(3, "y", pa.array([1.0, 2.0, 1.5]))
    limits = [{"column": "heat", "minimum": 0, "maximum": 100}, {"column": "time", "minimum": 0, "maximum": 9}]
    (one,) = suggested(same, noise=None, variables=limits).suggestions
    assert np.isfinite([one.prediction, one.deviation, one.acquisition]).all()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"dataset": None, "target": None}, [("/dataset", "missing")]),
        ({"target": None}, [("/target", "missing")]),
        ({"surrogate": {"model": "m"}}, [("/dataset", "invalid"), ("/target", "invalid")]),
        ({"variables": [{"column": "hot"}]}, [("/variables/0/column", "unknown_column")]),
        ({"variables": [{"column": "heat"}, {"column": "heat"}]}, [("/variables/1/column", "duplicate")]),
        ({"variables": [{"column": "heat", "minimum": 90}]}, [("/variables/0/minimum", "invalid")]),
        ({"variables": [{"column": "solvent", "minimum": 90}]}, [("/variables/0/minimum", "invalid")]),
        ({"variables": [{"column": "solvent", "values": [1, "a", "a", None]}]},
         [("/variables/0/values/0", "not_a_string"), ("/variables/0/values/2", "duplicate"),
          ("/variables/0/values/3", "missing_value")]),
        ({"variables": [{"column": "time", "minimum": 1.1, "maximum": 1.9, "integer": True}]},
         [("/variables/0/integer", "invalid")]),
        ({"fixed": {"heat": "a", "cold": 1}}, [("/fixed/cold", "unknown_column"), ("/fixed/heat", "not_a_number")]),
        ({"fixed": {"heat": 1, "time": 1, "solvent": "water"}}, [("/fixed", "invalid")]),
        ({"constraints": [{"coefficients": {"heat": 1, "solvent": 1, "cold": 1}, "at_most": 1}]},
         [("/constraints/0/coefficients/cold", "unknown_column"),
          ("/constraints/0/coefficients/solvent", "wrong_kind")]),
        ({"constraints": [{"coefficients": {"heat": 1}, "at_most": 1}]}, [("/constraints", "infeasible")]),
        ({"sigma": "time", "noise": 1.0}, [("/noise", "invalid")]),
    ],
)  # fmt: skip
def test_a_fault_has_its_place(changes, expected):
    assert faults(**changes) == expected


def test_only_a_function_with_uncertainty_suggests():
    version = surrogate("ridge").version
    changes = {"dataset": None, "target": None, "surrogate": {"model": "m"}}
    assert faults((version,), **changes) == [("/surrogate/model", "not_offered")]
    version = surrogate(preprocessing={"target": "log"}, table=TABLE.set_column(3, "y", pa.array(HEAT))).version
    assert faults((version,), **changes) == [("/surrogate/model", "not_offered")]
