"""Choice of the task of a training: what the request names, else what follows from the target's kind."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.faults import Fault
from app.ml import nested
from app.ml.contract.algorithm import Algorithm, TargetKind, Task
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.training.train_spec import TrainSpec


def chosen_task(spec: TrainSpec, known: Mapping[str, TableColumn]) -> tuple[Task | None, list[Fault]]:
    """The task, or none if it cannot be determined; and the faults of the choice."""
    algorithm = nested.entry_of(spec.algorithm).algorithm
    name, offered = spec.algorithm.name, tuple(algorithm.tasks)
    given = spec.target is not None
    fitting = fitting_tasks(algorithm, given=given)
    if not fitting:
        if given:
            return None, [Fault("/target", f"{name} learns without a target: leave it out.")]
        return None, [Fault("/target", f"{name} needs a target column to learn from.", "missing")]
    if spec.task is not None and not algorithm.target_use(spec.task).takes(given=given):
        return None, [Fault("/task", f"{spec.task} {'takes no' if given else 'needs a'} target.")]
    task = spec.task or _natural(spec.target, known, fitting)
    return task, [] if task is None or task in offered else [_not_offered(spec, name, task, offered)]


def fitting_tasks(algorithm: Algorithm[Any, Any], *, given: bool) -> list[Task]:
    """Those that it does with a target, or without one, in the order in which it declares them."""
    return [task for task in algorithm.tasks if algorithm.target_use(task).takes(given=given)]


def _natural(target: str | None, known: Mapping[str, TableColumn], fitting: Sequence[Task]) -> Task | None:
    """The first task that learns from targets of this kind, else the first; None for a column that does not exist."""
    if not any(task.supervised for task in fitting):
        return fitting[0]
    if target is None or target not in known:
        return None
    return Task.of_target(TargetKind.NUMBERS if known[target].kind == ColumnKind.NUMERIC else TargetKind.CLASSES)


def _not_offered(spec: TrainSpec, name: str, task: Task, offered: Sequence[Task]) -> Fault:
    pointer = "/algorithm/name" if spec.task is None else "/task"
    advice = ""
    if spec.task is None and task.of_numbers:
        advice = " To take the numbers of the target for classes, set task to classification."
    return Fault(pointer, f"{name} does {' and '.join(sorted(offered))}, not {task}.{advice}")


def classes_of(spec: TrainSpec, known: Mapping[str, TableColumn], task: Task | None) -> int:
    """Number of classes of the target; 0 where there are none, or they are not known."""
    target = known.get(spec.target or "")
    if target is None or task is None:
        return 0
    kind = nested.entry_of(spec.algorithm).algorithm.target(task)
    return target.distinct or 0 if kind is TargetKind.CLASSES else 0
