"""Models for the tests of predictions by HTTP."""

import time

import pytest


@pytest.fixture(scope="module")
def numeric(services):
    """`numeric(algorithm, target, features)`: the name of a model of numbers only, of all other columns by default."""
    from uuid import uuid4

    import numpy as np
    import pyarrow as pa

    from app.ml.contract.columns import TableColumn
    from app.ml.training.planning.plan import plan
    from app.ml.training.planning.train_spec import TrainSpec
    from app.ml.training.train import train

    names = {}
    numbers = {"x": np.linspace(-2, 2, 60), "y": np.cos(np.arange(60.0)), "z": np.arange(60.0) % 7}
    table = pa.table(numbers | {"label": np.where(numbers["y"] > 0, "up", "down").astype(str).tolist()})

    def name(algorithm="logistic", target="label", features=None):
        key = algorithm, target, *(features or ())
        if key not in names:
            others = [column for column in numbers if column != target]
            requested = {"algorithm": {"name": algorithm}, "features": features or others}
            spec = TrainSpec.model_validate(requested | ({"target": target} if target else {}))
            columns = [TableColumn(column, "numeric", 0, 60) for column in numbers]
            columns.append(TableColumn("label", "categorical", 0, 2))
            made = train(plan(spec, columns, table.num_rows), table, data_digest="sha256:" + "0" * 64)
            names[key] = f"v-{uuid4()}"
            with services.work() as w:
                w.models.add_version(
                    model=names[key],
                    job_id=uuid4(),
                    dataset_id=uuid4(),
                    blob=made.blob,
                    report=made.report,
                    golden=made.golden,
                    chunk_bytes=1 << 20,
                )
        return names[key]

    return name


@pytest.fixture(scope="module")
def guarded(settings):
    """A client of an API that wants keys, on the shared servers."""
    from starlette.testclient import TestClient

    from app.main import create_app

    with TestClient(create_app(settings.model_copy(update={"auth": "keys"}))) as client:
        yield client


@pytest.fixture(scope="module")
def awaited(client, worker):
    """`awaited(response)`: the job that was accepted, when it has ended."""

    def run(job):
        assert job.status_code == 202, job.text
        until = time.monotonic() + 300
        while (result := client.get(job.headers["location"]).json())["state"] in {"queued", "running"}:
            assert time.monotonic() < until
            time.sleep(0.1)
        return result

    return run


@pytest.fixture(scope="module")
def ended(client, awaited):
    """`ended(kind, body)`: the job, when it has ended."""
    return lambda kind, body: awaited(client.post(f"/v1/jobs/{kind}", json=body))


@pytest.fixture(scope="module")
def done(ended):
    """`done(kind, body)`: the job, when it has succeeded."""

    def run(kind, body):
        result = ended(kind, body)
        assert result["state"] == "succeeded", result["error"]
        return result

    return run
