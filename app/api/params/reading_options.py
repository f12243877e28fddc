"""Reading options of a file, as parameters of an address and as fields of a form."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated

from fastapi import Depends, Form, Query
from python_multipart.multipart import parse_options_header

from app.base.errors import InvalidRequest
from app.base.faults import MAX_LISTED_FAULTS, Fault, place
from app.base.suggestions import one_of, quoted
from app.formats.strict_json import parse
from app.ingest.upload_options import ENCODINGS, DuplicateNames, HeaderRow, ReadOptions, encoding_named
from app.ml.contract.given_kinds import KINDS

HEADER = (
    "Header row, which holds the names of the columns: `present`, `absent` (the columns are named column_1, "
    "column_2, …) or `detect` (absent if its cells are of the kinds of those below it). null: `detect`."
)
ENCODING = (
    "Encoding of a text file, such as latin-1, windows-1252 or utf-16. null: UTF-8, or UTF-16 if the file "
    "begins with its byte order mark."
)
MISSING = (
    "A cell that stands for a missing value, such as `-` or `unknown`, beside the usual markers (an empty cell, NA, "
    "NaN, null and the like). Repeat the parameter for several."
)
KINDS_GIVEN = (
    'Kinds of columns by name, as JSON: {"store": "categorical", "zip": "text", "when": "date"}. A kind is numeric, '
    "categorical, text, boolean or datetime (or date). `numeric:comma` and `numeric:point` name the decimal mark, and "
    "`date:DMY`, `date:MDY` and `date:YMD` the order of day, month and year. The kinds of columns that are not named "
    "are detected."
)
DELIMITER = "Character between the fields of a row of a CSV file, such as `;` or `|`. null: detected."
SKIP_ROWS = "Number of lines above the table, such as a title. null: detected."
HEADER_ROW = "Line of the file that holds the names of the columns, from 1. null: the first row of the table."
COMMENT = "Beginning of lines that hold no rows, such as `#`. null: every line holds a row."
DUPLICATE_NAMES = (
    "Columns that have the name of another: `refuse` the file, or `number` them (price, price_2). null: `refuse`."
)
SHEET = "Sheet of an Excel workbook, by its name or its number from 1. null: the first."
MEMBER = "File of a zip archive that is read as the table, by its path in the archive. null: the only table in it."
DELIMITERS = r"^[^\w\r\n\"]$"
"""A character that is no letter, digit or quote."""
MAX_SKIPPED_ROWS = 1000
MAX_PATH_LENGTH = 1000
MOST_MARKERS = 100
MARKER_LENGTH = 100
NAME_LENGTH = 100

Marker = Annotated[str, Query(max_length=MARKER_LENGTH)]
FormMarker = Annotated[str, Form(max_length=MARKER_LENGTH)]


def _from_query(
    *,
    header: Annotated[HeaderRow | None, Query(description=HEADER)] = None,
    encoding: Annotated[str | None, Query(max_length=NAME_LENGTH, description=ENCODING)] = None,
    missing: Annotated[list[Marker] | None, Query(max_length=MOST_MARKERS, description=MISSING)] = None,
    kinds: Annotated[str | None, Query(description=KINDS_GIVEN)] = None,
    sheet: Annotated[str | None, Query(min_length=1, max_length=NAME_LENGTH, description=SHEET)] = None,
    member: Annotated[str | None, Query(min_length=1, max_length=MAX_PATH_LENGTH, description=MEMBER)] = None,
    delimiter: Annotated[str | None, Query(pattern=DELIMITERS, description=DELIMITER)] = None,
    skip_rows: Annotated[int | None, Query(ge=0, le=MAX_SKIPPED_ROWS, description=SKIP_ROWS)] = None,
    header_row: Annotated[int | None, Query(ge=1, le=MAX_SKIPPED_ROWS, description=HEADER_ROW)] = None,
    comment: Annotated[str | None, Query(min_length=1, max_length=8, description=COMMENT)] = None,
    duplicate_names: Annotated[DuplicateNames | None, Query(description=DUPLICATE_NAMES)] = None,
) -> ReadOptions:
    return _options(
        "query", header=header, encoding=encoding, missing=missing, kinds=kinds, sheet=sheet, member=member,
        delimiter=delimiter, skip_rows=skip_rows, header_row=header_row, comment=comment,
        duplicate_names=duplicate_names,
    )  # fmt: skip


def _from_form(
    *,
    header: Annotated[HeaderRow | None, Form(description=HEADER)] = None,
    encoding: Annotated[str | None, Form(max_length=NAME_LENGTH, description=ENCODING)] = None,
    missing: Annotated[list[FormMarker] | None, Form(max_length=MOST_MARKERS, description=MISSING)] = None,
    kinds: Annotated[str | None, Form(description=KINDS_GIVEN)] = None,
    sheet: Annotated[str | None, Form(min_length=1, max_length=NAME_LENGTH, description=SHEET)] = None,
    member: Annotated[str | None, Form(min_length=1, max_length=MAX_PATH_LENGTH, description=MEMBER)] = None,
    delimiter: Annotated[str | None, Form(pattern=DELIMITERS, description=DELIMITER)] = None,
    skip_rows: Annotated[int | None, Form(ge=0, le=MAX_SKIPPED_ROWS, description=SKIP_ROWS)] = None,
    header_row: Annotated[int | None, Form(ge=1, le=MAX_SKIPPED_ROWS, description=HEADER_ROW)] = None,
    comment: Annotated[str | None, Form(min_length=1, max_length=8, description=COMMENT)] = None,
    duplicate_names: Annotated[DuplicateNames | None, Form(description=DUPLICATE_NAMES)] = None,
) -> ReadOptions:
    return _options(
        header=header, encoding=encoding, missing=missing, kinds=kinds, sheet=sheet, member=member,
        delimiter=delimiter, skip_rows=skip_rows, header_row=header_row, comment=comment,
        duplicate_names=duplicate_names,
    )  # fmt: skip


OptionsOfQuery = Annotated[ReadOptions, Depends(_from_query)]
OptionsOfForm = Annotated[ReadOptions, Depends(_from_form)]


def _options(
    *where: str,
    header: HeaderRow | None,
    encoding: str | None,
    missing: Sequence[str] | None,
    kinds: str | None,
    **others: object,
) -> ReadOptions:
    """Raises InvalidRequest with every fault. where: first steps of its pointers."""
    faults: list[Fault] = []
    codec = None if encoding is None else encoding_named(encoding)
    if encoding is not None and codec is None:
        detail = f"There is no encoding {quoted(encoding)}{one_of(encoding, ENCODINGS)}"
        faults.append(Fault(place(*where, "encoding"), detail, "unknown_encoding"))
    kinds_ = {} if kinds is None else parse(kinds.encode("utf-8", "surrogatepass"), max_depth=2)
    faults += islice(_kind_faults(kinds_, *where, "kinds"), MAX_LISTED_FAULTS + 1)
    if faults or not isinstance(kinds_, dict):
        raise InvalidRequest(faults=faults)
    return ReadOptions(
        header=header or HeaderRow.DETECT,
        encoding=codec,
        missing=list(missing or ()),
        kinds=kinds_,
        **{name: value for name, value in others.items() if value is not None},
    )


def with_charset(options: ReadOptions, content_type: str) -> ReadOptions:
    """The options with the encoding that the header Content-Type names, where no other is given.

    Raises InvalidRequest for one that there is not.
    """
    _, parameters = parse_options_header(content_type)
    charset = parameters.get(b"charset", b"").decode("latin-1")
    if not charset or options.encoding is not None:
        return options
    encoding = encoding_named(charset)
    if encoding is None:
        detail = f"There is no encoding {quoted(charset)}{one_of(charset, ENCODINGS)}"
        raise InvalidRequest(faults=[Fault(place("header", "Content-Type"), detail, "unknown_encoding")])
    return ReadOptions.model_validate(options.model_dump() | {"encoding": None if encoding == "utf-8" else encoding})


def _kind_faults(kinds: object, *where: str) -> Iterator[Fault]:
    if not isinstance(kinds, dict):
        yield Fault(place(*where), "Must be a JSON object of kinds by column.", "dict_type")
        return
    for column, kind in kinds.items():
        if not isinstance(kind, str):
            yield Fault(place(*where, column), "Must be the name of a kind, as a string.", "string_type")
        elif kind not in KINDS:
            detail = f"There is no kind {quoted(kind)}{one_of(kind, KINDS)}"
            yield Fault(place(*where, column), detail, "unknown_kind")
