"""Choice of the task of a training: what the request names, else what follows from the target's kind and values.

Numbers are predicted as numbers, anything else as classes. The numbers 0 and 1 are in doubt: they are classes where the
algorithm predicts these, and nothing in the request is about numbers. Least squares fit numbers first.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.base.faults import Fault
from app.ml.catalogue import nested
from app.ml.contract.algorithm import Algorithm, Learner, TargetKind, Task
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.training.planning.train_spec import TrainSpec

MAX_FEW_NUMBERS = 10
"""Whole numbers of at most so many different values may be classes."""
NUMBERS, CLASSES = Task.of_target(TargetKind.NUMBERS), Task.of_target(TargetKind.CLASSES)


def chosen_task(
    spec: TrainSpec,
    columns_by_name: Mapping[str, TableColumn],
    *,
    alternatives: Sequence[Learner] = (),
    in_doubt: Task | None = None,
) -> tuple[Task | None, list[Fault]]:
    """The task, or none if it cannot be determined; and the faults of the choice.

    alternatives: further algorithms that are to do the same task. in_doubt: the task of a target of 0 and 1 for reasons
    beside the request; None: there are none.
    """
    algorithm = nested.entry_of(spec.algorithm).algorithm
    name, offered = spec.algorithm.name, tuple(algorithm.tasks)
    has_target = spec.target is not None
    fitting = fitting_tasks(algorithm, has_target=has_target)
    if not fitting:
        if has_target:
            return None, [Fault("/target", f"{name} learns without a target: leave it out.")]
        return None, [Fault("/target", f"{name} needs a target column to learn from.", "missing")]
    if spec.task is not None and not algorithm.target_use(spec.task).takes(has_target=has_target):
        return None, [Fault("/task", f"{spec.task} {'takes no' if has_target else 'needs a'} target.")]
    task = spec.task or _natural(spec, columns_by_name, fitting, alternatives, in_doubt)
    return task, [] if task is None or task in offered else [_not_offered(spec, name, task, offered)]


def fitting_tasks(algorithm: Algorithm[Any, Any], *, has_target: bool) -> list[Task]:
    """Those that it does with a target, or without one, in the order in which it declares them."""
    return [task for task in algorithm.tasks if algorithm.target_use(task).takes(has_target=has_target)]


def _natural(
    spec: TrainSpec,
    columns_by_name: Mapping[str, TableColumn],
    fitting: Sequence[Task],
    alternatives: Sequence[Learner],
    in_doubt: Task | None,
) -> Task | None:
    """The first task that learns from targets of this kind, else the first; None for a column that does not exist."""
    if not any(task.supervised for task in fitting):
        return fitting[0]
    target = columns_by_name.get(spec.target or "")
    if target is None:
        return None
    if target.kind != ColumnKind.NUMERIC:
        return CLASSES
    if not _is_zero_one(target) or _names_numbers(spec):
        return NUMBERS
    if in_doubt in {NUMBERS, CLASSES}:
        return in_doubt
    classify = spec.class_weight is not None or all(map(_classifies, (spec.algorithm, *alternatives)))
    return CLASSES if classify else NUMBERS


def _classifies(learner: Learner) -> bool:
    algorithm = nested.entry_of(learner).algorithm
    return nested.classifies(algorithm, learner) and not algorithm.least_squares


def _is_zero_one(column: TableColumn) -> bool:
    return (column.distinct, column.minimum, column.maximum) == (2, 0.0, 1.0)


def _names_numbers(spec: TrainSpec) -> bool:
    """True if the request treats the target as numbers, though it names no task."""
    kind = (spec.kinds or {}).get(spec.target or "", "")
    return spec.sigma is not None or spec.preprocessing.target != "none" or kind.startswith(ColumnKind.NUMERIC)


def task_warnings(spec: TrainSpec, columns_by_name: Mapping[str, TableColumn], task: Task) -> Iterator[str]:
    """A remark on a target of few numbers whose task the request leaves open, with the way to the other task."""
    target = columns_by_name.get(spec.target or "")
    if spec.task is not None or target is None or target.kind != ColumnKind.NUMERIC or _names_numbers(spec):
        return
    if task is CLASSES:
        yield (
            f"The target {target.name!r} holds the numbers 0 and 1, which are predicted as classes. To predict them as "
            "numbers, set task to regression."
        )
    elif task is NUMBERS and _has_few_numbers(target):
        tasks = nested.entry_of(spec.algorithm).algorithm.tasks
        other = "" if CLASSES in tasks else f" and take an algorithm of classes: {spec.algorithm.name} has none"
        yield (
            f"The target {target.name!r} is numeric with {_COUNTS[target.distinct or 0]} different values: a "
            f"regression is fitted. To predict them as classes, with probabilities, set task to classification{other}."
        )


_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def _has_few_numbers(column: TableColumn) -> bool:
    """True for two numbers, and for three to ten whose ends are whole."""
    ends = (column.minimum or 0.0, column.maximum or 0.0)
    few = column.distinct is not None and 2 < column.distinct <= MAX_FEW_NUMBERS
    return column.distinct == 2 or (few and all(end.is_integer() for end in ends))


def _not_offered(spec: TrainSpec, name: str, task: Task, offered: Sequence[Task]) -> Fault:
    pointer = "/algorithm/name" if spec.task is None else "/task"
    advice = ""
    if spec.task is None and task.of_numbers:
        advice = " To take the numbers of the target for classes, set task to classification."
    return Fault(pointer, f"{name} does {' and '.join(sorted(offered))}, not {task}.{advice}")


def classes_of(spec: TrainSpec, columns_by_name: Mapping[str, TableColumn], task: Task | None) -> int:
    """Number of classes of the target; 0 where there are none, or they are not known."""
    target = columns_by_name.get(spec.target or "")
    if target is None or task is None:
        return 0
    kind = nested.entry_of(spec.algorithm).algorithm.target(task)
    return target.distinct or 0 if kind is TargetKind.CLASSES else 0
