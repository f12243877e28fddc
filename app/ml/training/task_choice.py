"""Choice of the task of a training: what the request names, else what follows from the target's kind."""

from collections.abc import Mapping, Sequence

from app.errors import Fault
from app.ml import nested
from app.ml.contract.algorithm import Task
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.training.train_spec import TrainSpec


def chosen_task(spec: TrainSpec, known: Mapping[str, TableColumn]) -> tuple[Task | None, list[Fault]]:
    """The task, or none if it cannot be determined; and what speaks against it."""
    name, offered = spec.algorithm.name, sorted(nested.entry_of(spec.algorithm).algorithm.tasks)
    supervised = spec.target is not None
    if not any(task.supervised is supervised for task in offered):
        if supervised:
            return None, [Fault("/target", f"{name} learns without a target: leave it out.")]
        return None, [Fault("/target", f"{name} needs a target column to learn from.", "missing")]
    if spec.task is not None and spec.task.supervised is not supervised:
        return None, [Fault("/task", f"{spec.task} {'takes no' if supervised else 'needs a'} target.")]
    task = spec.task or _natural(spec.target, known, offered)
    return task, [] if task is None or task in offered else [_not_offered(spec, name, task, offered)]


def _natural(target: str | None, known: Mapping[str, TableColumn], offered: Sequence[Task]) -> Task | None:
    """What follows from the target's kind; nothing from a column that is not there."""
    if target is None:
        return next(task for task in offered if not task.supervised)
    if target not in known:
        return None
    return Task.REGRESSION if known[target].kind == ColumnKind.NUMERIC else Task.CLASSIFICATION


def _not_offered(spec: TrainSpec, name: str, task: Task, offered: Sequence[Task]) -> Fault:
    pointer = "/algorithm/name" if spec.task is None else "/task"
    advice = ""
    if spec.task is None and task.of_numbers:
        advice = " To take the numbers of the target for classes, set task to classification."
    return Fault(pointer, f"{name} does {' and '.join(offered)}, not {task}.{advice}")


def classes_of(spec: TrainSpec, known: Mapping[str, TableColumn], task: Task | None) -> int:
    """Of the target; 0 where there are none, or nothing is known of them."""
    target = known.get(spec.target or "")
    return target.distinct or 0 if target is not None and task is not None and task.of_classes else 0
