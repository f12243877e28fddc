"""Versions side by side on the same rows: their own metrics, paired differences, agreement, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn import metrics as peers

from app.base.errors import InvalidData, InvalidRequest
from app.ml.contract.progress import unheard
from app.ml.jobs import compare, evaluate
from app.ml.kinds.job import Inputs, JobContext, Source
from app.ml.tables.casting import recast_columns, recast_table
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.ml.jobs.test_combine import flats, loaded, model
from tests.ml.jobs.test_evaluate import NOWHERE, sheet, values

OTHER = "sha256:other"


def clustering(k, *features):
    algorithm = {"name": "kmeans", "n_clusters": k, "n_init": 2}
    spec = TrainSpec.model_validate({"algorithm": algorithm, "features": [*features]})
    made = train(plan(spec, sheet(flats()).columns, 200), flats(), data_digest="sha256:own")
    return loaded(made, f"kmeans-{k}")


@pytest.fixture(scope="module")
def rents():
    """Two models of one table, whose trainings hold out the same rows."""
    return model(flats(), "ridge"), model(flats(), "ridge", features=["rooms", "garden"])


@pytest.fixture(scope="module")
def groups():
    return clustering(2, "size", "rooms"), clustering(3, "size", "rooms")


def known(table, models, digest):
    return JobContext((sheet(table, digest),), tuple(one.version for one in models))


def requested(models, **changes):
    named = [{"model": one.version.model} for one in models]
    return compare.CompareRequest.model_validate({"dataset": NOWHERE, "versions": named} | changes)


def compared(table, *models, digest=OTHER, **changes):
    request, context = requested(models, **changes), known(table, models, digest)
    assert set(compare.KIND.check(request, context).algorithms) == {one.version.header.algorithm for one in models}
    source = Source(context.datasets[0], iter([table.slice(0, 50), table.slice(50)]))
    return compare.KIND.run(request, Inputs((source,), models), unheard).result


def evaluated(table, one, digest=OTHER, **changes):
    request = evaluate.EvaluateRequest.model_validate({"model": "m", "dataset": NOWHERE} | changes)
    source = Source(sheet(table, digest), iter([table]))
    return evaluate.KIND.run(request, Inputs((source,), (one,)), unheard).result


def faults(table, *models, **changes):
    with pytest.raises(InvalidRequest) as raised:
        compare.KIND.check(requested(models, **changes), known(table, models, OTHER))
    return raised.value.faults


def test_each_version_has_the_metrics_of_its_own_evaluation(rents):
    table = flats(seed=1)
    result = compared(table, *rents)
    for own, one in zip(result.versions, rents, strict=True):
        assert values(own.metrics) == values(evaluated(table, one).metrics)
        assert (own.model, own.version, own.digest, own.training_rows) == (*one.version[:3], 0)
    assert (result.rows, result.metric, result.target, result.warnings) == (200, "rmse", "rent", [])
    (pair,) = result.pairs
    first, second = (values(own.metrics)["rmse", None] for own in result.versions)
    assert pair.difference.value == pytest.approx(first - second)
    assert pair.difference.lower < first - second < pair.difference.upper < 0
    assert (pair.first, pair.second, pair.better, pair.agreement) == (0, 1, 0, [])


def test_a_version_beside_itself_differs_by_nothing(rents, groups):
    (pair,) = compared(flats(seed=1), rents[0], rents[0]).pairs
    assert (pair.difference.value, pair.difference.lower, pair.better) == (0.0, None, None)
    (pair,) = compared(flats(seed=1), groups[1], groups[1]).pairs
    assert [one.value for one in pair.agreement] == [1.0, pytest.approx(1.0), 0.0]


def test_rows_that_all_trainings_held_out_compare_versions_of_one_table(rents):
    table = flats()
    result, alone = compared(table, *rents, digest="sha256:own"), evaluated(table, rents[0], "sha256:own")
    assert (result.rows, result.reuse) == (alone.rows, alone.reuse)
    assert [one.training_rows for one in result.versions] == [160, 160]
    everything = compared(table, *rents, digest="sha256:own", rows="all")
    assert (everything.rows, everything.reuse) == (200, None)
    assert any("trained on these rows" in warning for warning in everything.warnings)
    moved = model(flats(), "ridge", seed=5)
    both = compared(table, rents[0], moved, digest="sha256:own")
    assert 0 < both.rows < 20
    assert both.reuse.rows.startswith("held out by every")


def test_rows_that_one_training_has_seen_are_left_out_for_all_and_counted(rents):
    table = pa.concat_tables([flats().slice(0, 60), flats(seed=1)])
    result = compared(table, *rents)
    seen = [one.training_rows for one in result.versions]
    assert 30 < seen[0] <= 60
    assert result.rows <= 260 - max(seen)
    assert any(
        f"ridge version 1: {seen[0]} of 260 rows" in warning or "left out" in warning for warning in result.warnings
    )
    assert result.reuse.rows == f"all but {260 - result.rows} training rows, target 'rent'"


def test_nothing_left_is_refused():
    all_of_it = model(flats(), "ridge", validation={"test_fraction": 0})
    with pytest.raises(InvalidData, match="none is left"):
        compared(flats(), all_of_it, all_of_it, digest="sha256:own")


def test_clusterings_are_compared_by_agreement_without_a_truth(groups):
    table = flats(seed=1)
    result = compared(table, *groups)
    labels = [one.model.predict(table).values.astype(int) for one in groups]
    (pair,) = result.pairs
    found = {one.name: one.value for one in pair.agreement}
    assert found["adjusted_rand"] == pytest.approx(peers.adjusted_rand_score(*labels))
    assert found["normalized_mutual_information"] == pytest.approx(peers.normalized_mutual_info_score(*labels))
    assert (result.metric, result.target, pair.difference, pair.better) == (None, None, None, None)
    for own, one in zip(result.versions, groups, strict=True):
        expected = values(evaluated(table, one, rows="all").metrics)["silhouette", None]
        assert values(own.metrics)["silhouette", None] == expected
    assert "no ground truth" in result.evidence
    assert not any("own version" in warning for warning in result.warnings)


def test_silhouettes_of_other_columns_do_not_rank(groups):
    other = clustering(3, "size")
    result = compared(flats(), groups[0], other, digest="sha256:own")
    assert result.rows == 200
    assert any("do not rank" in warning for warning in result.warnings)


def test_many_pairs_come_with_a_warning_of_their_number(rents):
    result = compared(flats(seed=1), *rents, rents[0])
    assert [(one.first, one.second) for one in result.pairs] == [(0, 1), (0, 2), (1, 2)]
    assert result.pairs[2].difference.value == pytest.approx(-result.pairs[0].difference.value)
    assert any(warning.startswith("The 3 intervals") for warning in result.warnings)


def test_the_same_request_gives_the_same_result(rents):
    table = flats(seed=1)
    assert compared(table, *rents, seed=4) == compared(table, *rents, seed=4)
    assert compared(table, *rents, seed=4) != compared(table, *rents, seed=5)


def test_classes_are_compared_by_log_loss_and_without_probabilities_by_accuracy():
    table, one = flats(seed=1), model(flats(), "logistic", "dear")
    votes = model(flats(), "ridge", "dear")
    (pair,) = compared(table, one, one).pairs
    assert pair.difference.name == "log_loss_difference"
    result = compared(table, one, votes)
    accuracies = [values(own.metrics)["accuracy", None] for own in result.versions]
    assert result.metric == "accuracy"
    assert result.pairs[0].difference.value == pytest.approx(accuracies[0] - accuracies[1])
    assert any("not by log_loss" in warning for warning in result.warnings)


def test_versions_of_other_tasks_and_targets_are_refused_by_name(rents, groups):
    dear = model(flats(), "logistic", "dear")
    found = faults(flats(), rents[0], dear, groups[0])
    assert [fault.pointer for fault in found] == ["/versions/1/model", "/versions/2/model"]
    assert found[0].detail == "logistic version 1 does classification of 'dear', ridge version 1 regression of 'rent'."
    spec = TrainSpec.model_validate({"algorithm": {"name": "pca"}, "features": ["size", "rooms"]})
    map_ = loaded(train(plan(spec, sheet(flats()).columns, 200), flats(), data_digest="sha256:own"), "pca")
    assert [fault.pointer for fault in faults(flats(), map_, map_)] == ["/versions/0/model", "/versions/1/model"]
    assert [fault.pointer for fault in faults(flats(), *groups, target="rent")] == ["/target"]


def test_every_fault_of_the_dataset_is_named(rents):
    table = flats().drop_columns(["garden", "rent"])
    found = faults(table, *rents, versions=[{"model": "a", "version": 1, "alias": "b"}, {"model": "c"}])
    assert {(fault.pointer, fault.code) for fault in found} == {
        ("/versions/0/alias", "invalid"),
        ("/dataset", "missing_column"),
        ("/target", "unknown_column"),
    }


def test_columns_are_read_as_each_version_uses_them():
    """One version takes rooms as numbers, the other as categories."""
    kinds = {"rooms": "categorical"}
    spec = TrainSpec.model_validate({"algorithm": {"name": "ridge"}, "target": "rent", "kinds": kinds})
    columns = sheet(flats().drop_columns(["dear"])).columns
    table = recast_table(flats(), recast_columns(columns, kinds))
    models = model(flats(), "ridge"), loaded(train(plan(spec, columns, 200), table, data_digest="sha256:own"), "levels")
    table = flats(seed=1)
    result = compared(table, *models)
    for own, one in zip(result.versions, models, strict=True):
        assert values(own.metrics) == values(evaluated(table, one).metrics)


def test_differences_have_error_bars_by_the_groups_of_the_trainings():
    """Every row five times, in a group of its own: as many independent differences as there are groups."""
    places = np.repeat(np.arange(200), 5)
    table = flats().take(pa.array(places)).append_column("flat", pa.array([f"f{place}" for place in places]))
    inputs, widths = ["size", "rooms", "garden"], []
    for group in (None, "flat"):
        how = {"validation": {"test_fraction": 0.4, "group": group}}
        models = [model(table, "ridge", features=inputs[:count], **how) for count in (3, 2)]
        (pair,) = compared(table, *models, digest="sha256:own").pairs
        widths.append(pair.difference.upper - pair.difference.lower)
    assert widths[1] > 1.5 * widths[0]
