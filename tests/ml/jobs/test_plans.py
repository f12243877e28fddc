"""A process that runs a job plans each training once: the plan is handed on."""

import numpy as np
import pyarrow as pa
import pytest

from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import unheard
from app.ml.jobs import bootstrap, search, train
from app.ml.kinds.job import Inputs, Sheet, Source
from app.ml.training.planning import plan as planning

NOWHERE = "00000000-0000-7000-8000-000000000000"
X = np.random.default_rng(0).normal(size=(60, 2))
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "y": X @ [1.0, 2.0] + 0.1 * X[:, 0] ** 2})
COLUMNS = tuple(TableColumn(name, "numeric", 0, 60) for name in TABLE.column_names)
RIDGE = {"target": "y", "algorithm": {"name": "ridge"}}


@pytest.mark.parametrize(
    ("kind", "request_", "plans"),
    [
        (train.KIND, {"model": "m", **RIDGE}, 1),
        (train.KIND, {"model": "m", **RIDGE, "validation": {"method": "kfold"}}, 1),
        (bootstrap.KIND, {"training": RIDGE, "resamples": 50}, 1),
        (search.KIND, {**RIDGE, "alternatives": [{"name": "knn"}, {"name": "decision_tree"}]}, 1),
        (search.KIND, {"model": "m", **RIDGE, "alternatives": [{"name": "knn"}]}, 1),
        (
            search.KIND,
            {"model": "m", **RIDGE | {"algorithm": {"name": "knn"}}, "alternatives": [RIDGE["algorithm"]]},
            2,
        ),
    ],
    ids=["train", "train-kfold", "bootstrap", "search", "search-first-chosen", "search-other-chosen"],
)
def test_a_training_is_planned_once(kind, request_, plans, monkeypatch):
    made = []
    counted = planning.chosen_task

    def count(spec, known, **reasons):
        made.append(spec.algorithm.name)
        return counted(spec, known, **reasons)

    monkeypatch.setattr(planning, "chosen_task", count)
    request = kind.request.model_validate({"dataset": NOWHERE, **request_})
    outcome = kind.run(request, Inputs((Source(Sheet("sha256:0", 60, COLUMNS), iter([TABLE])),)), unheard)
    assert outcome.trained or outcome.result
    assert len(made) == len(set(made)) == plans
