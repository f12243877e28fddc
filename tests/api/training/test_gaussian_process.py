"""A Gaussian process over HTTP: predictions with their variance and intervals, and what its report holds."""

from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

from app.ml.contract.columns import TableColumn
from app.ml.models.model import decode
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 2))
Y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=60)
ROWS = [[0.1, -0.3], [1.5, 0.25], [-40, 3]]


@pytest.fixture(scope="module")
def made(services):
    """The name of a model in the registry, and the model."""
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y})
    columns = [TableColumn(column, "numeric", 0, 60) for column in "aby"]
    spec = {"target": "y", "algorithm": {"name": "gaussian_process"}, "validation": {"test_fraction": 0}}
    one = train(plan(TrainSpec.model_validate(spec), columns, 60), table, data_digest="sha256:0")
    name = f"gp-{uuid4()}"
    where = {"model": name, "job_id": uuid4(), "dataset_id": uuid4(), "chunk_bytes": 1000}
    with services.work() as w:
        w.models.add_version(blob=one.blob, report=one.report, golden=one.golden, **where)
    return name, decode(one.blob)


def test_variance_comes_with_the_predictions_and_grows_far_from_the_rows(client, made):
    name, model = made
    body = {"columns": ["a", "b"], "data": ROWS}
    response = client.post(f"/v1/models/{name}/predict", json=body, params={"include": "variance"})
    assert response.status_code == 200, response.text
    found = response.json()
    state = model.state
    assert len(found["predictions"]) == 3
    variance = found["outputs"]["variance"]
    assert variance[2] > 10 * max(variance[:2])
    assert variance[2] <= state.unit**2 * np.exp(state.logarithms[0]) * (1 + 1e-9)


def test_intervals_are_those_of_the_algorithm(client, made):
    name, _ = made
    body = {"columns": ["a", "b"], "data": ROWS[:2]}
    found = client.post(f"/v1/models/{name}/intervals", json=body).json()
    assert found["interval"] == "algorithm"
    low, middle, high = (np.array(found[part]) for part in ("lower", "predictions", "upper"))
    np.testing.assert_allclose(high - middle, middle - low, rtol=1e-9)
    assert (high > middle).all()
