"""Checks of a request for imputation by column, before any row is read."""

from collections.abc import Iterator, Mapping

from app.base.faults import Fault, place
from app.base.suggestions import no_such
from app.ml.contract.columns import ColumnKind
from app.ml.numerics.scaling import MAX_MULTIPLIABLE
from app.ml.preparation.imputation import SUMMARIES, constant_fill
from app.ml.preparation.request import Constant, Imputation, Strategy

AT = "/preprocessing/imputation"
CONSTANTS = {
    ColumnKind.NUMERIC: "a number",
    ColumnKind.BOOLEAN: "true or false",
    ColumnKind.DATETIME: "a string with a date, or a date and time, in ISO 8601",
    ColumnKind.CATEGORICAL: "a string",
}


def imputation_faults(how: Imputation, features: Mapping[str, str]) -> Iterator[Fault]:
    """features: the kind of each column to learn from."""
    for name, strategy in () if isinstance(how, str) else how.items():
        pointer = place("preprocessing", "imputation", name)
        if name not in features:
            yield Fault(pointer, no_such("The features have no column", name, features), "unknown_column")
        elif (kind := ColumnKind(features[name])) in CONSTANTS:  # text cannot be a feature: a fault of its own
            yield from _strategy_faults(strategy, name, kind, pointer)


def _strategy_faults(strategy: Strategy, name: str, kind: ColumnKind, pointer: str) -> Iterator[Fault]:
    if isinstance(strategy, Constant):
        yield from _constant_faults(strategy, name, kind, f"{pointer}/constant")
    elif strategy in SUMMARIES and not kind.measured:
        detail = f"{name!r} is {kind} and has no {strategy}: set it to most_frequent, level or a constant."
        yield Fault(pointer, detail, "wrong_kind")
    elif strategy == "level" and kind.measured:
        detail = f"{name!r} is {kind}: only categories have a level for missing values."
        yield Fault(pointer, detail, "wrong_kind")


def _constant_faults(strategy: Constant, name: str, kind: ColumnKind, pointer: str) -> Iterator[Fault]:
    fill = constant_fill(strategy, kind)
    if fill is None:
        yield Fault(pointer, f"{name!r} is {kind}: its constant is {CONSTANTS[kind]}.", "wrong_kind")
    elif isinstance(fill, float) and abs(fill) > MAX_MULTIPLIABLE:
        yield Fault(pointer, f"Numbers beyond {MAX_MULTIPLIABLE:g} are too large to compute with.", "too_large")
