"""One more batch for a stored version: the step rule goes on, and everything else stays as it was."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor

from app.base.errors import InvalidData, InvalidRequest
from app.ml.contract.progress import unheard
from app.ml.jobs import bootstrap, evaluate, update
from app.ml.kinds.job import Inputs, JobContext, Source
from app.ml.models.model import decode
from app.ml.training.planning.plan import plan
from app.ml.training.planning.projection import Projection
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.ml.jobs.test_combine import flats, loaded
from tests.ml.jobs.test_evaluate import NOWHERE, sheet

ALL = {"validation": {"test_fraction": 0}}
PLAIN = ALL | {"features": ["size", "rooms", "garden"], "preprocessing": {"scaling": "none"}}
ONLINE = {"name": "linear_sgd", "solver": "online", "epochs": 1, "shuffle": False, "learning_rate": 1e-5, "l2": 0.01}


def full(n, seed, **changes):
    """Without gaps."""
    table = flats(n, seed, **changes)
    size, place = table["size"].fill_null(70.0), table["place"].fill_null("south")
    table = table.set_column(0, "size", size.combine_chunks())
    return table.set_column(2, "place", place.combine_chunks())


def trained(table, algorithm, target="rent", version=1, data_digest="sha256:first", **spec):
    given = {"algorithm": algorithm, "target": target, "features": ["size", "rooms", "place", "garden"]}
    planned = plan(TrainSpec.model_validate(given | spec), sheet(table).columns, table.num_rows)
    return loaded(train(planned, table, data_digest=data_digest), "m", version)


def outcome(base, table, data_digest="sha256:next", memory_bytes=np.inf, **changes):
    request = update.UpdateRequest.model_validate({"model": "m", "dataset": NOWHERE} | changes)
    known = JobContext((sheet(table, data_digest),), (base.version,), memory_bytes)
    update.KIND.check(request, known)
    source = Source(known.datasets[0], iter([table.slice(0, 9), table.slice(9)]))
    return update.KIND.run(request, Inputs((source,), (base,)), unheard)


def after(base, *tables, **changes):
    for place, table in enumerate(tables):
        made = outcome(base, table, f"sha256:{place}", **changes).trained
        base = loaded(made, "m", base.version.version + 1)
    return base


def faults(base, table, **changes):
    with pytest.raises(InvalidRequest) as raised:
        outcome(base, table, **changes)
    return sorted((fault.pointer, fault.code) for fault in raised.value.faults)


def matrix(table):
    return np.column_stack([table[name].to_numpy(zero_copy_only=False) for name in ("size", "rooms", "garden")]) * 1.0


def signs(table):
    return np.where(table["dear"].to_numpy(zero_copy_only=False) == "dear", 1, -1)


TABLES = [full(n, seed) for n, seed in ((60, 0), (25, 1), (25, 2))]
TWO = [table.filter(pa.compute.not_equal(table["dear"], "fair")) for table in TABLES]


def test_batches_follow_the_rule_of_widrow_and_hoff_and_its_steps_count_on():
    """w ← w + r·(y − w·x)x − r·l2·w with a rate r that falls with all steps made, not with those of a batch."""
    params = ONLINE | {"settling": 10}
    state = after(trained(TABLES[0], params, **PLAIN), *TABLES[1:]).model.state
    coef, intercept = np.zeros(3), 0.0
    truth = np.concatenate([table["rent"].to_numpy() for table in TABLES])
    for step, (x, y) in enumerate(zip(np.vstack([*map(matrix, TABLES)]), truth, strict=True)):
        rate = 1e-5 / np.sqrt(1 + step / 10)
        error = y - (x @ coef + intercept)
        coef, intercept = coef + rate * (error * x - 0.01 * coef), intercept + rate * error
    np.testing.assert_allclose(state.coef[0], coef, rtol=1e-12)
    assert (float(state.intercept[0]), state.steps) == (pytest.approx(intercept, rel=1e-12), 110)


def test_a_batch_moves_rosenblatts_weights_by_its_mistakes_alone():
    params = {"name": "perceptron", "epochs": 1, "shuffle": False, "average": "never"}
    state = after(trained(TWO[0], params, "dear", **PLAIN), *TWO[1:]).model.state
    weights, mistakes = np.zeros(4), 0
    for x, sign in zip(np.vstack([*map(matrix, TWO)]), np.concatenate([*map(signs, TWO)]), strict=True):
        row = np.append(x, 1.0)
        if sign * (weights @ row) <= 0:
            weights, mistakes = weights + sign * row, mistakes + 1
    np.testing.assert_allclose(state.coef[1], weights, rtol=1e-12)
    assert (state.mistakes, state.rounds) == (mistakes, sum(table.num_rows for table in TWO))


@pytest.mark.parametrize(
    ("params", "target", "peer"),
    [
        (
            ONLINE | {"settling": 1},
            "rent",
            SGDRegressor(alpha=0.01, learning_rate="invscaling", eta0=1e-5, power_t=0.5, shuffle=False),
        ),
        (
            ONLINE | {"schedule": "constant"},
            "dear",
            SGDClassifier(loss="log_loss", alpha=0.01, learning_rate="constant", eta0=1e-5, shuffle=False),
        ),
        ({"name": "perceptron", "epochs": 1, "shuffle": False, "average": "never"}, "dear", Perceptron(shuffle=False)),
    ],
    ids=["regression", "logistic", "perceptron"],
)
def test_coefficients_are_those_of_partial_fit(params, target, peer):
    base = after(trained(TWO[0], params, target, **PLAIN), *TWO[1:])
    classes = {"classes": np.array(["cheap", "dear"])} if target == "dear" else {}
    for table in TWO:
        peer.partial_fit(matrix(table), table[target].to_numpy(zero_copy_only=False), **classes)
    form = base.model.state.coef[-1]
    np.testing.assert_allclose(form[:3], np.ravel(peer.coef_), rtol=1e-9)


@pytest.fixture(scope="module")
def rents():
    return trained(full(200, 0), {"name": "linear_sgd"}, seed=3)


def test_columns_scales_and_categories_stay_and_intervals_go(rents):
    table = full(80, 5, places=("north", "moon"))
    made = outcome(rents, table)
    model = decode(made.trained.blob)
    assert model.inputs == rents.model.inputs
    for one, other in zip(model.preparation.learned, rents.model.preparation.learned, strict=True):
        np.testing.assert_array_equal(one, other)
    assert rents.model.calibration.scores.size
    assert not model.calibration.scores.size
    assert model.algorithm.interval is None
    warned = " ".join(made.warnings)
    assert "prediction intervals of the version before" in warned
    moons = sum(place == "moon" for place in table["place"].to_pylist())
    assert f"{moons} rows have categories in 'place' that the model does not know." in warned


def test_rows_are_evaluated_before_they_are_learned_and_after(rents):
    table = full(80, 5)
    made = outcome(rents, table)
    truth = table["rent"].to_numpy()
    for metrics, model in ((made.result.before, rents.model), (made.result.after, decode(made.trained.blob))):
        rmse = next(metric for metric in metrics if metric.name == "rmse")
        assert rmse.value == pytest.approx(np.sqrt(np.mean((model.predict(table).values - truth) ** 2)))
        assert rmse.lower < rmse.value < rmse.upper
    report = made.trained.report
    assert (report.rows_train, report.rows_test, report.test) == (80, 80, made.result.before)
    assert report.reuse.data_digest == "sha256:next"


def test_reliability_counts_the_rows_that_evaluated_the_version_before():
    base = trained(full(200, 0), {"name": "linear_sgd"}, "dear")
    table = full(80, 5)
    report = outcome(base, table).trained.report
    probabilities = base.model.predict(table).probabilities
    for curve, p in zip(report.reliability, probabilities.T, strict=True):
        assert sum(one.rows for one in curve.bins) == report.rows_test == 80
        mean = sum(one.rows * one.mean_probability for one in curve.bins) / 80
        assert mean == pytest.approx(p.mean())
    assert [curve.label for curve in report.reliability] == list(base.model.classes)
    assert outcome(trained(full(200, 0), ONLINE), table).trained.report.reliability is None


def test_a_receipt_names_the_base_and_all_batches(rents):
    second = after(rents, full(40, 5), full(40, 6))
    receipt = second.version.header.receipt
    assert receipt["base"] == {
        "model": "m",
        "version": 2,
        "digest": receipt["base"]["digest"],
        "data_digest": "sha256:0",
    }
    assert (receipt["data_digest"], receipt["batches"]) == ("sha256:1", ["sha256:0", "sha256:1"])
    assert receipt["training"] == rents.version.header.receipt
    again = after(rents, full(40, 5), full(40, 6))
    assert again.version.digest == second.version.digest


def test_rows_that_were_learned_evaluate_neither_this_version_nor_a_later_one(rents):
    first, fresh = full(200, 0), full(30, 5)
    mixed = pa.concat_tables([fresh, first])
    made = outcome(rents, mixed)
    held_out = rents.seen[0].rows
    assert (made.result.rows, made.result.rows_before) == (230, 230 - held_out)
    assert any("were left out of the evaluation" in warning for warning in made.warnings)
    own = outcome(rents, first, "sha256:first")
    assert own.result.rows_before == 200 - held_out
    assert "held out with seed 3" in own.trained.report.reuse.rows
    version = after(rents, fresh)
    request = evaluate.EvaluateRequest.model_validate({"model": "m", "dataset": NOWHERE})
    for table, digest, rows in ((first, "sha256:first", 200 - held_out), (mixed, "sha256:mixed", 200 - held_out)):
        source = Source(sheet(table, digest), iter([table]))
        assert evaluate.KIND.run(request, Inputs((source,), (version,)), unheard).result.rows == rows
    everything = outcome(version, fresh)
    assert (everything.result.before, everything.result.rows_before) == ([], 0)


def test_weights_and_transformed_targets_are_learned_as_in_the_training():
    tables = [table.append_column("w", pa.array(np.arange(1.0, table.num_rows + 1))) for table in TABLES[:2]]
    params = ONLINE | {"learning_rate": 1e-6, "schedule": "constant", "l2": 0}
    plain = PLAIN | {"preprocessing": {"scaling": "none", "target": "log"}, "weights": "w"}
    state = after(trained(tables[0], params, **plain), tables[1]).model.state
    coef, mean = np.zeros(4), tables[0]["w"].to_numpy().mean()
    for table in tables:
        for x, y, weight in zip(matrix(table), np.log(table["rent"].to_numpy()), table["w"].to_numpy(), strict=True):
            row = np.append(x, 1.0)
            coef = coef + 1e-6 * weight / mean * (y - coef @ row) * row
    np.testing.assert_allclose(state.coef[0], coef[:3], rtol=1e-10)


def test_a_new_class_is_refused_and_named():
    base = trained(TWO[0], {"name": "perceptron"}, "dear")
    with pytest.raises(InvalidData, match="'fair'") as raised:
        outcome(base, TABLES[1])
    first = TABLES[1]["dear"].to_pylist().index("fair")
    assert raised.value.faults[0][::2] == (f"/rows/{first}/dear", "unknown_class")


def test_every_fault_at_once(rents):
    table = full(30, 5)
    whole = trained(table.drop_columns(["dear"]), {"name": "linear_sgd"}, features=None)
    other = table.drop_columns(["place"])
    assert faults(whole, other) == [("/dataset", "missing_column"), ("/dataset", "unknown_column")]
    outcome(whole, table, ignored_columns=["dear"])
    assert faults(whole, table, ignored_columns=["dear", "x"]) == [("/ignored_columns/1", "unknown_column")]
    long = JobContext((sheet(table)._replace(rows=10**8),), (rents.version,), 1 << 30)
    with pytest.raises(InvalidRequest, match="rows fit, or take parameters that need less") as raised:
        update.KIND.check(update.UpdateRequest(model="m", dataset=NOWHERE), long)
    assert raised.value.faults[0].code == "too_large"


def test_algorithms_that_cannot_are_refused_with_those_that_can():
    base = trained(full(30, 5), {"name": "ridge"})
    with pytest.raises(InvalidRequest, match="Algorithms that can: linear_sgd, mlp, perceptron") as raised:
        outcome(base, full(30, 6))
    assert raised.value.faults[0].code == "not_offered"
    balanced = trained(TWO[0], {"name": "perceptron"}, "dear", class_weight="balanced")
    assert faults(balanced, TWO[1]) == [("/model", "not_offered")]


def test_a_version_that_learned_batches_is_not_bootstrapped(rents):
    version = after(rents, full(30, 5)).version
    request = bootstrap.BootstrapRequest.model_validate({"model": "m", "dataset": NOWHERE})
    with pytest.raises(InvalidRequest, match="further batches"):
        bootstrap.KIND.check(request, JobContext((sheet(full(30, 5)),), (version,)))


def test_a_model_behind_a_projection_learns_its_coordinates():
    table, batch = full(60, 0), full(25, 1)
    front = trained(table, {"name": "pca", "n_components": 2}, None, features=["size", "rooms"], **ALL)
    spec = ALL | {"preprocessing": {"scaling": "none", "projection": {"model": "m"}}, "features": None}
    given = TrainSpec.model_validate({"algorithm": ONLINE, "target": "rent"} | spec)
    between = Projection(*front.version, front.model)
    planned = plan(given, sheet(table).columns, table.num_rows, projection=between)
    base = loaded(train(planned, table, data_digest="sha256:first"), "m")
    version = after(base, batch)
    truth = np.concatenate([table["rent"].to_numpy(), batch["rent"].to_numpy()])
    coef = np.zeros(3)
    for step, (x, y) in enumerate(
        zip(np.vstack([front.model.predict(one).values for one in (table, batch)]), truth, strict=True)
    ):
        row, rate = np.append(x, 1.0), 1e-5 / np.sqrt(1 + step / 1000)
        coef = coef + rate * ((y - coef @ row) * row - 0.01 * coef * [1, 1, 0])
    np.testing.assert_allclose(version.model.state.coef[0], coef[:2], rtol=1e-9)
    assert version.version.header.receipt["projection"] == base.version.header.receipt["projection"]
