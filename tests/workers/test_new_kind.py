"""Adding a kind of work is adding a file: route, checks, queue, child process, limits and result follow from it.

On a copy of the tree, in a process of its own, because the kinds are read once.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.commands.processes import variables

pytestmark = pytest.mark.slow  # a copy of the tree compiles anew
ROOT = Path(__file__).parents[2]

TALLY = '''"""Tally the rows of a dataset that a model would predict as one of its classes."""

from typing import Literal
from uuid import UUID

from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.ml.contract.model_reference import Name, VersionRef
from app.ml.kinds.job import Checked, Kind, Needs, Outcome, Request, Result


class TallyRequest(Request):
    """Tally the rows of one class."""

    model: Name
    dataset: UUID
    wanted: str = Field(description="A class of the model.")


class Tally(Result):
    """How many rows there are of a class."""

    kind: Literal["tally"]
    rows: int
    version: int


def needs(request):
    return Needs((request.dataset,), (VersionRef(request.model),))


def check(request, known):
    (sheet,), (version,) = known.datasets, known.models
    faults = [] if request.wanted in version.header.classes else [Fault("/wanted", "No such class.")]
    have = {column.name for column in sheet.columns}
    faults += [Fault("/dataset", "A column is missing.") for column in version.header.inputs if column.name not in have]
    if faults:
        raise InvalidRequest(faults=faults)
    return Checked(request.model, algorithms=(version.header.algorithm,))


def run(request, inputs, progress):
    (source,), (loaded,) = inputs.datasets, inputs.models
    if request.wanted == "virginica":
        while True:
            pass
    predictions = loaded.model.predict(source.read()).predictions
    progress(0.5, "counting", {})
    return Outcome(
        result=Tally(
            kind="tally",
            rows=predictions.count(request.wanted),
            version=loaded.version.version,
            warnings=["only a tally"],
        ),
    )


KIND = Kind(operation="tally_rows", request=TallyRequest, result=Tally, needs=needs, check=check, run=run)
'''

USED = """
import json, sys
from pathlib import Path
from starlette.testclient import TestClient
import app
from app.composition.wiring import build
from app.main import create_app
from app.base.settings import Settings
from app.processes.processor_cores import Cores
from workers.job_slots import Runner
from workers.trainers import Trainers

settings, iris = Settings(), Path(app.__file__).with_name("samples") / "iris.csv"
services = build(settings, role="api")
runner = Runner(services, Trainers(), Cores.of_machine())
with TestClient(create_app(settings, services)) as http:
    dataset = http.post("/v1/datasets", content=iris.read_bytes()).json()["id"]

    def ask(kind, key=None, **body):
        headers = {"Idempotency-Key": key} if key else {}
        return http.post(f"/v1/jobs/{kind}", json={"dataset": dataset, "model": "tallied", **body}, headers=headers)

    def done(accepted):
        assert accepted.status_code == 202, accepted.text
        runner.run()
        return http.get(accepted.headers["location"]).json()

    trained = done(ask("train", target="species", algorithm={"name": "decision_tree"}))
    wrong = ask("tally", wanted="rose", time_limit_seconds=1e9)
    first, again = (ask("tally", key="k", wanted="setosa") for _ in range(2))
    other = ask("tally", key="k", wanted="versicolor")
    late = ask("tally", wanted="virginica", time_limit_seconds=1)
    cancelled = http.post(ask("tally", wanted="setosa").headers["location"] + "/cancel").json()
    gone = ask("tally", wanted="setosa")
    outcome = {
        "from": app.__file__,
        "trained": trained,
        "wrong": [wrong.status_code, sorted(fault["pointer"] for fault in wrong.json()["errors"])],
        "accepted": [first.status_code, again.json() == first.json(), other.json()["code"]],
        "done": done(first),
        "late": done(late),
        "cancelled": cancelled["state"],
        "listed": [job.get("result") for job in http.get("/v1/jobs").json()["items"]],
        "schema": http.get("/openapi.json").json()["components"]["schemas"]["Tally"],
    }
    http.delete("/v1/models/tallied")
    outcome["gone"] = done(gone)
print(json.dumps(outcome))
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory, database_factory):
    copy = tmp_path_factory.mktemp("copy")
    for folder in ("app", "workers", "migrations"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "app/ml/jobs/tally.py").write_text(TALLY)
    environment = {**variables(database_factory()), "PYTHONPATH": str(copy), "PATH": os.environ["PATH"]}
    used = subprocess.run(
        [sys.executable, "-P", "-c", USED], cwd=copy, env=environment, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    assert used.returncode == 0, used.stderr
    response = json.loads(used.stdout.splitlines()[-1])
    assert response["from"].startswith(str(copy))
    return response


def test_a_new_file_is_a_new_kind_of_work(outcome):
    job = outcome["done"]
    assert outcome["trained"]["version"] == 1
    assert (job["kind"], job["state"], job["model"]) == ("tally", "succeeded", "tallied")
    assert job["result"] == {"kind": "tally", "rows": 50, "version": 1, "warnings": ["only a tally"]}
    assert job["warnings"] == ["only a tally"]
    assert "version" not in job
    assert "kind" in outcome["schema"]["required"]


def test_it_is_refused_accepted_and_replayed_like_any_other(outcome):
    assert outcome["wrong"] == [422, ["/time_limit_seconds", "/wanted"]]
    assert outcome["accepted"] == [202, True, "idempotency_key_reused"]


def test_it_ends_like_any_other(outcome):
    assert (outcome["late"]["state"], outcome["late"]["error"]["code"]) == ("timed_out", "timed_out")
    assert outcome["cancelled"] == "cancelled"


def test_what_was_deleted_in_the_meantime_is_reported_and_not_tried_again(outcome):
    job = outcome["gone"]
    assert (job["state"], job["error"]["code"], job["attempt"]) == ("failed", "model_not_found", 1)


def test_lists_carry_no_results(outcome):
    assert set(outcome["listed"]) == {None}
