"""Labels of clusters in pictures: the number, and the name that a person has given to it."""

from collections.abc import Mapping
from types import MappingProxyType

from app.ml.charts.specification import printable

NO_NAMES: Mapping[int, str] = MappingProxyType({})
MAX_NAME_LENGTH = 22
"""Characters of a name; of a longer one a picture has the first."""


def cluster_label(cluster: int | str, names: Mapping[int, str]) -> str:
    """names: by the numbers of the clusters.

    >>> cluster_label(1, {1: "Loyal customers"}), cluster_label("0", {1: "Loyal customers"})
    ('1 Loyal customers', '0')
    """
    name = names.get(int(cluster)) if str(cluster).lstrip("-").isdecimal() else None
    if name is None:
        return str(cluster)
    short = name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1].rstrip()}…"
    return f"{cluster} {printable(short)}"


def number_of(label: str) -> int:
    """The number in a label; 0 where it has none.

    >>> number_of("12 Loyal customers"), number_of("other")
    (12, 0)
    """
    number = label.partition(" ")[0]
    return int(number) if number.lstrip("-").isdecimal() else 0
