"""Kinds of columns as a request gives them: `numeric`, `categorical`, `date:DMY`."""

from typing import Literal, NamedTuple, TypeAlias, get_args

from app.ml.contract.columns import ColumnKind
from app.ml.contract.dates_and_times import DateOrder

KindName: TypeAlias = Literal[
    "numeric",
    "numeric:point",
    "numeric:comma",
    "categorical",
    "boolean",
    "text",
    "datetime",
    "date",
    "date:YMD",
    "date:DMY",
    "date:MDY",
]


class GivenKind(NamedTuple):
    """A kind of column, and the part of its notation that its name states."""

    kind: ColumnKind
    decimal: Literal[".", ","] | None = None
    """The decimal mark of its numbers; None: found out."""
    dates: DateOrder | None = None
    """The order of its dates; None: found out."""


_SPECIAL = {
    "date": GivenKind(ColumnKind.DATETIME),
    "numeric:point": GivenKind(ColumnKind.NUMERIC, decimal="."),
    "numeric:comma": GivenKind(ColumnKind.NUMERIC, decimal=","),
    "date:YMD": GivenKind(ColumnKind.DATETIME, dates="YMD"),
    "date:DMY": GivenKind(ColumnKind.DATETIME, dates="DMY"),
    "date:MDY": GivenKind(ColumnKind.DATETIME, dates="MDY"),
}
KINDS = {name: _SPECIAL.get(name) or GivenKind(ColumnKind(name)) for name in get_args(KindName)}
"""By the name that a request gives."""
