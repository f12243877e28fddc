"""The body of a prediction → a table by the model's inputs, with every fault named.

Two forms: `{"rows": [{"age": 31}]}` and `{"columns": ["age"], "data": [[31]]}`. Extra columns are
ignored and named. A column that is nowhere is one fault that names all such columns; everything
else that is wrong belongs to a row, so that the others can still be predicted.

Time and memory are bounded by the size of the body: a row that lacks columns is never filled up.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.base.errors import BodyTooLarge, InvalidData, InvalidRequest
from app.base.faults import Fault, place
from app.base.suggestions import closest, quoted
from app.ml.contract.algorithm import Matrix
from app.ml.contract.columns import InputColumn
from app.ml.tables.cells import Flaw, flaw, read_cells

MAX_FAULTS = 100
"""Faults listed in one refusal; its detail counts all of them."""
MAX_NAMES = 10
"""Columns named in the fault of one row."""


class Incoming(NamedTuple):
    """Parsed rows, ready to predict."""

    table: pa.Table | Matrix
    """The good rows: all of them, unless bad ones were let pass. A raw matrix if it came as one."""
    rows: int
    """Number of rows in the request."""
    good: NDArray[np.intp]
    """Indices of the body's rows that `table` holds, in order."""
    faults: list[Fault]
    """The first fault of each bad row, in order of rows."""
    ignored: list[str]
    """Columns the model does not know."""
    assumed: Mapping[str, float] = MappingProxyType({})
    """Values of inputs that the request does not have, and that stand for all its rows."""


def whole(raw: Matrix) -> Incoming:
    """A raw matrix (n, p) of rows that are all good."""
    return Incoming(raw, len(raw), _all(len(raw)), [], [])


@lru_cache(maxsize=16)
def _all(rows: int) -> NDArray[np.intp]:
    every = np.arange(rows)
    every.setflags(write=False)
    return every


class _Sent(NamedTuple):
    """Values by input, whichever form they came in."""

    columns: list[list[Any]]
    rows: int
    whole: NDArray[np.intp]
    """Indices of the body's rows that `columns` hold."""
    broken: dict[int, Flaw]
    """The other rows, which cannot be read at all."""
    ignored: list[str]
    root: str
    keys: Sequence[str]
    """The last part of a cell's pointer, by input."""


def read_rows(
    body: object, inputs: Sequence[InputColumn], *, max_rows: int, let_bad_rows_pass: bool = False
) -> Incoming:
    """Check everything and build the table.

    Raises InvalidRequest for a body of neither form, BodyTooLarge for too many rows, InvalidData for
    missing columns and, unless bad rows may pass, for any fault in any row.
    """
    assumed = {column.name: column.assumed for column in inputs if column.assumed is not None}
    if assumed and (absent := assumed.keys() - _names_in(body)):
        required = [column for column in inputs if column.name not in absent]
        incoming = read_rows(body, required, max_rows=max_rows, let_bad_rows_pass=let_bad_rows_pass)
        return _completed(incoming, inputs, {name: assumed[name] for name in assumed if name in absent})
    sent = _sent(body, [column.name for column in inputs], max_rows)
    cells = [read_cells(column, values) for column, values in zip(inputs, sent.columns, strict=True)]
    table = pa.Table.from_arrays([array for array, _ in cells], names=[column.name for column in inputs])
    flawed = [positions for _, positions in cells]
    if not sent.broken and not any(flawed):
        return Incoming(table, sent.rows, sent.whole, [], sent.ignored)
    places = _Places.of(sent, flawed)
    if not let_bad_rows_pass:
        shown = [_fault(sent, inputs, *cell) for cell in places.first(MAX_FAULTS)]
        raise InvalidData(_count(len(places.row)), faults=shown)
    faults = [_fault(sent, inputs, *cell) for cell in places.first_of_each_row()]
    readable = np.flatnonzero(~np.isin(sent.whole, places.row))
    return Incoming(table.take(readable), sent.rows, sent.whole[readable], faults, sent.ignored)


def _names_in(body: object) -> set[str]:
    """Names of the columns of a body, wherever they stand."""
    if not isinstance(body, dict):
        return set()
    rows, names = body.get("rows"), body.get("columns")
    if isinstance(names, list):
        return {name for name in names if isinstance(name, str)}
    return set(chain.from_iterable(row for row in rows if isinstance(row, dict))) if isinstance(rows, list) else set()


def _completed(incoming: Incoming, inputs: Sequence[InputColumn], assumed: Mapping[str, float]) -> Incoming:
    """The rows with a column of one value for each input that the request does not have."""
    table: pa.Table = incoming.table
    columns = [
        pa.array(np.full(table.num_rows, assumed[one.name])) if one.name in assumed else table.column(one.name)
        for one in inputs
    ]
    return incoming._replace(table=pa.table(columns, names=[one.name for one in inputs]), assumed=assumed)


class _Places(NamedTuple):
    """Places of the faults, in reading order. `column` is -1 where the whole row is at fault."""

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    position: NDArray[np.intp]
    """Number of the value within its column."""

    @classmethod
    def of(cls, sent: _Sent, flawed: Sequence[list[int]]) -> "_Places":
        position = np.fromiter(chain.from_iterable(flawed), np.intp)
        column = np.repeat(np.arange(len(flawed)), list(map(len, flawed)))
        broken = np.fromiter(sent.broken, np.intp)
        none = np.full(len(broken), -1)
        row = np.concatenate([broken, sent.whole[position]])
        order = np.lexsort((np.concatenate([none, column]), row))
        return cls(row[order], np.concatenate([none, column])[order], np.concatenate([none, position])[order])

    def first(self, count: int) -> list[tuple[int, int, int]]:
        return list(zip(*(array[:count].tolist() for array in self), strict=True))

    def first_of_each_row(self) -> list[tuple[int, int, int]]:
        _, places = np.unique(self.row, return_index=True)
        return list(zip(*(array[places].tolist() for array in self), strict=True))


def _fault(sent: _Sent, inputs: Sequence[InputColumn], row: int, column: int, position: int) -> Fault:
    if column < 0:
        broken = sent.broken[row]
        return Fault(f"/{sent.root}/{row}", broken.detail, broken.code)
    cell_flaw = flaw(inputs[column], sent.columns[column][position])
    code, detail = cell_flaw or Flaw("invalid", "")
    return Fault(f"/{sent.root}/{row}/{sent.keys[column]}", detail, code)


def _count(faults: int) -> str:
    listed = "" if faults <= MAX_FAULTS else f"; the first {MAX_FAULTS} are listed"
    return f"The rows hold {faults} fault{'s'[: faults != 1]}{listed}."


def _sent(body: object, names: list[str], max_rows: int) -> _Sent:
    if isinstance(body, dict) and body.keys() == {"rows"}:
        return _by_row(_list_of_rows(body["rows"], "rows", max_rows), names)
    if isinstance(body, dict) and body.keys() == {"columns", "data"}:
        return _by_column(body["columns"], _list_of_rows(body["data"], "data", max_rows), names)
    raise _refused("", "The body is an object with rows, or with columns and data, and nothing else.")


def _list_of_rows(rows: object, root: str, max_rows: int) -> list[Any]:
    if not isinstance(rows, list) or not rows:
        raise _refused(f"/{root}", "A list with at least one row is needed.")
    if len(rows) > max_rows:
        raise BodyTooLarge(f"There are {len(rows)} rows; one request may carry {max_rows}.")
    return rows


def _refused(pointer: str, detail: str) -> InvalidRequest:
    return InvalidRequest(detail, faults=[Fault(pointer, detail)])


def _absent(names: Sequence[str], surplus: Sequence[str], pointer: str) -> InvalidData:
    """surplus: names that were sent and that the model does not have."""
    near = {name: closest(name, surplus) for name in names[:MAX_NAMES]} if surplus else {}
    hints = "".join(f" {quoted(sent)} may be meant for {quoted(name)}." for name, sent in near.items() if sent)
    detail = f"The model also needs the columns {', '.join(names)}.{hints}"
    return InvalidData(detail, faults=[Fault(pointer, detail, "missing_columns")])


def _by_row(rows: list[Any], names: list[str]) -> _Sent:
    broken: dict[int, Flaw] = {}
    try:
        columns = [[row[name] for row in rows] for name in names]
    except (KeyError, TypeError, IndexError):
        broken = _broken_rows(rows, names)
    whole = [row for i, row in enumerate(rows) if i not in broken] if broken else rows
    if broken:
        columns = [[row[name] for row in whole] for name in names]
    expected_names = set(names)
    surplus = (row for row in whole if len(row) > len(names))
    return _Sent(
        columns=columns,
        rows=len(rows),
        whole=_unbroken(len(rows), broken),
        broken=broken,
        ignored=[name for name in dict.fromkeys(chain.from_iterable(surplus)) if name not in expected_names],
        root="rows",
        keys=[place(name).removeprefix("/") for name in names],
    )


def _broken_rows(rows: list[Any], names: list[str]) -> dict[int, Flaw]:
    """Rows that are no objects or lack a column. Raises InvalidData when no row has some column."""
    objects = [row for row in rows if isinstance(row, dict)]
    anywhere = set(chain.from_iterable(objects))
    if objects and (nowhere := [name for name in names if name not in anywhere]):
        raise _absent(nowhere, [name for name in anywhere if name not in names], "/rows")
    return {i: broken for i, row in enumerate(rows) if (broken := _broken_row(row, names))}


def _broken_row(row: object, names: list[str]) -> Flaw | None:
    if not isinstance(row, dict):
        return Flaw("not_an_object", "A row is an object of column names and values.")
    lacking = list(islice((name for name in names if name not in row), MAX_NAMES + 1))
    if not lacking:
        return None
    more = " and more" if len(lacking) > MAX_NAMES else ""
    listed = ", ".join(lacking[:MAX_NAMES])
    return Flaw("missing_columns", f"The row lacks {listed}{more}; send null for a missing value.")


def _by_column(header: object, data: list[Any], names: list[str]) -> _Sent:
    position = _positions(header)
    if nowhere := [name for name in names if name not in position]:
        raise _absent(nowhere, [name for name in position if name not in names], "/columns")
    width = len(position)
    ragged = Flaw("ragged_row", f"A row is a list of {width} values, one for each column.")
    broken = {i: ragged for i, row in enumerate(data) if not isinstance(row, list) or len(row) != width}
    whole = [row for i, row in enumerate(data) if i not in broken] if broken else data
    places = [position[name] for name in names]
    expected_names = set(names)
    return _Sent(
        columns=[[row[position] for row in whole] for position in places],
        rows=len(data),
        whole=_unbroken(len(data), broken),
        broken=broken,
        ignored=[name for name in position if name not in expected_names],
        root="data",
        keys=list(map(str, places)),
    )


def _unbroken(rows: int, broken: dict[int, Flaw]) -> NDArray[np.intp]:
    return np.fromiter((i for i in range(rows) if i not in broken), np.intp) if broken else np.arange(rows)


def _positions(header: object) -> dict[str, int]:
    """Position of each name. Raises InvalidRequest for what is no name, and for a name given twice."""
    if not isinstance(header, list) or not header:
        raise _refused("/columns", "A list of column names is needed.")
    position: dict[str, int] = {}
    faults = []
    for i, name in enumerate(header):
        if not isinstance(name, str):
            faults.append(Fault(f"/columns/{i}", "A column name is a string."))
        elif position.setdefault(name, i) != i:
            faults.append(Fault(f"/columns/{i}", "The same name stands earlier in the list.", "duplicate_column"))
    if faults:
        raise InvalidRequest(faults=faults[:MAX_FAULTS])
    return position
