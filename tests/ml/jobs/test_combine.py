"""A committee of models that were there before: it predicts as they do, and is evaluated on rows unseen by all."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import CorruptModel, InvalidData, InvalidRequest
from app.ml.contract.progress import unheard
from app.ml.jobs import combine, evaluate
from app.ml.kinds.job import Inputs, JobContext, Loaded, Source, Version
from app.ml.models import safetensors_format, seen_rows
from app.ml.models.conformal import Calibration
from app.ml.models.header import read_header
from app.ml.models.model import decode, digest
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.ml.jobs.test_evaluate import NOWHERE, sheet


def flats(n=200, seed=0, places=("north", "south", "east")):
    rng = np.random.default_rng(seed)
    size, rooms = rng.uniform(20, 150, n), rng.integers(1, 6, n)
    place = rng.choice(places, n)
    rent = 8 * size + 40 * rooms + 60 * (place == places[0]) + rng.normal(0, 30, n) + 100
    table = {
        "size": pa.array(np.where(rng.random(n) < 0.1, np.nan, size), from_pandas=True),
        "rooms": rooms.astype(float),
        "place": pa.array([None if rng.random() < 0.1 else one for one in place]),
        "garden": rng.random(n) < 0.3,
        "rent": rent,
        "dear": np.where(rent > 800, "dear", np.where(rent > 500, "fair", "cheap")),
    }
    return pa.table(table)


def model(table, algorithm, target="rent", data_digest="sha256:own", **spec):
    expected = {"algorithm": {"name": algorithm}, "target": target, "features": ["size", "rooms", "place", "garden"]}
    made = train(
        plan(TrainSpec.model_validate(expected | spec), sheet(table).columns, table.num_rows),
        table,
        data_digest=data_digest,
    )
    return loaded(made, algorithm)


def loaded(made, name, version=1):
    return Loaded(
        Version(name, version, digest(made.blob), read_header(made.blob)),
        decode(made.blob),
        seen_rows.decode(made.seen),
    )


def combined(table, sitting, data_digest="sha256:new", **changes):
    named = [{"model": one.version.model} for one in sitting]
    request = combine.CombineRequest.model_validate({"model": "team", "dataset": NOWHERE, "members": named} | changes)
    known = JobContext((sheet(table, data_digest),), tuple(one.version for one in sitting))
    combine.KIND.check(request, known)
    source = Source(known.datasets[0], iter([table.slice(0, 50), table.slice(50)]))
    return combine.KIND.run(request, Inputs((source,), tuple(sitting)), unheard).trained


def faults(table, sitting, **changes):
    with pytest.raises(InvalidRequest) as raised:
        combined(table, sitting, **changes)
    return sorted((fault.pointer, fault.code) for fault in raised.value.faults)


def strange():
    """Rows with gaps, and with places that some or all members have not seen."""
    return pa.table(
        {
            "size": pa.array([50.0, None, 1e4, 30.0, 70.0]),
            "rooms": [2.0, 3.0, 1.0, 2.0, 4.0],
            "place": pa.array(["north", "west", None, "moon", "south"]),
            "garden": [True, False, True, False, True],
        }
    )


@pytest.fixture(scope="module")
def rents():
    """Prepared in three ways, by two tables that know other places."""
    here, there = flats(), flats(seed=1, places=("west", "south"))
    return [
        model(here, "ridge", preprocessing={"target": "log"}),
        model(there, "gradient_boosting", data_digest="sha256:there"),
        model(here, "knn", features=["size", "rooms"], preprocessing={"basis": [{"kind": "polynomial", "degree": 2}]}),
    ]


@pytest.mark.parametrize("table", [strange(), flats(seed=5, places=("moon", "west", "north"))])
def test_it_predicts_as_its_members_do_alone(rents, table):
    made = decode(
        combined(
            flats(seed=2),
            rents,
            members=[
                {"model": "ridge", "weight": 1},
                {"model": "gradient_boosting", "weight": 2},
                {"model": "knn", "weight": 5},
            ],
        ).blob
    )
    alone = [one.model.predict(table).values for one in rents]
    np.testing.assert_allclose(made.predict(table).values, np.average(alone, axis=0, weights=[1, 2, 5]), rtol=1e-12)
    explanation = made.algorithm.explain(made.params, made.state, made.preparation.matrix(made.preparation.raw(table)))
    predictions = [[member["prediction"] for member in row["members"]] for row in explanation]
    np.testing.assert_allclose(np.transpose(predictions), alone, rtol=1e-12)


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_classes_are_those_of_all_members(voting):
    whole = flats()
    few = whole.filter(pa.compute.not_equal(whole["dear"], "fair"))
    members = [model(whole, "decision_tree", "dear"), model(few, "logistic", "dear"), model(few, "knn", "dear")]
    made = decode(combined(flats(seed=2), members, voting=voting).blob)
    assert set(made.classes) == {"cheap", "dear", "fair"}
    expected = np.zeros((5, 3))
    for one in members:
        result = one.model.predict(strange()).probabilities
        result = np.eye(result.shape[1])[result.argmax(axis=1)] if voting == "hard" else result
        expected[:, [made.classes.index(name) for name in one.model.classes]] += result / 3
    np.testing.assert_allclose(made.predict(strange()).probabilities, expected, rtol=1e-9, atol=1e-12)


def test_reliability_is_that_of_the_mean_probabilities():
    members = [model(flats(), name, "dear") for name in ("decision_tree", "logistic")]
    table = flats(seed=2)
    made = combined(table, members)
    probabilities = decode(made.blob).predict(table).probabilities
    shares = [np.mean([one == label for one in table["dear"].to_pylist()]) for label in ("cheap", "dear", "fair")]
    assert [curve.label for curve in made.report.reliability] == ["cheap", "dear", "fair"]
    for curve, p, share in zip(made.report.reliability, probabilities.T, shares, strict=True):
        rows = np.array([one.rows for one in curve.bins])
        assert rows.sum() == made.report.rows_test == 200
        assert rows @ [one.mean_probability for one in curve.bins] / 200 == pytest.approx(p.mean())
        assert rows @ [one.observed_share.value for one in curve.bins] / 200 == pytest.approx(share)
    assert combined(table, [model(flats(), "ridge"), model(flats(), "linear")]).report.reliability is None


def test_it_may_say_that_it_does_not_know():
    members = [model(flats(), name, "dear") for name in ("decision_tree", "logistic", "knn")]
    made = combined(flats(seed=2), members, min_probability=1, voting="hard")
    votes = [one.model.predict(flats(seed=3)).values for one in members]
    agreed = np.ptp(votes, axis=0) == 0
    predicted = decode(made.blob).predict(flats(seed=3))
    assert 0 < agreed.sum() < agreed.size
    np.testing.assert_array_equal(predicted.unknown, np.flatnonzero(~agreed))
    assert {metric.name for metric in made.report.test} >= {"coverage", "selective_accuracy"}


def test_a_committee_may_sit_on_a_committee(rents):
    inner = loaded(combined(flats(seed=2), rents[:2]), "inner")
    outer = decode(combined(flats(seed=3), [inner, rents[2]]).blob)
    both = [one.predict(strange()).values for one in (inner.model, rents[2].model)]
    np.testing.assert_allclose(outer.predict(strange()).values, np.mean(both, axis=0), rtol=1e-12)


def test_other_rows_are_evaluated_whole(rents):
    made = combined(flats(seed=2), rents)
    assert (made.report.rows_train, made.report.rows_test) == (0, 200)
    predicted, truth = decode(made.blob).predict(flats(seed=2)).values, flats(seed=2)["rent"].to_numpy()
    residuals = np.abs(truth - predicted)
    rmse = next(metric for metric in made.report.test if metric.name == "rmse")
    assert rmse.value == pytest.approx(np.sqrt(np.mean(residuals**2)))
    assert rmse.lower < rmse.value < rmse.upper
    np.testing.assert_allclose(decode(made.blob).calibration.scores, Calibration.of(predicted, truth).scores)
    assert decode(made.blob).limits == (0, np.inf)  # as its members have them
    assert [(one["model"], one["version"]) for one in made.report.summary] == [(m.version.model, 1) for m in rents]


def test_of_the_members_own_table_only_rows_that_none_has_learned_are_evaluated():
    table = flats()
    one, other = (model(table, "ridge", seed=seed, validation={"test_fraction": 0.4}) for seed in (1, 2))
    made = combined(table, [one, other], "sha256:own")
    assert 0 < made.report.rows_test < 80
    result = evaluate.EvaluateRequest.model_validate({"model": "team", "dataset": NOWHERE})
    team = loaded(made, "team")
    source = Source(sheet(table), iter([table]))
    evaluated = evaluate.KIND.run(result, Inputs((source,), (team,)), unheard).result
    assert evaluated.rows == made.report.rows_test
    assert evaluated.reuse.rows == made.report.reuse.rows
    nested = combined(table, [team, model(table, "knn", seed=3, validation={"test_fraction": 0.4})], "sha256:own")
    assert 0 < nested.report.rows_test < made.report.rows_test


def test_without_a_row_that_is_new_to_all_it_is_refused():
    table = flats()
    members = [model(table, "ridge", seed=seed, validation={"test_fraction": 0.01}) for seed in (1, 2)]
    with pytest.raises(InvalidData, match="none is left"):
        combined(table, members, "sha256:own")


def test_every_fault_at_once(rents):
    table = flats()
    assert faults(table.drop_columns(["place"]), rents) == [("/dataset", "missing_column")]
    others = [
        rents[0],
        model(table, "logistic", "dear"),
        model(table, "kmeans", None),
        model(table, "ridge", "rooms", features=["size", "rent"]),
    ]
    assert [pointer for pointer, _ in faults(table, others)] == [
        "/members/0/model", "/members/1/model", "/members/2/model", "/members/3/model", "/members/3/model",
    ]  # fmt: skip
    texts = table.set_column(1, "rooms", pa.array([f"r{n:.0f}" for n in table["rooms"].to_pylist()]))
    assert ("/members/1/model", "wrong_kind") in faults(texts, [rents[0], model(texts, "ridge")])
    both = {"members": [{"model": "ridge", "version": 1, "alias": "champion"}]}
    assert faults(table, rents[:1], **both) == [("/members/0/alias", "invalid")]


LIES = {
    "places": lambda array: array - 5,
    "classes": lambda array: array + 7,
    "codes.2": lambda array: array + 100,
    "fill": lambda array: array[1:],
}


@pytest.mark.parametrize("name", LIES)
def test_bytes_that_lie_about_a_member_are_refused(name):
    members = [model(flats(), "decision_tree", "dear")]
    document, arrays = safetensors_format.read(combined(flats(seed=2), members).blob)
    path = f"state.members.0.view.{name}"
    with pytest.raises(CorruptModel):
        decode(safetensors_format.write(document, {**arrays, path: LIES[name](arrays[path])}))


def test_rows_that_a_member_has_seen_in_another_dataset_evaluate_no_committee():
    table, fresh = flats(), flats(30, seed=9)
    sitting = [model(table, "ridge"), model(table, "linear", seed=1)]
    trained = combined(pa.concat_tables([table, fresh]), sitting, "sha256:more")
    alone = combined(table, sitting, "sha256:own")
    assert trained.report.rows_test == alone.report.rows_test + 30
    assert "equal a training row of the model" in trained.report.warnings[0]
    assert len(seen_rows.decode(trained.seen)) == 2
    old = [one._replace(seen=None) for one in sitting]
    trained = combined(pa.concat_tables([table, fresh]), old, "sha256:more")
    assert trained.report.rows_test == 230
    assert "not known" in trained.report.warnings[0]
    assert not trained.seen
