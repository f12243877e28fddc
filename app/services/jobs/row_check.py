"""Check of rows that a request rests on, before its job exists and while no transaction is open."""

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.ml.kinds.job import Request, Sheet, Source


class RowCheck(NamedTuple):
    """Rows that have been read, and what is still to be checked in them."""

    request: Request
    check: Callable[[list[Source]], None]
    sheets: tuple[Sheet, ...]
    tables: tuple[Callable[[], pa.Table | None], ...]
    """Rows of each dataset; none of a large one, which the job will check."""
    faults: tuple[Fault, ...]
    """Further faults of the request."""

    def demand(self) -> None:
        """Raises InvalidRequest with every fault of the request."""
        tables = [table() for table in self.tables]
        sources = [Source(s, iter([t])) for s, t in zip(self.sheets, tables, strict=True) if t is not None]
        try:
            if len(sources) == len(tables):
                self.check(sources)
        except InvalidRequest as error:
            raise InvalidRequest(error.detail, faults=(*error.faults, *self.faults)) from None
        if self.faults:
            raise InvalidRequest(faults=self.faults)
