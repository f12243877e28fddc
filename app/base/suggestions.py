"""Closest names: which of the names that exist was probably meant by one that does not."""

import re
from collections.abc import Iterable
from contextvars import ContextVar
from difflib import get_close_matches
from itertools import islice

from app.base.other_names import OTHER_NAMES

MAX_NAME_LENGTH = 80
"""Characters of a name that a message repeats."""
MAX_COMPARED_NAMES = 1000
"""Names compared with one that does not exist: each comparison takes microseconds."""
LISTED = 12
"""Names listed where none of them is close."""
_left: ContextVar[list[int] | None] = ContextVar("_left", default=None)
"""Comparisons of names that are left in this context; None: no limit."""


def compare_at_most(comparisons: int) -> None:
    """Bound what a request with thousands of wrong names costs: after so many comparisons, no name is close."""
    _left.set([comparisons])


def quoted(name: str) -> str:
    """A name for a message: in quotes, on one line, no longer than `MAX_NAME_LENGTH`."""
    clean = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name[:MAX_NAME_LENGTH]
    )
    return f"'{clean}…'" if len(name) > MAX_NAME_LENGTH else f"'{clean}'"


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """`; did you mean 'price'?` for 'pricee' of names with 'price', a full stop if none is close.

    >>> "The dataset has no such column" + did_you_mean("PRICEE", ["area", "price"])
    "The dataset has no such column; did you mean 'price'?"
    """
    return _proposal(closest(name, names))


def _proposal(near: str | None) -> str:
    return "." if near is None else f"; did you mean {quoted(near)}?"


def no_such(lack: str, name: str, names: Iterable[str]) -> str:
    """A sentence about a name that does not exist, with the closest that does.

    >>> no_such("The dataset has no column", "pricee", ["area", "price"])
    "The dataset has no column 'pricee'; did you mean 'price'?"
    """
    return f"{lack} {quoted(name)}{did_you_mean(name, names)}"


def closest(name: object, names: Iterable[str]) -> str | None:
    """The name most like this one, upper case or lower, or that of an algorithm that has this name elsewhere, or None.

    >>> closest("XGBoost", ["gradient_boosting", "ridge"]), closest("xgboost", ["boost"])
    ('gradient_boosting', 'boost')
    """
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_LENGTH:
        return None
    left = _left.get()
    if left is not None:
        if left[0] <= 0:
            return None
        names = [*names]
        left[0] -= min(len(names), MAX_COMPARED_NAMES)
    other_name = OTHER_NAMES.get(re.sub(r"[\s_-]", "", name.casefold()))
    if other_name is not None and other_name in (names := [*names]):
        return other_name
    near = (other for other in names if other and abs(len(other) - len(name)) <= 2 + len(name) // 2)
    by_key = {other.casefold(): other for other in islice(near, MAX_COMPARED_NAMES)}
    matches = get_close_matches(name.casefold(), by_key, n=1)
    return by_key[matches[0]] if matches else None


def one_of(name: object, names: Iterable[str]) -> str:
    """`; did you mean 'price'?`, else the names that there are if they are few.

    >>> one_of("x", ["area", "price"])
    '; known are area, price.'
    """
    all_names = list(names)
    near = closest(name, all_names)
    if near is None and 0 < len(all_names) <= LISTED:
        return f"; known are {', '.join(all_names)}."
    return _proposal(near)
