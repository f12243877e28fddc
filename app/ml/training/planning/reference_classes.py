"""Classes that clusters are compared with: a target of the request that no fit sees."""

from collections.abc import Iterator, Mapping

from app.base.faults import Fault
from app.ml.catalogue import nested
from app.ml.contract.algorithm import Labels, Task
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import TableColumn
from app.ml.contract.task import TargetUse
from app.ml.training.planning.column_faults import kind_of_target_faults
from app.ml.training.planning.train_spec import TrainSpec

AT = "/target"


def reference_column(spec: TrainSpec, task: Task | None) -> str | None:
    """The target, where predictions are only compared with it. task: None if it could not be chosen."""
    algorithm = nested.entry_of(spec.algorithm).algorithm
    if task is None or algorithm.target(task) is not None:
        return None
    return spec.target if algorithm.target_use(task) is TargetUse.OPTIONAL else None


def reference_faults(name: str | None, task: Task, columns_by_name: Mapping[str, TableColumn]) -> Iterator[Fault]:
    """columns_by_name: columns by name."""
    if name is None:
        return
    column = columns_by_name.get(name)
    if column is None:
        yield no_column(AT, name, columns_by_name)
        return
    yield from kind_of_target_faults(column, task.record.compared)
    if column.distinct == 0:
        yield Fault(AT, "Every value of the target is missing: there is nothing to compare with.")


def reference_warnings(name: str | None, columns_by_name: Mapping[str, TableColumn]) -> Iterator[str]:
    if name is not None and (missing := columns_by_name[name].missing):
        yield f"{missing} rows without a value of {name!r} are learned from, but not compared with it."


def compared_with(name: str | None, codes: Labels | None) -> str:
    """A further sentence of evidence, where there is such a column. codes: (n,) of its values, -1 where missing."""
    if name is None or codes is None:
        return ""
    return f" Clusters are compared with the column {name!r} in {int((codes >= 0).sum())} rows, unseen by the fit."
