"""A calibrated version of a stored classifier: rows, maps, what stays, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import CorruptModel, InvalidData, InvalidRequest
from app.ml.contract.progress import unheard
from app.ml.jobs import bootstrap, calibrate, evaluate, update
from app.ml.kinds.job import Inputs, JobContext, Source
from app.ml.models import safetensors_format
from app.ml.models.header import CALIBRATED_FORMAT
from app.ml.models.model import decode, encode
from tests.ml.jobs.test_combine import combined, flats, loaded, model
from tests.ml.jobs.test_evaluate import NOWHERE, sheet

ALL = {"validation": {"test_fraction": 0}}


def outcome(base, table, data_digest="sha256:new", **changes):
    request = calibrate.CalibrateRequest.model_validate(
        {"model": "m", "dataset": NOWHERE, "store_worse": True} | changes
    )
    known = JobContext((sheet(table, data_digest),), (base.version,))
    calibrate.KIND.check(request, known)
    source = Source(known.datasets[0], iter([table.slice(0, 50), table.slice(50)]))
    return calibrate.KIND.run(request, Inputs((source,), (base,)), unheard)


def calibrated(base, table, data_digest="sha256:new", **changes):
    made = outcome(base, table, data_digest, **changes).trained
    return loaded(made, base.version.model, base.version.version + 1)


def evaluated(base, table, data_digest="sha256:new", **changes):
    request = evaluate.EvaluateRequest.model_validate({"model": "m", "dataset": NOWHERE} | changes)
    source = Source(sheet(table, data_digest), iter([table]))
    return evaluate.KIND.run(request, Inputs((source,), (base,)), unheard).result


def faults(base, table, **changes):
    with pytest.raises(InvalidRequest) as raised:
        outcome(base, table, **changes)
    return sorted((fault.pointer, fault.code) for fault in raised.value.faults)


def error_of(side):
    return side.metrics[0]


def echoes(rows, seed, names=("no", "yes")):
    """Four columns that say nearly the same of the class: naive Bayes takes them for four witnesses."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, len(names), rows)
    x = codes + rng.normal(0, 1, rows)
    columns = {f"x{place}": x + rng.normal(0, 0.1, rows) for place in range(4)}
    return pa.table(columns | {"class": np.array(names)[codes]})


def naive(table, **spec):
    return model(table, "generative_bayes", "class", features=[f"x{place}" for place in range(4)], **spec)


@pytest.fixture(scope="module")
def table():
    return echoes(1000, 1)


@pytest.fixture(scope="module")
def sure():
    """Far too sure of itself."""
    return naive(echoes(200, 0), **ALL)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_probabilities_that_are_too_sure_become_those_of_new_rows(sure, table, method):
    """The error on very many rows, which stands for that on all there are, lies within the interval of 500."""
    made = outcome(sure, table, method=method)
    before, after = error_of(made.result.before), error_of(made.result.after)
    assert after.upper < before.lower
    assert (made.result.rows_fit, made.result.rows_test) == (500, 500)
    many = echoes(50_000, 9)
    codes = np.array(many["class"].to_pylist()) == "yes"
    for side, of in ((before, sure.model), (after, loaded(made.trained, "m", 2).model)):
        p = of.predict(many).probabilities[:, 1]
        gaps = np.bincount(np.searchsorted(np.linspace(0, 1, 11)[1:-1], p), codes - p, 10)
        assert side.lower <= np.abs(gaps).sum() / codes.size <= side.upper
    for name in ("log_loss", "brier"):
        losses = [
            next(one for one in side.metrics if one.name == name) for side in (made.result.before, made.result.after)
        ]
        assert losses[1].value < losses[0].value
        assert losses[1].value == next(one.value for one in made.trained.report.test if one.name == name)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_rows_that_fitted_a_map_do_not_evaluate_it_and_the_others_do(sure, table, method):
    made = outcome(sure, table, method=method, n_bins=5, strategy="quantile")
    after = loaded(made.trained, "m", 2)
    again = evaluated(after, table)
    assert again.rows == made.result.rows_test
    (left_out,) = again.warnings
    assert "500 of 1000 rows equal a training row" in left_out
    found = {metric.name: metric.value for metric in again.metrics if metric.label is None}
    assert found["log_loss"] == next(one.value for one in made.result.after.metrics if one.name == "log_loss")
    assert evaluated(after, table, "sha256:copy").rows == made.result.rows_test


def test_the_report_has_the_reliability_after_the_map(sure, table):
    made = outcome(sure, table, n_bins=5)
    (curve,) = made.trained.report.reliability
    assert [curve] == made.result.after.curves
    assert curve != made.result.before.curves[0]
    assert sum(one.rows for one in curve.bins) == made.result.rows_test
    assert len(curve.bins) <= 5


def test_on_its_own_dataset_only_rows_that_were_held_out_calibrate_a_model():
    own = echoes(400, 3)
    base = naive(own, data_digest="sha256:own", validation={"test_fraction": 0.5})
    made = outcome(base, own, "sha256:own")
    assert (made.result.rows_fit, made.result.rows_test) == (100, 100)
    assert made.trained.report.reuse == base_reuse(base, own)
    after = loaded(made.trained, "m", 2)
    assert evaluated(after, own, "sha256:own").rows == 100
    twice = outcome(after, own, "sha256:own")
    assert (twice.result.rows_fit, twice.result.rows_test) == (50, 50)


def base_reuse(base, table):
    return evaluated(base, table, "sha256:own").reuse


def test_a_model_that_has_seen_all_rows_or_unknown_ones_is_refused(sure, table):
    with pytest.raises(InvalidData, match="learned from all rows"):
        outcome(sure, echoes(200, 0), "sha256:copy")
    unknown = calibrated(sure, table)._replace(seen=None)
    with pytest.raises(InvalidData, match="unknown rows"):
        outcome(unknown, table)


def test_stored_bytes_give_the_same_probabilities_and_the_same_rows_the_same_bytes(sure, table):
    made, again = (outcome(sure, table, method="isotonic").trained for _ in range(2))
    assert made.blob == again.blob
    after = decode(made.blob)
    rows = table.slice(0, 20)
    p = after.predict(rows).probabilities
    (maps,) = after.calibrators
    x, y = maps.knots.T
    np.testing.assert_array_equal(p[:, 1], np.interp(sure.model.predict(rows).probabilities[:, 1], x, y))
    np.testing.assert_array_equal(np.vstack([after.predict(rows.slice(i, 1)).probabilities for i in range(20)]), p)
    assert (after.inputs, after.classes, after.name) == (sure.model.inputs, sure.model.classes, sure.model.name)
    assert after.nbytes > sure.model.nbytes
    document, arrays = safetensors_format.read(made.blob)
    assert document["format"] == CALIBRATED_FORMAT
    assert "calibrators" not in safetensors_format.read_document(encode(sure.model))
    arrays["calibrators.0.knots"] = arrays["calibrators.0.knots"][::-1].copy()
    with pytest.raises(CorruptModel):
        decode(safetensors_format.write(document, arrays))


def test_a_calibrated_version_is_calibrated_again_and_its_receipt_names_both(sure, table):
    first = calibrated(sure, table, "sha256:first")
    second = calibrated(first, echoes(600, 5), "sha256:second", method="isotonic")
    receipt = second.model.receipt
    assert [one["data_digest"] for one in receipt["calibrations"]] == ["sha256:first", "sha256:second"]
    assert [one["method"] for one in receipt["calibrations"]] == ["sigmoid", "isotonic"]
    assert (receipt["base"]["version"], receipt["base"]["digest"]) == (2, first.version.digest)
    assert receipt["training"]["data_digest"] == "sha256:own"
    assert [len(one.coef) for one in second.model.calibrators] == [1, 0]
    assert evaluated(second, table, "sha256:first").rows == 500


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_of_three_classes_probabilities_add_up_to_one_and_are_less_wrong(method):
    names = ("high", "low", "middle")
    made = outcome(naive(echoes(300, 0, names), **ALL), echoes(1500, 1, names), method=method)
    before, after = made.result.before, made.result.after
    assert [curve.label for curve in after.curves] == list(names)
    assert error_of(after).upper < error_of(before).lower
    p = decode(made.trained.blob).predict(echoes(50, 2, names)).probabilities
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)


def test_a_committee_of_stored_models_is_calibrated_and_calibrated_models_are_combined(sure, table):
    other = naive(echoes(150, 7), data_digest="sha256:third", **ALL)
    members = [sure, calibrated(other, table)]
    team = loaded(combined(echoes(300, 8), members, voting="hard", min_probability=0.8), "team")
    rows = echoes(40, 11)
    votes = np.mean([np.eye(2)[one.model.predict(rows).probabilities.argmax(axis=1)] for one in members], axis=0)
    np.testing.assert_allclose(team.model.predict(rows).probabilities, votes)
    made = outcome(team, echoes(500, 12))
    after = loaded(made.trained, "team", 2)
    assert after.model.receipt["members"] == team.model.receipt["members"]
    predicted = after.model.predict(rows)
    np.testing.assert_array_equal(np.sort(predicted.unknown), np.flatnonzero(predicted.probabilities.max(axis=1) < 0.8))
    before = {metric.name: metric.value for metric in evaluated(team, echoes(500, 12)).metrics}
    assert before["log_loss"] is None, "votes are no probabilities"
    assert evaluated(after, echoes(500, 12)).metrics[1].value is not None


def test_soft_members_keep_their_calibrated_probabilities_when_stored(sure, table):
    members = [sure, calibrated(sure, table, method="isotonic")]
    team = loaded(combined(echoes(300, 8), members), "team")
    rows = echoes(40, 11)
    mean = np.mean([one.model.predict(rows).probabilities for one in members], axis=0)
    np.testing.assert_allclose(team.model.predict(rows).probabilities, mean, rtol=1e-12)


def test_groups_of_the_training_are_not_divided():
    def grouped(rows, seed):
        found = echoes(rows, seed)
        return found.append_column("who", pa.array([f"p{place // 5}" for place in range(rows)]))

    base = naive(grouped(200, 0), validation={"group": "who", "test_fraction": 0.2})
    rows = grouped(300, 1)
    made = outcome(base, rows, method="sigmoid")
    kept = evaluated(loaded(made.trained, "m", 2), rows, examples=1000)
    tested = {row // 5 for cell in kept.confusion_matrix.cells for row in cell.rows}
    assert 5 * len(tested) == made.result.rows_test == kept.rows


def beside(rows, seed, **columns):
    found = echoes(rows, seed)
    for name, cells in columns.items():
        found = found.append_column(name, pa.array(cells(rows)))
    return found


def weeks(rows):
    return np.random.default_rng(rows).permutation(rows) // 10 * 1.0


def test_of_a_training_in_order_of_time_later_rows_measure_the_maps():
    base = naive(beside(200, 0, week=weeks), validation={"time": "week", "test_fraction": 0.2})
    rows = beside(300, 1, week=weeks)
    made = outcome(base, rows, test_fraction=0.3)
    kept = evaluated(loaded(made.trained, "m", 2), rows, examples=1000)
    tested = [row for cell in kept.confusion_matrix.cells for row in cell.rows]
    assert sorted(tested) == np.flatnonzero(rows["week"].to_numpy() >= 21).tolist()
    assert (made.result.rows_fit, made.result.rows_test) == (210, 90)
    assert made.trained.report.evidence.endswith("Those that measure are the latest by column 'week', from 21 on.")


def test_weights_of_rows_count_in_the_maps_and_in_what_measures_them(table):
    """Rows of weight 3 count as three that are equal, but for what is known of them."""

    def uneven(rows):
        return 1.0 + 2 * (np.arange(rows) % 3 == 0)

    base = naive(beside(200, 0, w=uneven), weights="w", **ALL)
    rows = beside(600, 1, w=uneven)
    made = outcome(base, rows)
    (maps,) = decode(made.trained.blob).calibrators
    plain = outcome(base, rows.drop_columns(["w"]))
    assert any("lacks the column 'w', the weights" in one for one in plain.trained.report.warnings)
    assert not any("lacks the column" in one for one in made.trained.report.warnings)
    assert made.trained.report.evidence.endswith("Rows count by column 'w'.")
    assert not np.allclose(decode(plain.trained.blob).calibrators[0].coef, maps.coef)
    tested = [row for cell in plain_cells(made, rows) for row in cell.rows]
    p = decode(made.trained.blob).predict(rows.take(tested)).probabilities
    codes = np.array(rows["class"].to_pylist())[tested] == "yes"
    losses = -np.log(np.where(codes, p[:, 1], p[:, 0]))
    expected = np.average(losses, weights=rows["w"].to_numpy()[tested])
    assert made.result.after.metrics[1].value == pytest.approx(expected, rel=1e-9)


def plain_cells(made, rows):
    return evaluated(loaded(made.trained, "m", 2), rows, examples=1000).confusion_matrix.cells


def test_a_column_that_cannot_have_its_role_is_refused():
    base = naive(beside(200, 0, w=np.ones), weights="w", **ALL)
    named = beside(300, 1, w=lambda rows: ["heavy", "light"] * (rows // 2))
    assert faults(base, named) == [("/dataset", "wrong_kind")]
    with pytest.raises(InvalidData, match="Row weights are numbers above zero"):
        outcome(base, beside(300, 1, w=np.zeros))


def test_rows_of_unknown_classes_are_left_out(sure):
    rows = pa.concat_tables([echoes(200, 1), echoes(40, 2, ("maybe",))])
    made = outcome(sure, rows)
    assert made.result.rows_fit + made.result.rows_test == 200
    assert any("40 rows are of classes" in one for one in made.trained.report.warnings)


def test_a_class_with_too_few_rows_is_named(sure):
    few = pa.concat_tables([echoes(100, 1, ("no",)), echoes(6, 2, ("yes",))])
    with pytest.raises(InvalidData, match="Class 'yes': 3 to fit, 3 to measure"):
        outcome(sure, few)
    with pytest.raises(InvalidData, match="Class 'no': 0 to fit"):
        outcome(sure, echoes(100, 1, ("maybe", "perhaps")))


def test_every_fault_of_a_request_is_named(sure, table):
    wrong = table.drop_columns(["x0"]).rename_columns(["x1", "x2", "x3", "other"])
    assert faults(sure, wrong, version=1, alias="champion") == [
        ("/alias", "invalid"),
        ("/dataset", "missing_column"),
        ("/dataset", "unknown_column"),
    ]
    assert faults(sure, table.slice(0, 11)) == [("/dataset", "too_few_rows")]
    header = sure.version.header._replace(classes=("yes",))
    assert faults(sure._replace(version=sure.version._replace(header=header)), table) == [("/model", "not_offered")]
    numbers = model(flats(100), "ridge")
    assert faults(numbers, flats(100)) == [("/model", "not_offered")]


def test_a_base_that_orders_rows_the_wrong_way_is_named(sure, table):
    turned = table.set_column(
        4, "class", pa.array(["yes" if one == "no" else "no" for one in table["class"].to_pylist()])
    )
    assert any("does not rise" in one for one in outcome(sure, turned).trained.report.warnings)


def test_a_further_batch_drops_the_calibrators_and_refits_need_a_training(table):
    base = model(echoes(200, 0), "linear_sgd", "class", features=[f"x{place}" for place in range(4)])
    after = calibrated(base, table)
    request = update.UpdateRequest.model_validate({"model": "m", "dataset": NOWHERE})
    batch = echoes(100, 4)
    known = JobContext((sheet(batch, "sha256:batch"),), (after.version,))
    update.KIND.check(request, known)
    fed = update.KIND.run(request, Inputs((Source(known.datasets[0], iter([batch])),), (after,)), unheard)
    assert decode(fed.trained.blob).calibrators == ()
    assert update.RAW in fed.trained.report.warnings
    asking = bootstrap.BootstrapRequest.model_validate({"model": "m", "dataset": NOWHERE})
    with pytest.raises(InvalidRequest) as raised:
        bootstrap.KIND.check(asking, JobContext((sheet(table),), (after.version,)))
    assert "calibrated" in raised.value.faults[0].detail


def test_a_calibration_that_does_harm_is_made_on_request_alone_and_one_that_helps_without():
    """Isotonic maps of a few rows are too sure of probabilities that were right before."""
    helped = outcome(naive(echoes(400, 1), **ALL), echoes(2000, 2))
    assert helped.result.stored
    assert not any("are worse on" in warning for warning in helped.warnings)
    right = model(echoes(4000, 3), "logistic", "class", features=["x0"], **ALL)
    harmed, skipped = (outcome(right, echoes(60, 4), method="isotonic", store_worse=wanted) for wanted in (True, False))
    assert any("are worse on the 30 rows" in warning for warning in harmed.trained.report.warnings)
    assert (skipped.trained, skipped.result.stored, harmed.result.stored) == (None, False, True)
    assert "are worse on the 30 rows" in skipped.result.warnings[0]
    assert skipped.evaluation_rows == harmed.evaluation_rows
    assert skipped.result.after == harmed.result.after


def test_error_bars_are_by_the_groups_of_the_training():
    """Every row five times, in a group of its own: as many independent rows as there are groups."""
    fitted, rows = (copies.append_column("who", pa.array(who)) for copies, who in map(repeated, (3, 4)))
    widths = []
    for validation in ({"test_fraction": 0.2}, {"test_fraction": 0.2, "group": "who"}):
        after = outcome(naive(fitted, validation=validation), rows).result.after
        (brier,) = [metric for metric in after.metrics if metric.name == "brier"]
        widths.append(np.log(brier.upper / brier.lower))
    assert widths[1] > 1.5 * widths[0]


def repeated(seed):
    places = np.repeat(np.arange(200), 5)
    return echoes(200, seed).take(pa.array(places)), [f"p{place}" for place in places]
