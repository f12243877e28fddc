"""One record per task: outside algorithms and numerics the code reads it, and names no task."""

import re
from pathlib import Path

import app
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Algorithm, Fit, Params
from app.ml.contract.task import RECORDS, PredictionKind, TargetKind, TargetUse, Task
from app.ml.statistics.metric_value import MEASURES
from app.ml.training.planning.task_choice import fitting_tasks

ROOT = Path(app.__file__).parent
WORKERS = ROOT.parent / "workers"
OWN = "ml/algorithms", "ml/numerics", "ml/contract/task.py"
"""The records themselves, and what computes."""
NAMES = "|".join(Task)
NAMED = re.compile(
    rf"""\bTask\.[A-Z]+\b|\btask\b.{{0,20}}([=!]=|\bin\b) *[{{(\[]?["']"""
    rf"""|\bcase ["']({NAMES})["']|["']({NAMES})["'] *[=!]="""
)


def test_every_task_has_a_record():
    assert set(RECORDS) == set(Task)
    assert all(task.record.measure in MEASURES for task in Task)
    assert [task for task in Task if task.of_numbers] == [Task.REGRESSION]
    assert [task for task in Task if task.of_classes] == [Task.CLASSIFICATION]
    assert len({task.record.prediction for task in Task}) == len(PredictionKind)
    assert {task.record.target for task in Task} == {None, *TargetKind}
    assert {task.record.tensors[0] for task in Task} == {"predict"}
    assert [task for task in Task if task.record.datatype is None] == [Task.CLASSIFICATION]
    assert [Task.of_target(kind).record.target for kind in TargetKind] == list(TargetKind)


def test_no_other_code_names_a_task():
    files = {path.relative_to(ROOT).as_posix(): path for path in ROOT.rglob("*.py")}
    files |= {f"workers/{path.relative_to(WORKERS).as_posix()}": path for path in WORKERS.rglob("*.py")}
    rooms = {"api/routes", "formats", "services", "schemas", "ml/training", "workers"}
    assert rooms <= {name.rpartition("/")[0] for name in files}
    found = [name for name, path in files.items() if not name.startswith(OWN) and NAMED.search(path.read_text())]
    assert found == []


def test_the_rule_recognises_a_name():
    assert NAMED.search("if task is Task.REGRESSION:")
    assert NAMED.search("return Task.REGRESSION if numeric else Task.CLASSIFICATION")
    assert NAMED.search('if header.task == "regression":')
    assert NAMED.search('if version.task in {"regression", "density"}:')
    assert NAMED.search('    case "clustering":')
    assert NAMED.search('if "projection" == header.task:')
    assert not NAMED.search("if model.task.of_numbers:")
    assert not NAMED.search("Task(header.task).of_classes")


def does(*tasks, **more):
    return Algorithm(tasks=tasks, params=Params, state=tuple, fit=lambda *_: Fit(()), predict=lambda *_: None, **more)


def test_a_target_is_never_optional_or_needed():
    uses = {task: does(task).target_use(task) for task in Task}
    assert uses == {
        Task.REGRESSION: TargetUse.NEEDED,
        Task.CLASSIFICATION: TargetUse.NEEDED,
        Task.CLUSTERING: TargetUse.OPTIONAL,
        Task.PROJECTION: TargetUse.NEVER,
        Task.DENSITY: TargetUse.NEVER,
    }
    learns = does(Task.PROJECTION, targets={Task.PROJECTION: TargetKind.CLASSES})
    assert learns.target_use(Task.PROJECTION) is TargetUse.NEEDED
    assert [(use.takes(has_target=False), use.takes(has_target=True)) for use in TargetUse] == [
        (True, False),
        (True, True),
        (False, True),
    ]


def test_tasks_fit_in_the_order_of_their_declaration():
    algorithm = does(Task.PROJECTION, Task.CLUSTERING, Task.REGRESSION)
    assert fitting_tasks(algorithm, has_target=False) == [Task.PROJECTION, Task.CLUSTERING]
    assert fitting_tasks(algorithm, has_target=True) == [Task.CLUSTERING, Task.REGRESSION]
    several = [entry.algorithm.tasks for entry in catalogue().values() if len(entry.algorithm.tasks) > 1]
    assert all(isinstance(tasks, tuple) for tasks in several)
