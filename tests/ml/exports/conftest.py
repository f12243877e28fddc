"""Models to export: of every algorithm, on tables of every kind of input."""

import numpy as np
import pyarrow as pa
import pytest

from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import TargetKind, Task
from app.ml.contract.columns import TableColumn
from app.ml.models.model import decode
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

ROWS = 120
KINDS = {pa.string(): "categorical", pa.timestamp("us", "UTC"): "datetime", pa.bool_(): "boolean"}


def drawn_table(*, mixed, classes, seed=0):
    """Three numbers, two of them rounded so that values repeat; mixed: gaps, categories, truths and dates too."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, 3))
    columns = {"x0": x[:, 0], "x1": np.round(x[:, 1], 1), "x2": np.round(x[:, 2], 1)}
    if mixed:
        words = np.array(["red", "blue", "grün", "rare"])[rng.integers(0, 4, ROWS)].tolist()
        columns["x1"] = pa.array(columns["x1"], mask=rng.random(ROWS) < 0.1)
        columns["colour"] = pa.array(words, mask=rng.random(ROWS) < 0.1)
        columns["truth"] = pa.array((rng.random(ROWS) < 0.5).tolist())
        columns["day"] = pa.array(rng.integers(-(10**15), 2 * 10**15, ROWS), pa.timestamp("us", "UTC"))
    score = x[:, 0] + 0.5 * x[:, 1] ** 2 + 0.3 * rng.normal(size=ROWS)
    columns["weeks"] = rng.uniform(1, 9, ROWS)
    columns["number"] = score + 6
    columns["label"] = np.array(["a", "b", "c"])[np.digitize(score, [0, 1][: classes - 1])].tolist()
    return pa.table(columns)


@pytest.fixture(scope="session")
def trained():
    """`trained(name, task, mixed=, classes=, **spec)`: a model of the algorithm. params: of the algorithm."""

    def run(name, task, *, mixed=True, classes=3, params=None, **spec):
        table = drawn_table(mixed=mixed, classes=classes)
        kind = catalogue()[name].algorithm.target(Task(task))
        target = {None: None, TargetKind.NUMBERS: "number", TargetKind.CLASSES: "label"}[kind]
        body = {"algorithm": {"name": name, **(params or {})}, "task": task, **({"target": target} if target else {})}
        body["features"] = [name for name in table.column_names if name not in {"number", "label", "weeks"}]
        sheet = [
            TableColumn(name, KINDS.get(cells.type, "numeric"), cells.null_count, len(cells.unique().drop_null()))
            for name, cells in zip(table.column_names, table.columns, strict=True)
        ]
        request = TrainSpec.model_validate(body | spec)
        return decode(train(plan(request, sheet, table.num_rows), table, data_digest="sha256:0").blob)

    return run
