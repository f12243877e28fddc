"""A request's design: the space of the inputs that vary, and its points as rows of the table and of each model."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.base.errors import InvalidRequest
from app.ml.contract.algorithm import JSON, Matrix, Vector
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.decisions.design_request import DesignRequest, DesignVariable, LinearConstraint
from app.ml.models.model import Model
from app.ml.models.raw_rows import one_row, raw_matrix
from app.ml.numerics.designs.design_space import DesignSpace, Limits
from app.ml.preparation.compiled.columns import NO_CATEGORY, OUTSIDE, UNSEEN
from app.ml.preparation.flags import CODES, Flagged
from app.ml.tables.cells import read_cells

_NOVEL = {CODES[OUTSIDE], CODES[UNSEEN], CODES[NO_CATEGORY]}


class Varied(NamedTuple):
    """One input that varies."""

    column: InputColumn
    lower: float
    upper: float
    whole: bool
    values: list[JSON] | None
    """Values by their codes; None: a number itself."""

    @classmethod
    def of(cls, column: InputColumn, variable: DesignVariable | None) -> Self:
        """An input without faults, as `design_faults` finds them."""
        if (values := values_of(column, variable)) is not None:
            return cls(column, 0.0, len(values) - 1.0, whole=False, values=values)
        lower, upper = range_of(column, variable)
        if variable is not None and variable.integer:
            lower, upper = float(np.ceil(lower or 0.0)), float(np.floor(upper or 0.0))
        return cls(column, lower or 0.0, upper or 0.0, variable is not None and variable.integer, None)

    def value(self, number: float) -> JSON:
        """The value in a row of the table."""
        if self.values is not None:
            return self.values[round(number)]
        return round(number) if self.whole else number


def values_of(column: InputColumn, variable: DesignVariable | None) -> list[JSON] | None:
    """The values that an input takes; None of a range of numbers."""
    if variable is not None and variable.values is not None:
        return variable.values
    if column.kind == ColumnKind.BOOLEAN:
        return [False, True]
    if column.kind in {ColumnKind.NUMERIC, ColumnKind.DATETIME}:
        return None
    return [None] if column.levels is None else [*column.levels]


def range_of(column: InputColumn, variable: DesignVariable | None) -> tuple[float | None, float | None]:
    lower = column.minimum if variable is None or variable.minimum is None else variable.minimum
    return lower, column.maximum if variable is None or variable.maximum is None else variable.maximum


def common_inputs(inputs: Sequence[Sequence[InputColumn]]) -> list[InputColumn]:
    """Each input of all models once, with the range and the categories that all of those have that know it."""
    common: dict[str, InputColumn] = {}
    for column in (column for columns in inputs for column in columns):
        before = common.get(column.name)
        common[column.name] = column if before is None else _common(before, column)
    return [*common.values()]


def _common(first: InputColumn, second: InputColumn) -> InputColumn:
    ends: dict[str, Any] = {}
    for name, narrower in (("minimum", max), ("maximum", min)):
        ends_ = [end for end in (getattr(first, name), getattr(second, name)) if end is not None]
        ends[name] = narrower(ends_) if ends_ else None
    if first.levels is not None and second.levels is not None:
        ends["levels"] = [level for level in first.levels if level in second.levels]
    return first.model_copy(update=ends)


class Design(NamedTuple):
    varied: tuple[Varied, ...]
    fixed: Mapping[str, Any]
    space: DesignSpace
    start: Vector
    """A feasible point, its categories the first."""

    @classmethod
    def of(cls, request: DesignRequest, inputs: Sequence[InputColumn]) -> Self:
        """inputs: those of all models, without faults. Raises InvalidRequest where no point is feasible."""
        variables = {variable.column: variable for variable in request.variables}
        varied = tuple(
            Varied.of(column, variables.get(column.name)) for column in inputs if column.name not in request.fixed
        )
        space = DesignSpace(
            np.array([varied_.lower for varied_ in varied]),
            np.array([varied_.upper for varied_ in varied]),
            np.array([varied_.whole for varied_ in varied], np.bool_),
            np.array([varied_.values is not None for varied_ in varied], np.bool_),
            _limits(request.constraints, [varied_.column.name for varied_ in varied], request.fixed),
        )
        start = space.inner_point()
        if start is None:
            raise InvalidRequest(
                "No point satisfies all constraints and bounds: widen a bound, or leave a constraint out."
            )
        return cls(varied, request.fixed, space, start)

    def points(self, table: pa.Table) -> Matrix:
        """(k, d) the rows of a table, in the kinds of the inputs, that lie within the space; inputs fixed aside."""
        columns = [_numbers(table.column(varied_.column.name), varied_) for varied_ in self.varied]
        points = np.column_stack(columns) if columns else np.zeros((len(table), 0))
        points = points[np.isfinite(points).all(axis=1)]
        return points[self.space.misses(points) <= 1]

    def row(self, point: Vector) -> dict[str, JSON]:
        """A point (d,) as a row of the table."""
        return {varied_.column.name: varied_.value(float(x)) for varied_, x in zip(self.varied, point, strict=True)} | {
            **self.fixed
        }


def _numbers(cells: pa.ChunkedArray, varied: Varied) -> Vector:
    """(n,) the cells as in a point; NaN where none of its values, or missing."""
    if varied.values is None:
        numbers: Vector = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return np.where(numbers == np.rint(numbers), numbers, np.nan) if varied.whole else numbers
    codes = {value: float(code) for code, value in enumerate(varied.values)}
    return np.array([codes.get(value, np.nan) for value in cells.to_pylist()])


def _limits(constraints: Sequence[LinearConstraint], names: Sequence[str], fixed: Mapping[str, Any]) -> Limits:
    """The constraints on the inputs that vary: those that are fixed move the limits."""
    weights = np.array([[constraint.coefficients.get(name, 0.0) for name in names] for constraint in constraints])
    held = [
        sum(c * fixed[name] for name, c in constraint.coefficients.items() if name in fixed)
        for constraint in constraints
    ]
    least = [-np.inf if constraint.at_least is None else constraint.at_least for constraint in constraints]
    greatest = [np.inf if constraint.at_most is None else constraint.at_most for constraint in constraints]
    return Limits(weights.reshape(-1, len(names)), np.array(least) - held, np.array(greatest) - held)


class ModelRows(NamedTuple):
    """Points of a design as rows of a model."""

    model: Model
    base: Matrix
    """(1, p) the raw row with all inputs that are fixed."""
    places: tuple[tuple[int, int, NDArray[np.float64] | None], ...]
    """Each input that varies: its place in the point and in the raw row, and the raw values of its codes."""

    @classmethod
    def of(cls, model: Model, design: Design) -> Self:
        """Raises InvalidData for fixed values that the model cannot take."""
        names = {varied.column.name: place for place, varied in enumerate(design.varied)}
        held = [column for column in model.inputs if column.name not in names]
        fixed = {column.name: design.fixed[column.name] for column in held}
        cells = one_row(fixed, held, "/fixed") if held else {}
        for column in model.inputs:
            if column.name in names:
                values = design.varied[names[column.name]].values
                cells[column.name] = read_cells(column, [0.0] if values is None else values)[0]
        first = {name: column[:1] if isinstance(column, pa.Array) else column for name, column in cells.items()}
        base = raw_matrix(model, first, {}, 1)
        places = []
        for raw, column in enumerate(model.inputs):
            if column.name not in names:
                continue
            place = names[column.name]
            values, codes = design.varied[place].values, None
            if values is not None:
                codes = raw_matrix(model, first, {column.name: cells[column.name]}, len(values))[:, raw]
            places.append((place, raw, codes))
        return cls(model, base, tuple(places))

    def raw(self, points: Matrix) -> Matrix:
        """(n, p) the raw matrix of points (n, d)."""
        rows = self.base[np.zeros(len(points), np.intp)]
        for place, raw, codes in self.places:
            rows[:, raw] = points[:, place] if codes is None else codes[points[:, place].astype(np.intp)]
        return rows

    def matrix(self, points: Matrix) -> Matrix:
        """(n, m) what the algorithm gets."""
        return self.model.preparation.matrix(self.raw(points))


def outside_inputs(flags: Iterable[Flagged], place: int) -> list[str]:
    """Inputs of the row at a place, beyond the training range or of an unseen category, by the flags of predictions."""
    doubtful = [flag for flag in flags if flag.code in _NOVEL and place in flag.rows]
    return [*dict.fromkeys(str(flag.column) for flag in doubtful)]
