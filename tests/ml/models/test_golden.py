"""Golden rows are compared to the rounding of what their numbers are made of."""

import copy

import numpy as np
import pyarrow as pa

from app.ml.algorithms.gaussian_process import function
from app.ml.contract.columns import TableColumn
from app.ml.models.golden import check_golden
from app.ml.models.model import decode
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train


def test_a_variance_of_nothing_but_rounding_may_round_otherwise():
    """Without noise the function is known at the rows: their variances are what is left of much larger numbers."""
    x = np.random.default_rng(0).uniform(size=(30, 2))
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "y": np.sin(3 * x[:, 0]) + x[:, 1] ** 2})
    columns = [TableColumn(name, "numeric", 0, 30) for name in table.column_names]
    spec = {"target": "y", "algorithm": {"name": "gaussian_process"}, "validation": {"test_fraction": 0}}
    made = train(plan(TrainSpec.model_validate(spec), columns, 30), table, data_digest="sha256:0")
    model, recorded = decode(made.blob), made.golden["outputs"]["variance"]
    assert max(recorded) < 1e-9 * function(model.params, model.state).prior_variance
    otherwise = copy.deepcopy(made.golden)
    otherwise["outputs"]["variance"] = [1.5 * value for value in recorded]
    check_golden(model, otherwise)
