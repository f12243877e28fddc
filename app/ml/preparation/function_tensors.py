"""Functions of the inputs as tensors: powers, formulas and parts of dates."""

import math
from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np

from app.ml.contract.export_errors import ExportUnsupported
from app.ml.contract.tensor_graph import Tensor
from app.ml.preparation.date_parts import DAY, MAX_SECONDS, DateParts, circle_values
from app.ml.preparation.formula import MAX_MULTIPLICATIONS, Column, Operation, parse
from app.ml.preparation.functions import Basis, Formulated, Function, Powers


def wide_tensor(basis: Basis, raw: Tensor) -> Tensor:
    """(n, p + f) as `Basis.wide`. Raises ExportUnsupported for features of pictures."""
    parts = [
        _function_tensor(function, raw[[basis.inputs.index(name) for name in function.columns]])
        for function in basis.functions
    ]
    if not parts:
        return raw
    values = parts[0].beside(*parts[1:])
    is_number = (values - values).combine("Equal", 0.0)  # of what is not finite it is not
    return raw.beside(values.where(is_number, math.nan))


def _function_tensor(function: Function, x: Tensor) -> Tensor:
    match function:
        case Powers():
            return _power_tensor(function, x)
        case Formulated():
            return _formula_tensor(function, x)
        case DateParts():
            return _date_tensor(function, x)
    raise ExportUnsupported("Features of pictures have no operators in ONNX: train without them.")


def _power_tensor(powers: Powers, x: Tensor) -> Tensor:
    levels = [(x - np.array(powers.middle)) / np.array(powers.unit)]
    for parents, factors in powers.steps:
        levels.append(levels[-1][parents] * levels[0][factors])
    return levels[1].beside(*levels[2:])


def _formula_tensor(function: Formulated, x: Tensor) -> Tensor:
    stack: list[Tensor | float] = []
    for step in parse(function.expression):
        match step:
            case Column(name):
                stack.append(x[[function.columns.index(name)]])
            case Operation(name, arity):
                stack[-arity:] = [_operated(name, [*stack[-arity:]], x)]
            case _:
                stack.append(float(step))
    (result,) = stack
    return result if isinstance(result, Tensor) else x.repeated(np.array([result]))


def _operated(name: str, operands: list[Tensor | float], x: Tensor) -> Tensor:
    if name == "**":
        return _raised(operands[0], operands[1], x)
    tensors = [operand if isinstance(operand, Tensor) else x.repeated(np.array([operand])) for operand in operands]
    return reduce(_PAIRS[name], tensors) if name in _PAIRS else _SINGLES[name](tensors[0])


def _raised(base: Tensor | float, exponent: Tensor | float, x: Tensor) -> Tensor:
    """The power as a formula has it: few multiplications where the exponent is a small whole number."""
    first = base if isinstance(base, Tensor) else x.repeated(np.array([base]))
    if isinstance(exponent, Tensor):
        return first.combine("Pow", exponent)
    if not float(exponent).is_integer() or abs(exponent) > MAX_MULTIPLICATIONS:
        return first.combine("Pow", exponent)
    product, square, left = x.repeated(np.ones(1)), first, int(abs(exponent))
    while left:
        product = product * square if left % 2 else product
        left //= 2
        square = square * square if left else square
    return product if exponent >= 0 else 1.0 / product


_PAIRS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "+": Tensor.__add__,
    "-": Tensor.__sub__,
    "*": Tensor.__mul__,
    "/": Tensor.__truediv__,
    "min": lambda first, other: first.combine("Min", other),
    "max": lambda first, other: first.combine("Max", other),
}
_SINGLES: Mapping[str, Callable[[Tensor], Tensor]] = {
    "log": lambda x: x.apply("Log"),
    "exp": lambda x: x.apply("Exp"),
    "sqrt": lambda x: x.apply("Sqrt"),
    "sin": lambda x: x.apply("Sin"),
    "cos": lambda x: x.apply("Cos"),
    "abs": lambda x: x.apply("Abs"),
    "tanh": lambda x: x.apply("Tanh"),
    "tan": lambda x: x.apply("Sin") / x.apply("Cos"),
    "log10": lambda x: x.apply("Log") / math.log(10),
    "negative": Tensor.__neg__,
}


def _date_tensor(function: DateParts, x: Tensor) -> Tensor:
    """Whole numbers are exact as doubles: days from civil dates after Hinnant (2013)."""
    in_range = x.apply("Abs") < MAX_SECONDS
    seconds = x.where(in_range, 0.0)
    whole = seconds.apply("Floor")
    days = _quotient(whole, DAY)
    fields: dict[str, Tensor] = {"elapsed_days": seconds / DAY, "hour": _quotient(whole - days * DAY, 3600.0)}
    fields["weekday"] = days + 3.0 - _quotient(days + 3.0, 7.0) * 7.0
    fields["year"], fields["month"] = _year_and_month(days)
    columns = [_part_tensor(part, fields) for part in function.parts]
    return columns[0].beside(*columns[1:]).where(in_range, math.nan)


def _part_tensor(part: str, fields: Mapping[str, Tensor]) -> Tensor:
    if not part.startswith("cyclic_"):
        return fields[part]
    name = part.removeprefix("cyclic_")
    steps = (fields[name] - (1.0 if name == "month" else 0.0)).to_integers()
    sine, cosine = circle_values({"month": 12, "weekday": 7, "hour": 24}[name])
    return steps.among(sine).beside(steps.among(cosine))


def _quotient(whole: Tensor, divisor: float) -> Tensor:
    return (whole / divisor).apply("Floor")


def _year_and_month(days: Tensor) -> tuple[Tensor, Tensor]:
    shifted = days + 719468.0
    era = _quotient(shifted, 146097.0)
    day = shifted - era * 146097.0
    leaps = _quotient(day, 36524.0) - _quotient(day, 1460.0) - _quotient(day, 146096.0)
    year = _quotient(day + leaps, 365.0)
    day = day - (year * 365.0 + _quotient(year, 4.0) - _quotient(year, 100.0))
    march = _quotient(day * 5.0 + 2.0, 153.0)
    month = march + 3.0 - (march >= 10.0).to_numbers() * 12.0
    return year + era * 400.0 + (month <= 2.0).to_numbers(), month
