"""Faults of the values that a data sheet already shows: a job that would fail for them is refused before it runs.

A sheet has the smallest and the largest number of each column, and how many are missing. Both stand in some row, so
what is undefined for one of them is undefined for a row of the table. Values in between are left to the job.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from app.base.faults import Fault
from app.ml.contract.algorithm import Task, Vector
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.preparation.formula import Misread, columns, evaluate, parse
from app.ml.preparation.function_checks import AT
from app.ml.preparation.request import Expression
from app.ml.preparation.target import usable_weights
from app.ml.preparation.target_transform import carried, defined, domain
from app.ml.training.planning.train_spec import TrainSpec

Columns = Mapping[str, TableColumn]


def value_faults(spec: TrainSpec, columns: Columns) -> Iterator[Fault]:
    """Row weights, transformed targets and formulas that some row of the table has no value for."""
    yield from row_faults(spec, columns)
    if spec.preprocessing.undefined == "refuse":
        yield from _formula_faults(spec, columns)


def row_faults(spec: TrainSpec, columns: Columns) -> Iterator[Fault]:
    """Row weights and targets that no fit can use."""
    yield from _weight_faults(spec, columns)
    yield from _target_faults(spec, columns)


def _weight_faults(spec: TrainSpec, columns: Columns) -> Iterator[Fault]:
    target = columns.get(spec.target or "")
    without_target = target.missing if target is not None else 0
    for pointer, name, exponent in (("/weights", spec.weights, 1), ("/sigma", spec.sigma, -2)):
        column = columns.get(name or "")
        if column is None or column.kind != ColumnKind.NUMERIC:
            continue  # a fault of its own
        if column.missing > without_target:
            yield Fault(
                pointer,
                f"{column.missing} rows have no value in {name!r}, and every row that is learned from needs one: fill "
                "them in, or leave these rows out of the dataset.",
                "missing_weight",
            )
        if not without_target and not usable_weights(_ends(column), exponent)[1].all():
            yield Fault(
                pointer,
                f"{name!r} has values that are not above 0, or are out of all proportion: a row that shall not "
                "count is left out of the dataset.",
                "bad_weight",
            )


def _target_faults(spec: TrainSpec, columns: Columns) -> Iterator[Fault]:
    target, how = columns.get(spec.target or ""), spec.preprocessing.target
    if target is not None and not defined(how, _ends(target)).all():
        yield Fault("/preprocessing/target", f"{domain(how, target.name)} Some rows have others.", "undefined")


def fitted_ends(spec: TrainSpec, columns: Columns, task: Task | None) -> tuple[float, ...]:
    """The smallest and the largest number that a regression is fitted to; none where they are not known."""
    target, how = columns.get(spec.target or ""), spec.preprocessing.target
    ends = np.zeros(0) if target is None or task is None or not task.of_numbers else _ends(target)
    return tuple(np.sort(carried(how, ends)).tolist()) if defined(how, ends).all() else ()


def _formula_faults(spec: TrainSpec, by_name: Columns) -> Iterator[Fault]:
    """Formulas of one column: of several, rows with the extremes of all need not exist."""
    for place, function in enumerate(spec.preprocessing.basis):
        if not isinstance(function, Expression):
            continue
        try:
            formula = parse(function.expression)
        except Misread:
            continue  # a fault of its own
        names = columns(formula)
        ends = _ends(by_name[names[0]]) if len(names) == 1 and names[0] in by_name else np.zeros(0)
        if ends.size and np.isnan(evaluate(formula, {names[0]: ends})).any():
            yield Fault(
                f"{AT}/{place}/expression",
                f"{function.expression} has no value for some rows: {names[0]!r} holds numbers outside of its domain. "
                "To take such values for missing ones, set preprocessing.undefined to impute.",
                "undefined",
            )


def _ends(column: TableColumn) -> Vector:
    """The smallest and the largest number; none where the sheet has none."""
    return np.array([end for end in (column.minimum, column.maximum) if end is not None], np.float64)
