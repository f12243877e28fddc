"""Names of columns in a request: what can be checked before any row is read."""

from collections.abc import Iterable, Iterator, Mapping

from app.base.faults import Fault
from app.base.suggestions import no_such


def no_column(pointer: str, name: str, columns: Iterable[str]) -> Fault:
    """The dataset has no column of this name; with the closest name that it has.

    at: the pointer to the name. known: names of its columns.
    """
    return Fault(pointer, no_such("The dataset has no column", name, columns), "unknown_column")


def unknown(names: Iterable[str], pointer: str, kinds: Mapping[str, str]) -> Iterator[Fault]:
    """Names that no column can have: neither that of an input nor, as "plan=pro", of a level of one.

    at: the pointer to the list of names. kinds: of the inputs, and of functions of them, by name.
    """
    for place, name in enumerate(names):
        if name not in kinds and name.rpartition("=")[0] not in kinds and name.partition("=")[0] not in kinds:
            yield Fault(f"{pointer}/{place}", no_such("The inputs have no column", name, kinds), "unknown_column")
