"""Adding an algorithm or a query is adding a file. And a bad file does not get past the contract suite.

All on a copy of the tree, in processes of their own, because the catalogue is read once.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.ml.catalogue.algorithm_files import catalogue

ROOT = Path(__file__).parents[2]

USED = """
import json
import numpy as np, pyarrow as pa
import app
from app.main import create_app
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.models.model import decode
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.planning.plan import plan
from app.ml.training.train import train

spec = TrainSpec.model_validate({"target": "y", "algorithm": {"name": "line", "l2": 2}})
x = np.linspace(0, 1, 40)
table = pa.table({"x": x, "y": 3 * x + 1})
columns = [TableColumn(name, ColumnKind.NUMERIC, 0, 40, False) for name in ("x", "y")]
trained = train(plan(spec, columns, 40), table, data_digest="sha256:0")
schemas = create_app().openapi()["components"]["schemas"]
print(json.dumps({
    "from": app.__file__,
    "catalogue": list(catalogue()),
    "l2": spec.algorithm.l2,
    "prediction": decode(trained.blob).predict(pa.table({"x": [0.5]})).predictions,
    "schema": schemas["LineAlgorithm"]["properties"],
}))
"""

QUERIED = """
import json
from types import SimpleNamespace
from fastapi.testclient import TestClient
from app.main import create_app
from app.ml.operations import query_entries
from app.ml.kinds.query import Subject
from app.ml.contract.task import Task

application = create_app()
operations = {path: by["post"] for path, by in application.openapi()["paths"].items() if "post" in by}
subject = Subject("m", 3, "sha256:0", SimpleNamespace(name="ridge", task=Task.REGRESSION, inputs=(1, 2)), 10)
entry = query_entries()["inputs"]
posted = TestClient(application, base_url="http://localhost").post("/v1/sums/pairs?scale=3", json={"values": [1, 2]})
refused = TestClient(application, base_url="http://localhost").post("/v1/sums/pairs?scale=x", json={"value": [1, 2]})
print(json.dumps({
    "operation": operations["/v1/models/{model}/inputs"],
    "inputs": entry.run(subject, entry.query.request(least=2), {}).model_dump(),
    "pairs": posted.json(),
    "refused": sorted(error["pointer"] for error in refused.json()["errors"]),
}))
"""

TASK = """
import json
from fastapi.testclient import TestClient
import numpy as np, pyarrow as pa
from app.main import create_app
from app.docs.algorithm_page import example
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.columns import TableColumn
from app.ml.models.model import decode
from app.ml.training.planning.plan import plan
from app.ml.training.train import train
from app.ml.training.planning.train_spec import TrainSpec

application = create_app()
schemas = application.openapi()["components"]["schemas"]
far = TestClient(application, base_url="http://localhost").get("/v1/algorithms/far").json()
body = example(catalogue()["far"])
x = np.random.default_rng(0).normal(size=100)
spec = TrainSpec.model_validate({"task": "outliers", "algorithm": {"name": "far", "share": 0.1}})
trained = train(plan(spec, [TableColumn("x", "numeric", 0, 100)], 100), pa.table({"x": x}), data_digest="sha256:0")
model = decode(trained.blob)
print(json.dumps({
    "tasks": schemas["Task"]["enum"],
    "described": schemas["Report"]["properties"]["task"]["description"],
    "far": far["tasks"],
    "target": body.get("target"),
    "held_out": trained.report.rows_test,
    "labels": np.bincount(model.predict(pa.table({"x": x})).values).tolist(),
    "metrics": sorted({one.name for one in trained.report.train}),
}))
"""

FAR = '''"""Rows far from the middle are outliers: a share of the rows, by their distance from the mean.

A row is an outlier, 1, if it is farther from the mean of the training rows than the share of them allows, else 0.

In short: the farthest rows are outliers.

Use when: rows lie about one middle.

Of four rows the farthest is an outlier:

>>> import numpy as np
>>> rows = Data.of(Task.OUTLIERS, np.array([[0.0], [1.0], [2.0], [9.0]]))
>>> predict(Far(), fit(Far(), rows, Context.of(0)).state, rows.x).tolist()
[0, 0, 0, 1]

References: Knorr & Ng (1998), VLDB: 392.
"""

from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.ml.contract.algorithm import (
    Algorithm, Context, Data, Fit, Labels, Matrix, Params, Symmetry, Task, Vector,
)


class Far(Params):
    """Rows far from the middle."""

    share: float = Field(0.25, ge=0.02, lt=1, description="Share of the training rows that are outliers.")


class State(NamedTuple):
    middle: Vector
    reach: float


def fit(params: Far, data: Data, context: Context) -> Fit[State]:
    middle = data.weights @ data.x / data.weights.sum()
    distances = np.linalg.norm(data.x - middle, axis=1)
    order = np.argsort(distances, kind="stable")
    inside = np.cumsum(data.weights[order])
    last = np.searchsorted(inside, (1 - params.share) * inside[-1] * (1 - 1e-12))
    return Fit(State(middle, float(distances[order][last]) * (1 + 1e-9)))


def predict(params: Far, state: State, x: Matrix) -> Labels:
    return (np.linalg.norm(x - state.middle, axis=1) > state.reach).astype(np.intp)


ALGORITHM = Algorithm(
    tasks={Task.OUTLIERS}, params=Far, state=State, fit=fit, predict=predict,
    breaks={Symmetry.SCALE: "a distance gives a column the weight of its unit"},
)
'''
"""An algorithm of a task that there is not."""

OF_MODEL = '''"""Number of the inputs of a model."""

from pydantic import Field

from app.ml.models.model_response import ModelResponse
from app.ml.kinds.query import Query, Subject
from app.base.wire import Body


class InputsRequest(Body):
    """Limits of the count."""

    least: int = Field(0, ge=0, description="Smallest count that is enough.")


class InputCount(ModelResponse):
    """A count of inputs."""

    inputs: int = Field(description="Number of inputs.")
    enough: bool = Field(description="True if there are at least `least`.")


def run(subject: Subject, request: InputsRequest) -> InputCount:
    count = len(subject.model.inputs)
    return InputCount(**subject.fields, inputs=count, enough=count >= request.least)


QUERY = Query(operation="count_inputs", request=InputsRequest, response=InputCount, run=run)
'''

WITHOUT_MODEL = '''"""Sum of numbers, scaled."""

from pydantic import Field

from app.ml.kinds.query import Options, Query
from app.base.wire import Body, Wire


class Scale(Options):
    """Scale of a sum."""

    scale: float = Field(1, gt=0, description="Factor of the sum.")


class Numbers(Body):
    """Numbers to add."""

    values: list[float] = Field(description="Numbers.")


class Sum(Wire):
    """A scaled sum."""

    total: float = Field(description="Sum of the numbers times the scale.")


def run(request: Numbers, *, scale: float) -> Sum:
    return Sum(total=scale * sum(request.values))


QUERY = Query(
    operation="add_numbers", request=Numbers, response=Sum, run=run, options=Scale, path="/v1/sums/pairs",
    tag="evaluation",
)
'''

GUIDE = (ROOT / "app" / "docs" / "extending.md").read_text()
LINE = re.search(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)[1]
"""The algorithm that the guide shows."""

BAD = {
    "undocumented": (
        'description="Penalty beside the sum of squared residuals: l2 times the squared coefficients."',
        'description=""',
    ),
    "unbounded": ("1.0, ge=0,", "1.0,"),
    "unreferenced": ("References:", "Thanks:"),
    "no_evidence": ("    objective=objective,\n", ""),
    "not_minimal": ("solution.coef[:, 0],", "solution.coef[:, 0] * 1.0001,"),
    "forgets_weights": ("(x, y, weights,", "(x, y, np.ones_like(weights),"),
    "first_rows_count_more": ("data.weights\n", "data.weights * np.linspace(1.1, 1, len(data.x))\n"),
    "first_column_counts_more": ("(x, y, weights,", "(x * np.linspace(1.1, 1, x.shape[1]), y, weights,"),
    "needless_exemption": ("breaks={", 'breaks={Symmetry.ROW_ORDER: "nobody knows why this is here",'),
    "needs_an_exemption": ('{Symmetry.SCALE: "the penalty counts coefficients in units of their columns"}', "{}"),
    "different_every_time": ("State(solution", "State(np.random.rand() * solution"),
    "writes_into_its_data": ("    solution", "    x.setflags(write=True)\n    x[0] = 9.0\n    solution"),
    "wrong_shape": ("return x @ state.coef + state.intercept", "return (x @ state.coef + state.intercept)[:, None]"),
    "cannot_do_one_row": ("    solution", "    data.x[1]\n    solution"),
    "overflows": ("    solution", "    x * x * x * x * x\n    solution"),
    "never_converges": ("converged=True", "converged=False"),
    "keeps_a_secret": ("float(solution.intercept[0])", "{1, 2}"),
}
"""A change of the line, each of which some test has to notice."""

NOTICED = {
    "undocumented": "test_every_parameter_has_default_bounds_and_sentence",
    "unbounded": "test_every_parameter_has_default_bounds_and_sentence",
    "unreferenced": "test_the_file_says_what_it_is",
    "no_evidence": "test_evidence_of_correctness",
    "not_minimal": "test_nothing_near_is_lower",
    "forgets_weights": "test_symmetry.*weights",
    "first_rows_count_more": "test_symmetry.*row_order",
    "first_column_counts_more": "test_symmetry.*column_order",
    "needless_exemption": "test_exemptions_are_needed.*row_order",
    "needs_an_exemption": "test_symmetry.*scale",
    "different_every_time": "test_two_fits_have_the_same_bytes",
    "writes_into_its_data": "test_inputs_are_left_alone",
    "wrong_shape": "test_predictions_have_the_shape_of_their_task",
    "cannot_do_one_row": "test_poor_data.*one row",
    "overflows": "test_poor_data.*huge numbers",
    "never_converges": "test_the_default_fit_gets_there",
    "keeps_a_secret": "test_survives_storage",
}


@pytest.fixture
def copy(tmp_path):
    """The tree with its bytecode, and nothing of the original on its path but the libraries."""
    for folder in ("app", "tests/ml/contract", "tests/ml/golden"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run(tree, *arguments):
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=300, check=False)


def contract(tree, *arguments):
    """In one process: three would import the same for a few tests each."""
    options = "-n0", "-p", "no:cacheprovider", "-rf", "--tb=no"
    return run(tree, "-m", "pytest", "tests/ml/contract", *options, *arguments)


@pytest.mark.slow
def test_a_sixth_file_is_all_it_takes(copy):
    (copy / "app/ml/algorithms/line.py").write_text(LINE)

    used = run(copy, "-c", USED)
    assert used.returncode == 0, used.stderr
    result = json.loads(used.stdout.splitlines()[-1])
    assert result["from"].startswith(str(copy))
    assert "line" in result["catalogue"]
    assert result["l2"] == 2
    assert result["prediction"] == pytest.approx([2.5], abs=0.2)
    assert result["schema"]["l2"]["description"].startswith("Penalty beside the sum of squared residuals")
    assert result["schema"]["name"]["const"] == "line"

    first = contract(copy, "-k", "line-regression and test_golden")
    assert failures(first) == ["test_golden[line-regression]"], first.stdout
    assert (copy / "tests/ml/golden/line-regression.json").exists()
    second = contract(copy, "-k", "line-regression or line]")
    assert second.returncode == 0, second.stdout
    assert int(re.search(r"(\d+) passed", second.stdout)[1]) > 40


@pytest.fixture
def with_outliers(copy):
    """The tree with one more task, and an algorithm that does it."""
    file = copy / "app/ml/contract/task.py"
    text = file.read_text()
    member, record = '    DENSITY = "density"\n', "    Task.DENSITY: TaskRecord("
    assert (text.count(member), text.count(record)) == (1, 1)
    text = text.replace(member, f'{member}    OUTLIERS = "outliers"\n')
    own = '    Task.OUTLIERS: TaskRecord(None, PredictionKind.LABEL, "silhouette", "INT64"),\n'
    file.write_text(text.replace(record, own + record))
    (copy / "app/ml/algorithms/far.py").write_text(FAR)
    return copy


@pytest.mark.slow
def test_a_task_is_one_record(with_outliers):
    """Schemas, catalogue, examples, hold-out and metrics follow from it."""
    used = run(with_outliers, "-c", TASK)
    assert used.returncode == 0, used.stderr
    result = json.loads(used.stdout.splitlines()[-1])
    assert "outliers" in result["tasks"]
    assert "outliers" in result["described"]
    assert (result["far"], result["target"]) == (["outliers"], None)
    assert (result["held_out"], sum(result["labels"]), len(result["labels"])) == (20, 100, 2)
    assert {"silhouette", "size"} <= set(result["metrics"])


@pytest.mark.slow
def test_the_contract_suite_takes_one_more_task(with_outliers):
    first = contract(with_outliers, "-k", "far-outliers and test_golden")
    assert failures(first) == ["test_golden[far-outliers]"], first.stdout
    second = contract(with_outliers, "-k", "far-outliers or far] or test_every_task_has_a_record")
    assert second.returncode == 0, second.stdout
    assert int(re.search(r"(\d+) passed", second.stdout)[1]) > 40


@pytest.mark.slow
def test_a_query_is_one_file(copy):
    """Route, OpenAPI, validation and result follow from it, with a model and without."""
    (copy / "app/ml/queries/inputs.py").write_text(OF_MODEL)
    (copy / "app/ml/queries/pairs.py").write_text(WITHOUT_MODEL)
    used = run(copy, "-c", QUERIED)
    assert used.returncode == 0, used.stderr
    result = json.loads(used.stdout.splitlines()[-1])
    operation = result["operation"]
    assert (operation["operationId"], operation["description"]) == ("count_inputs", "Number of the inputs of a model.")
    assert {parameter["name"] for parameter in operation["parameters"]} >= {"model", "version", "alias"}
    expected = {"model": "m", "version": 3, "digest": "sha256:0", "task": "regression", "inputs": 2, "enough": True}
    assert result["inputs"] == expected
    assert result["pairs"] == {"total": 9}
    assert "/value" in result["refused"]


@pytest.mark.slow
def test_bad_files_are_noticed(copy):
    for file in (copy / "app/ml/algorithms").glob("[a-z]*.py"):
        if file.stem in catalogue():  # the others belong to jobs, which import them
            file.unlink()
    shutil.rmtree(copy / "tests/ml/golden")
    for name, (right, wrong) in BAD.items():
        assert right in LINE, name
        text = re.sub(r"\bLine\b", name, LINE.replace(right, wrong, 1))
        text = text.replace("from typing", "import numpy as np\nfrom typing", 1)  # some changes need it
        (copy / f"app/ml/algorithms/{name}.py").write_text(text)
    chosen = " or ".join(f"({name} and {test.partition('.')[0]})" for name, test in NOTICED.items())
    failed = failures(contract(copy, "-k", chosen))
    for name, test in NOTICED.items():
        noticed = [line for line in failed if f"[{name}-" in line or f"[{name}]" in line]
        assert any(re.match(test, line) for line in noticed), f"{name}: {noticed}"


def failures(result):
    """Names of the failed tests, sorted, with their parameters."""
    return sorted(re.findall(r"^FAILED \S+?::(.+?\])", result.stdout, re.MULTILINE))
