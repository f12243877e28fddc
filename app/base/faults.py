"""Faults of an input: each with its place, as a JSON pointer, and none with a value that the caller sent."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

MAX_LISTED_FAULTS = 1000
"""Limit on the faults of an error: an input may have one every few bytes, and others wait for its response."""
CUT = "problems are listed, others are not"
"""Noun of `summary` where there are more of them."""


class Fault(NamedTuple):
    """One problem of an input.

    `pointer` is a JSON pointer into the request ("/algorithm/l2"), or a place in
    an uploaded file ("/line/3/column/age").
    """

    pointer: str
    detail: str
    code: str = "invalid"


def first_listed(faults: Iterable[Fault]) -> tuple[tuple[Fault, ...], bool]:
    """The first `MAX_LISTED_FAULTS`, and True if there are more."""
    first = tuple(islice(faults, MAX_LISTED_FAULTS + 1))
    return first[:MAX_LISTED_FAULTS], len(first) > MAX_LISTED_FAULTS


def place(*steps: object) -> str:
    """A JSON pointer (RFC 6901), as /line/3/column/age of "line", 3, "column", "age"."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def steps(pointer: str) -> list[str]:
    """The steps of a JSON pointer: the reverse of `place`.

    >>> steps(place("line", 3, "a/b~"))
    ['line', '3', 'a/b~']
    """
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def summary(faults: Sequence[Fault], what: str = "problems") -> str:
    """The first fault with its place, and how many there are.

    >>> summary([Fault("/seed", "Must be an integer."), Fault("/target", "Is required.")])
    '2 problems; the first: seed: Must be an integer.'
    """
    if not faults:
        return ""
    where = ".".join(steps(faults[0].pointer))
    first = f"{where}: {faults[0].detail}" if where else faults[0].detail
    return first if len(faults) == 1 else f"{len(faults)} {what}; the first: {first}"
