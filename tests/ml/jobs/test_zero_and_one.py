"""Jobs on a target of the numbers 0 and 1: the metric, the other algorithms and stored versions decide in doubt."""

import numpy as np
import pyarrow as pa
import pytest

from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import unheard
from app.ml.contract.task import Task
from app.ml.jobs import bootstrap, rank, reproduce, search, select, train
from app.ml.kinds.job import Inputs, JobContext, Loaded, Sheet, Source, Version
from app.ml.models.header import read_header
from app.ml.models.model import decode, digest
from tests.ml.jobs.test_evaluate import NOWHERE

COLUMNS = (
    TableColumn("a", "numeric", 0, 90),
    TableColumn("b", "numeric", 0, 90),
    TableColumn("won", "numeric", 0, 2, False, 0.0, 1.0),
)
A, B = np.random.default_rng(0).normal(size=(2, 90))
TABLE = pa.table({"a": A, "b": B, "won": (A + B / 2 > 0).astype(float)})
SHEET = Sheet("sha256:0", 90, COLUMNS)
TREE = {"name": "m", "model": "m", "dataset": NOWHERE, "target": "won", "algorithm": {"name": "decision_tree"}}


def run(kind, body, **context):
    request = kind.KIND.request.model_validate(body)
    kind.KIND.check(request, JobContext((SHEET,), **context))
    return kind.KIND.run(request, Inputs((Source(SHEET, iter([TABLE])),), **context), unheard)


@pytest.mark.parametrize(
    ("kind", "more", "task"),
    [
        (search, {}, Task.CLASSIFICATION),
        (search, {"metric": "rmse"}, Task.REGRESSION),
        (search, {"metric": "roc_auc"}, Task.CLASSIFICATION),
        (search, {"alternatives": [{"name": "lasso"}]}, Task.REGRESSION),
        (search, {"alternatives": [{"name": "logistic"}]}, Task.CLASSIFICATION),
        (select, {"resamples": 0}, Task.CLASSIFICATION),
        (select, {"resamples": 0, "metric": "mae"}, Task.REGRESSION),
    ],
)
def test_the_metric_and_the_other_algorithms_decide(kind, more, task):
    assert run(kind, TREE | more).trained.report.task == task


@pytest.mark.parametrize(
    ("measures", "task"),
    [(None, Task.CLASSIFICATION), (["fisher_index"], Task.CLASSIFICATION), (["correlation"], Task.REGRESSION)],
)
def test_the_measures_of_a_ranking_decide(measures, task):
    body = {"dataset": NOWHERE, "target": "won", "measures": measures}
    assert run(rank, body).result.task == task


@pytest.fixture
def stored():
    """A regression of an earlier release: its request names no task."""
    trained = run(train, TREE, in_doubt=Task.REGRESSION).trained
    header = read_header(trained.blob)
    assert (header.task, header.receipt["spec"]["task"]) == ("regression", None)
    return Loaded(Version("m", 1, digest(trained.blob), header), decode(trained.blob))


def test_a_regression_of_an_earlier_release_is_made_again_to_the_byte(stored):
    body = train.KIND.request.model_validate(TREE).model_dump(mode="json")
    request = reproduce.KIND.request.model_validate(
        {"model": "m", "version": 1, "made_by": "train", "request": body, "datasets": [NOWHERE], "models": []}
    )
    kinds = {"train": train.KIND}
    reproduce.KIND.check(request, JobContext((SHEET,), (stored.version,), kinds=kinds))
    inputs = Inputs((Source(SHEET, iter([TABLE])),), (stored,), kinds=kinds)
    assert reproduce.KIND.run(request, inputs, unheard).result.digest == stored.version.digest


def test_refits_of_a_regression_of_an_earlier_release_are_regressions(stored):
    request = bootstrap.KIND.request.model_validate({"dataset": NOWHERE, "model": "m", "version": 1, "resamples": 50})
    bootstrap.KIND.check(request, JobContext((SHEET,), (stored.version,)))
    result = bootstrap.KIND.run(request, Inputs((Source(SHEET, iter([TABLE])),), (stored,)), unheard).result
    assert "rmse" in {measure.name for measure in result.measures}


def test_a_training_has_the_task_of_the_version_that_it_starts_from():
    body = TREE | {"algorithm": {"name": "linear_sgd"}}
    regression = run(train, body | {"task": "regression"}).trained
    version = Version("m", 1, digest(regression.blob), read_header(regression.blob))
    request = train.KIND.request.model_validate(body | {"initialise_from": {"model": "m", "version": 1}})
    assert train.KIND.check(request, JobContext((SHEET,), (version,))).estimate.task == Task.REGRESSION
