"""One record per task: outside algorithms and numerics the code reads it, and names no task."""

import re
from pathlib import Path

import app
from app.ml.contract.task import RECORDS, PredictionKind, TargetKind, Task
from app.ml.statistics.metric_value import MEASURES

ROOT = Path(app.__file__).parent
OWN = "ml/algorithms", "ml/numerics", "ml/contract/task.py", "docs/algorithm_page.py"
"""The records themselves, and an example for each task, are data."""
NAMED = re.compile(r"\bTask\.[A-Z]+\b|\btask\b.{0,20}([=!]=|\bin) *[\[({]*[\"']")


def test_every_task_has_a_record():
    assert set(RECORDS) == set(Task)
    assert all(task.record.measure in MEASURES for task in Task)
    assert [task for task in Task if task.of_numbers] == [Task.REGRESSION]
    assert [task for task in Task if task.of_classes] == [Task.CLASSIFICATION]
    assert len({task.record.prediction for task in Task}) == len(PredictionKind)
    assert {task.record.target for task in Task} == {None, *TargetKind}
    assert [Task.of_target(kind).record.target for kind in TargetKind] == list(TargetKind)


def test_no_other_code_names_a_task():
    files = {path.relative_to(ROOT).as_posix(): path for path in ROOT.rglob("*.py")}
    assert "ml/training/train.py" in files
    found = [name for name, path in files.items() if not name.startswith(OWN) and NAMED.search(path.read_text())]
    assert found == []


def test_the_rule_recognises_a_name():
    assert NAMED.search("if task is Task.REGRESSION:")
    assert NAMED.search("return Task.REGRESSION if numeric else Task.CLASSIFICATION")
    assert NAMED.search('if header.task == "regression":')
    assert NAMED.search('if task in {"regression", "density"}:')
    assert not NAMED.search("if model.task.of_numbers:")
    assert not NAMED.search("Task(header.task).of_classes")
