"""Checks of a request for functions of the inputs, before any row is read: faults, columns and their names."""

from collections.abc import Iterator, Mapping, Sequence

from app.base.faults import Fault
from app.base.suggestions import no_such
from app.ml.contract.columns import ColumnKind
from app.ml.preparation.date_checks import date_faults, date_names, part_count
from app.ml.preparation.date_parts import by_date
from app.ml.preparation.formula import Misread, columns, parse
from app.ml.preparation.functions import MOST_COLUMNS, learned, term_count
from app.ml.preparation.imputation_checks import imputation_faults
from app.ml.preparation.request import BasisFunction, Expression, Picture, Polynomial, Preprocessing

AT = "/preprocessing/basis"


def function_faults(how: Preprocessing, features: Mapping[str, str]) -> Iterator[Fault]:
    """features: the kind of each column to learn from. Imputation comes first: functions see what it fills in."""
    yield from imputation_faults(how.imputation, features)
    yield from date_faults(how.dates, features)
    for place, function in enumerate(how.basis):
        if isinstance(function, Expression):
            yield from _formula_faults(function, f"{AT}/{place}", features)
        elif isinstance(function, Polynomial) and function.columns is None and not _numeric(features):
            yield Fault(f"{AT}/{place}", "There is no numeric input to take powers of.", "missing")
        else:
            yield from _listed_faults(function.columns or (), f"{AT}/{place}", features)
    if (width := functions(how, features)) > MOST_COLUMNS:
        pointer = AT if how.basis else "/preprocessing/dates"
        yield Fault(pointer, f"These functions make {width} columns; {MOST_COLUMNS} are allowed.", "too_many_columns")


def functions(how: Preprocessing, features: Mapping[str, str]) -> int:
    """Columns that the functions make."""
    return part_count(how.dates, features) + sum(_width(function, features) for function in how.basis)


def function_names(how: Preprocessing, features: Mapping[str, str]) -> list[str]:
    """Names of functions without faults that are known before any row: scaled powers are named by the scale."""
    unscaled = [function for function in how.basis if how.scale == "none" or not isinstance(function, Polynomial)]
    made = [name for function in learned(unscaled, _numeric(features), {}, scaled=False) for name in function.names]
    return [*date_names(how.dates, features), *made]


def named_kinds(how: Preprocessing, features: Mapping[str, str]) -> dict[str, str]:
    """Kinds of the columns that parameters may name: of inputs, but dates that parts replace, and of functions."""
    listed = {name for function in how.basis if isinstance(function, Polynomial) for name in function.columns or ()}
    replaced = by_date(how.dates, features).keys() - listed
    remaining = {name: kind for name, kind in features.items() if name not in replaced}
    return remaining | dict.fromkeys(function_names(how, features), ColumnKind.NUMERIC)


def _width(function: BasisFunction, features: Mapping[str, str]) -> int:
    if isinstance(function, Expression):
        return 1
    if isinstance(function, Picture):
        return 2 * function.strips + 2
    return term_count(len(function.columns or _numeric(features)), function.degree, function.interactions)


def _numeric(features: Mapping[str, str]) -> list[str]:
    return [name for name, kind in features.items() if kind == ColumnKind.NUMERIC]


def _listed_faults(names: Sequence[str], pointer: str, features: Mapping[str, str]) -> Iterator[Fault]:
    seen: set[str] = set()
    for place, name in enumerate(names):
        yield from _column_faults(name, f"{pointer}/columns/{place}", features)
        if name in seen:
            yield Fault(f"{pointer}/columns/{place}", "This column is named twice.", "duplicate")
        seen.add(name)


def _formula_faults(expression: Expression, pointer: str, features: Mapping[str, str]) -> Iterator[Fault]:
    try:
        read = columns(parse(expression.expression))
    except Misread as misread:
        yield Fault(f"{pointer}/expression", str(misread), "bad_expression")
        return
    if not read:
        yield Fault(f"{pointer}/expression", "This formula reads no column.", "bad_expression")
    for name in read:
        yield from _column_faults(name, f"{pointer}/expression", features)


def _column_faults(name: str, pointer: str, features: Mapping[str, str]) -> Iterator[Fault]:
    if name not in features:
        yield Fault(pointer, no_such("The features have no column", name, features), "unknown_column")
    elif not ColumnKind(features[name]).measured:
        yield Fault(pointer, f"{name!r} is {features[name]}: functions are of numbers.", "not_a_number")
