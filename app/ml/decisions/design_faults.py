"""Faults of a design: inputs that do not exist, bounds that cross, values that a model cannot take."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.faults import place as pointer_to
from app.base.suggestions import no_such
from app.ml.contract.algorithm import JSON
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.decisions.design import Design, range_of, values_of
from app.ml.decisions.design_request import DesignRequest, DesignVariable, LinearConstraint
from app.ml.tables.cells import flaw

MAX_BOUND = 1e60
"""Bounds whose squares and products can be added up."""


def design_faults(request: DesignRequest, inputs: Sequence[InputColumn]) -> list[Fault]:
    """All of them. inputs: those of all models, each once."""
    columns = {column.name: column for column in inputs}
    faults = [*_variable_faults(request, columns), *_fixed_faults(request, columns)]
    for index, constraint in enumerate(request.constraints):
        faults += _constraint_faults(request, constraint, f"/constraints/{index}", columns)
    if not faults and all(name in request.fixed for name in columns):
        faults.append(Fault("/fixed", "Every input is fixed: leave one out that varies."))
    if not faults:
        try:
            Design.of(request, inputs)
        except InvalidRequest as error:
            faults.append(Fault("/constraints", error.detail, "infeasible"))
    return faults


def model_faults(inputs: Sequence[Sequence[InputColumn]]) -> Iterator[Fault]:
    """Inputs of one name and different kinds. inputs: those of the model of each goal."""
    first: dict[str, tuple[int, str]] = {}
    for place, columns in enumerate(inputs):
        for column in columns:
            before, kind = first.setdefault(column.name, (place, column.kind))
            if column.kind != kind:
                detail = f"Its input {column.name!r} is {column.kind}; that of goal {before} is {kind}."
                yield Fault(f"/goals/{place}/model", detail, "wrong_kind")


def _variable_faults(request: DesignRequest, columns: Mapping[str, InputColumn]) -> Iterator[Fault]:
    names = [variable.column for variable in request.variables]
    for index, variable in enumerate(request.variables):
        column, pointer = columns.get(variable.column), f"/variables/{index}"
        if column is None:
            yield _unknown(f"{pointer}/column", variable.column, columns)
        elif column.kind == ColumnKind.TEXT:
            yield Fault(f"{pointer}/column", "Texts do not vary: give this one in fixed.", "wrong_kind")
        elif variable.column in names[:index]:
            yield Fault(f"{pointer}/column", "This input is there twice.", "duplicate")
        elif variable.column in request.fixed:
            yield Fault(f"{pointer}/column", "This input is fixed: leave it out of one of both.", "duplicate")
        else:
            yield from _limit_faults(variable, column, pointer)
    for name, column in columns.items():
        if name not in names and name not in request.fixed:
            yield from _default_faults(column)


def _limit_faults(variable: DesignVariable, column: InputColumn, pointer: str) -> Iterator[Fault]:
    ends = {"minimum", "maximum", "integer"} & variable.model_fields_set
    if variable.values is not None:
        yield from _value_faults(variable.values, column, pointer)
    elif column.kind == ColumnKind.NUMERIC:
        yield from _range_faults(variable, column, pointer)
    elif not ends:
        yield from _default_faults(column)
    for name in ends if column.kind != ColumnKind.NUMERIC else ():
        yield Fault(f"{pointer}/{name}", f"A {column.kind} input has no range of numbers: give values.")


def _value_faults(values: Sequence[JSON], column: InputColumn, pointer: str) -> Iterator[Fault]:
    for i, value in enumerate(values):
        if value is None:
            yield Fault(f"{pointer}/values/{i}", "A value is needed.", "missing_value")
        elif value_flaw := flaw(column, value):
            yield Fault(f"{pointer}/values/{i}", value_flaw.detail, value_flaw.code)
        elif value in values[:i]:
            yield Fault(f"{pointer}/values/{i}", "This value is there twice.", "duplicate")


def _range_faults(variable: DesignVariable, column: InputColumn, pointer: str) -> Iterator[Fault]:
    lower, upper = range_of(column, variable)
    if lower is None or upper is None:
        yield Fault(f"{pointer}/minimum", "Training has seen no range: give minimum and maximum.", "missing")
    elif lower > upper:
        yield Fault(f"{pointer}/minimum", "The smallest value is above the largest.")
    elif variable.integer and np.ceil(lower) > np.floor(upper):
        yield Fault(f"{pointer}/integer", "There is no whole number between the bounds.")
    elif max(abs(lower), abs(upper)) > MAX_BOUND:
        yield Fault(f"{pointer}/maximum", f"The range is too wide: give bounds within ±{MAX_BOUND:g}.")


def _default_faults(column: InputColumn) -> Iterator[Fault]:
    """An input that the request does not name."""
    pointer = pointer_to("fixed", column.name)
    if column.kind == ColumnKind.TEXT:
        yield Fault(pointer, "Texts do not vary: fix this one.", "missing")
    elif column.kind == ColumnKind.DATETIME:
        yield Fault(pointer, "A datetime varies over given values only: fix it, or give values.", "missing")
    elif column.kind == ColumnKind.NUMERIC:
        lower, upper = range_of(column, None)
        if lower is None or upper is None:
            yield Fault(pointer, "Training has seen no range: fix it, or give minimum and maximum.", "missing")
        elif lower > upper:
            yield Fault(pointer, "The training ranges of the models do not meet: give minimum and maximum.", "missing")
        elif max(abs(lower), abs(upper)) > MAX_BOUND:
            yield Fault(pointer, f"The training range is too wide: fix it, or give bounds within ±{MAX_BOUND:g}.")
    elif not values_of(column, None):
        yield Fault(pointer, "The models have no category in common: fix it, or give values.", "missing")


def _fixed_faults(request: DesignRequest, columns: Mapping[str, InputColumn]) -> Iterator[Fault]:
    for name, value in request.fixed.items():
        column, pointer = columns.get(name), pointer_to("fixed", name)
        if column is None:
            yield _unknown(pointer, name, columns)
        elif value_flaw := flaw(column, value):
            yield Fault(pointer, value_flaw.detail, value_flaw.code)


def _constraint_faults(
    request: DesignRequest, constraint: LinearConstraint, constraint_pointer: str, columns: Mapping[str, InputColumn]
) -> Iterator[Fault]:
    variables = {variable.column: variable for variable in request.variables}
    equality = constraint.at_least == constraint.at_most
    for name, coefficient in constraint.coefficients.items():
        column, pointer = columns.get(name), constraint_pointer + pointer_to("coefficients", name)
        if column is None:
            yield _unknown(pointer, name, columns)
        elif column.kind != ColumnKind.NUMERIC:
            yield Fault(pointer, f"A {column.kind} input has no place in a sum.", "wrong_kind")
        elif name in request.fixed:
            if not isinstance(request.fixed[name], int | float):
                yield Fault(pointer, "This input is fixed without a number.", "missing_value")
        elif (variable := variables.get(name)) is not None and variable.values is not None:
            yield Fault(pointer, "An input with given values has no place in a sum: give a range.")
        elif variable is not None and variable.integer and equality and coefficient:
            yield Fault(pointer, "An equality holds for numbers that are not whole: give a range of sums.")


def _unknown(pointer: str, name: str, columns: Mapping[str, InputColumn]) -> Fault:
    return Fault(pointer, no_such("The models have no input", name, columns), "unknown_column")
