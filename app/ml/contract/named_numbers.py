"""Names for the numbers of columns, classes and categories in a report: one contract for all that report them.

A summary or an explanation has numbers, since a fit knows no names. In its objects `column` and the lists `columns`
hold numbers of columns; `class`, `then` and the lists `classes` hold codes of classes; `categories` holds codes of the
categories of `column`. Lists of values beside a list `columns` or `classes` are in its order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.ml.contract.data import JSON

COLUMN, COLUMNS, CLASSES = "column", "columns", "classes"
CLASS = ("class", "then")


@dataclass(frozen=True)
class Names:
    """Functions from numbers to names. None: the numbers stay, for somebody else to name."""

    column: Callable[[int], JSON]
    label: Callable[[int], JSON] | None = None
    categories: Callable[[int], Sequence[str]] | None = None
    """Maps the number of a column to its categories."""


def every(count: int) -> list[JSON]:
    """The numbers of so many columns or classes, for a list `columns` or `classes` beside values of all of them."""
    return list(range(count))


def named(value: JSON, names: Names) -> JSON:
    """The value with names in place of numbers. Names are left as they are."""
    if isinstance(value, list):
        return [named(part, names) for part in value]
    if not isinstance(value, dict):
        return value
    result = {key: named(part, names) for key, part in value.items()}
    if COLUMN in value:
        if names.categories is not None and "categories" in value and _is_number(value[COLUMN]):
            result["categories"] = _categories(value["categories"], names.categories(value[COLUMN]))
        result[COLUMN] = _replaced(result[COLUMN], names.column)
    if isinstance(value.get(COLUMNS), list):
        result[COLUMNS] = _replaced(result[COLUMNS], names.column)
    if names.label is not None:
        for key in (CLASSES, *CLASS):
            if key in value:
                result[key] = _replaced(result[key], names.label)
    return result


def _replaced(value: JSON, name: Callable[[int], JSON]) -> JSON:
    if isinstance(value, list):
        return [_replaced(part, name) for part in value]
    return name(value) if _is_number(value) else value


def _categories(codes: list[int], levels: Sequence[str]) -> list[JSON]:
    return [levels[code] if code < len(levels) else "(other)" for code in codes]


def _is_number(value: JSON) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
