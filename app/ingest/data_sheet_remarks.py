"""Sentences and offers of a data sheet on how a column was written and read. No value of the file is repeated."""

from collections.abc import Callable, Iterator, Sequence

from app.ingest.column_reader import ColumnReader, cell_texts
from app.ingest.notation_candidates import Code, Way
from app.ml.contract.columns import ColumnKind
from app.ml.contract.dates_and_times import DateOrder
from app.ml.contract.notation import PLAIN
from app.ml.tables.data_sheet import Offer, Remark

NOUNS = {ColumnKind.NUMERIC: "numbers", ColumnKind.DATETIME: "dates", ColumnKind.BOOLEAN: "truth values"}
_ORDERS: dict[DateOrder, str] = {"YMD": "year, month, day", "DMY": "day, month, year", "MDY": "month, day, year"}
_MARKS = {".": "points", ",": "commas", " ": "spaces", "'": "apostrophes"}

_LOSSES = {
    Code.PADDED: "without their leading zeros",
    Code.PHONE: "without their plus signs",
    Code.LONG: "which are rounded to 16 digits",
}

Lines = Callable[[Sequence[int]], Sequence[int]]
"""The lines of rows."""


def remarks(readers: Sequence[ColumnReader], lines: Lines, unit: str = "line") -> dict[str, Remark]:
    """By column, once all rows are read. unit: what `lines` counts."""
    remark_of = {reader.name: _remark(reader, lines, unit) for reader in readers}
    return remark_of | {name: remark_of[name]._replace(cell_texts=texts) for name, texts in cell_texts(readers).items()}


def long_numbers_remark(name: str) -> Remark:
    """Remark on a column of whole numbers that are read as text, for floats would round them."""
    offer = Offer(sentence=f"Read the codes as numbers, {_LOSSES[Code.LONG]}.", kinds={name: "numeric"})
    return Remark([Code.LONG.value], [offer])


def _remark(reader: ColumnReader, lines: Lines, unit: str) -> Remark:
    notation = reader.notation if reader.notation != PLAIN else None
    warnings = list(_warnings(reader, lines, unit))
    way = reader.way
    numbers = way is not None and way.kind is ColumnKind.NUMERIC and not reader.applied and reader.misfits
    mostly = warnings[int(reader.code is not None)] if numbers else None
    return Remark(warnings, list(_offers(reader)), notation, reader.kind, mostly, reader.other_notation)


def _warnings(reader: ColumnReader, lines: Lines, unit: str) -> Iterator[str]:
    if reader.code is not None:
        yield reader.code.value
    if reader.way is None:
        return
    if reader.misfits:
        yield _strays(reader, reader.way.kind, _named(lines(reader.rows), reader.misfits, unit))
    if reader.others:
        yield _ambiguity(reader, reader.way)
    if reader.applied:
        yield from _notation(reader, reader.way)


def _strays(reader: ColumnReader, kind: ColumnKind, places: str) -> str:
    """499 of 500 values are numbers; line 319 is not."""
    fits = f"{reader.cells - reader.misfits} of {reader.cells} values are {NOUNS[kind]}"
    is_, was = ("is", "was") if reader.misfits == 1 else ("are", "were")
    end = f" and {was} read as missing." if reader.applied else ": the column was read as text."
    return f"{fits}; {places} {is_} not{end}"


def _named(lines: Sequence[int], count: int, unit: str) -> str:
    """Lines 3, 17 and 40 more"""
    if not lines:
        return "one value" if count == 1 else f"{count} values"
    others = count - len(lines)
    places = [*map(str, lines), *([f"{others} more"] if others else [])]
    listed = places[0] if len(places) == 1 else f"{', '.join(places[:-1])} and {places[-1]}"
    return f"{unit} {listed}" if count == 1 else f"{unit}s {listed}"


def _ambiguity(reader: ColumnReader, way: Way) -> str:
    if way.kind is ColumnKind.NUMERIC:
        return f"The {_MARKS[_mark(way)]} may be decimal marks or thousands separators: they were read as {_role(way)}."
    orders = " or ".join(_ORDERS[way.notation.dates] for way in (way, *reader.others))
    done = f"they were read as {_ORDERS[way.notation.dates]}" if reader.applied else "the column was read as text"
    return f"The dates may be written as {orders}: {done}."


def _mark(way: Way) -> str:
    return way.notation.thousands or way.notation.decimal


def _role(way: Way) -> str:
    return "thousands separators" if way.notation.thousands else "decimal marks"


def _notation(reader: ColumnReader, way: Way) -> Iterator[str]:
    """Warnings about cells that are not written plainly."""
    if reader.markers:
        count, words = sum(reader.markers.values()), ", ".join(map(repr, reader.markers))
        cells = "1 cell was" if count == 1 else f"{count} cells were"
        yield f"{cells} read as missing for a marker: {words}."
    if way.notation.percent:
        yield "Percentages were read as fractions: 12 % is 0.12."
    if way.notation.unit is not None:
        yield f"Amounts in {way.notation.unit} were read as numbers."
    if way.kind is ColumnKind.DATETIME and way.notation.dates != "YMD" and not reader.others:
        yield f"The dates are written as {_ORDERS[way.notation.dates]}."
    if way.kind is ColumnKind.DATETIME and way.short_years:
        yield "Years of two digits were read as those from 1969 to 2068."
    if reader.zoned and reader.zoneless:
        yield "Some times have an offset from UTC and some have none: these were read as UTC."
    if reader.padded and way.kind is ColumnKind.NUMERIC:
        yield "Some numbers have leading zeros, which are not kept."


def _offers(reader: ColumnReader) -> Iterator[Offer]:
    if reader.code is not None:
        yield _offer(reader, "numeric", f"Read the codes as numbers, {_LOSSES[reader.code]}.")
    way = reader.way
    if way is None:
        return
    for other in (way, *reader.others) if not reader.applied and reader.others else reader.others:
        if other.kind is ColumnKind.NUMERIC:
            name = "numeric:comma" if other.notation.decimal == "," else "numeric:point"
            yield _offer(reader, name, f"Read the {_MARKS[_mark(other)]} as {_role(other)}.")
        else:
            yield _offer(reader, f"date:{other.notation.dates}", f"Read the dates as {_ORDERS[other.notation.dates]}.")
    if not reader.applied and not reader.others:
        kind = "date" if way.kind is ColumnKind.DATETIME else way.kind
        yield _offer(reader, kind, f"Read the column as {NOUNS[way.kind]}; the other values are missing then.")
    if reader.applied and not reader.given and (reader.misfits or reader.padded):
        yield _offer(reader, "categorical", "Keep the values as they are written: read them as categories.")


def _offer(reader: ColumnReader, kind: str, sentence: str) -> Offer:
    return Offer(sentence=sentence, kinds={reader.name: kind})
