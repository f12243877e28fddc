"""One record per task: outside algorithms and numerics the code asks it, and not which task it is."""

import re
from pathlib import Path

import app
from app.ml.contract.task import RECORDS, PredictionKind, TargetKind, Task
from app.ml.statistics.metric_value import MEASURES

ROOT = Path(app.__file__).parent
OWN = "ml/algorithms", "ml/numerics"
BRANCH = re.compile(r"(\bis|\bis not|==|!=|\bcase|\bin) [({]?Task\.|Task\.[A-Z]+ (in|not in|==|!=) ")


def test_every_task_has_a_record():
    assert set(RECORDS) == set(Task)
    assert all(task.record.measure in MEASURES for task in Task)
    assert [task for task in Task if task.of_numbers] == [Task.REGRESSION]
    assert [task for task in Task if task.of_classes] == [Task.CLASSIFICATION]
    assert len({task.record.prediction for task in Task}) == len(PredictionKind)
    assert {task.record.target for task in Task} == {None, *TargetKind}


def test_no_code_branches_on_the_name_of_a_task():
    files = {path.relative_to(ROOT).as_posix(): path for path in ROOT.rglob("*.py")}
    assert "ml/training/train.py" in files
    found = [name for name, path in files.items() if not name.startswith(OWN) and BRANCH.search(path.read_text())]
    assert found == []


def test_the_rule_recognises_a_branch():
    assert BRANCH.search("if task is Task.REGRESSION:")
    assert BRANCH.search("if task in {Task.REGRESSION, Task.CLUSTERING}:")
    assert BRANCH.search("case Task.CLUSTERING:")
    assert not BRANCH.search("return Task.REGRESSION if numeric else Task.CLASSIFICATION")
