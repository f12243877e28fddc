"""The response as JSON."""

import numpy as np
import orjson
import pyarrow as pa

from app.formats.json import as_json
from app.formats.prediction import decided
from app.ml.contract.columns import TableColumn
from app.ml.evaluation.rejection import Policy
from app.ml.models.model import Predicted, decode
from app.ml.tables.rows import read_rows
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from app.store.models.pointer import Pointer

POINTER = Pointer("m", 1, "sha256:0", 1)


def test_a_classifier_may_say_that_it_does_not_know():
    """B2.3: neighbours that disagree are no prediction under the unanimity rule."""
    table = pa.table({"x": [float(i) for i in range(20)], "y": ["low"] * 10 + ["high"] * 10})
    columns = [TableColumn("x", "numeric", 0, 20), TableColumn("y", "categorical", 0, 2)]
    requested = {"name": "knn", "n_neighbors": 4, "rule": "unanimity"}
    spec = TrainSpec.model_validate({"target": "y", "algorithm": requested, "validation": {"test_fraction": 0.1}})
    model = decode(train(plan(spec, columns, table.num_rows), table, data_digest="sha256:0").blob)
    body = {"columns": ["x"], "data": [[1.0], ["no number"], [9.5], [18.0]]}
    came = read_rows(body, model.inputs, max_rows=9, let_bad_rows_pass=True)
    predicted = model.predict(came.table)
    result = orjson.loads(as_json(POINTER, model, came, predicted).body)
    assert result["predictions"] == ["low", None, None, "high"]
    assert [flag for flag in result["flags"] if flag["code"] == "unknown"] == [{"code": "unknown", "rows": [2]}]
    assert 0 < max(result["probabilities"][2]) < 1


def test_what_the_model_does_not_know_is_rejected_whatever_the_rule_says():
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2]])
    predicted = Predicted(np.array([0, 0]), probabilities, ("a", "b"), (), unknown=np.array([1]))
    result, decisions = decided(predicted, Policy(min_probability=[0.5]))
    assert decisions == ["accepted", "rejected"]
    assert result.predictions == ["a", None]
