"""Names of which no two are equal: one that is taken gets the first number that makes it new."""

from collections import Counter
from collections.abc import Iterable


class TakenNames:
    """Names that a new one must differ from. Each is taken in a time that does not grow with their number.

    >>> taken = TakenNames(["a"])
    >>> [taken.free(name) for name in ("a", "a", "b")]
    ['a_2', 'a_3', 'b']
    """

    def __init__(self, names: Iterable[str] = (), form: str = "{}_{}") -> None:
        """form: a name and its number."""
        self._names = set(names)
        self._form = form
        self._tried = Counter[str]()

    def free(self, name: str) -> str:
        """Take the name, or it with the first number that makes it new."""
        candidate = name
        while candidate in self._names:
            self._tried[name] += 1
            candidate = self._form.format(name, self._tried[name] + 1)
        self._names.add(candidate)
        return candidate
