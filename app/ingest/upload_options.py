"""Options of an uploaded file: its header row, text encoding, missing markers, sheet and kinds of columns."""

from collections.abc import Sequence
from encodings import normalize_encoding
from encodings.aliases import aliases
from enum import StrEnum

from pydantic import Field

from app.base.errors import InvalidData
from app.base.faults import Fault, place
from app.base.suggestions import no_such
from app.base.wire import Wire
from app.ml.contract.given_kinds import KINDS, GivenKind

LISTED = 20
"""Unknown columns listed in one refusal."""
ENCODINGS = (
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "iso8859-2", "iso8859-5", "iso8859-7",
    "iso8859-9", "iso8859-15", "windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254",
    "windows-1255", "windows-1256", "windows-1257", "cp437", "cp850", "cp852", "koi8-r", "koi8-u", "mac-roman",
    "gb18030", "gbk", "big5", "shift-jis", "euc-jp", "euc-kr",
)  # fmt: skip
"""Encodings that a text file may have."""


class HeaderRow(StrEnum):
    """Header row of a table: present, absent, or to be detected."""

    PRESENT = "present"
    ABSENT = "absent"
    DETECT = "detect"


class DuplicateNames(StrEnum):
    """Columns that have the name of another: refused, or numbered."""

    REFUSE = "refuse"
    NUMBER = "number"


class ReadOptions(Wire):
    """Options that an upload gives for its file; the defaults are inferred from the file."""

    header: HeaderRow = Field(
        HeaderRow.DETECT,
        description="`present`: the first row holds the names; `absent`: it holds values, and the columns are named "
        "column_1, column_2, …; `detect`: it holds values if its cells are of the kinds of those below it.",
    )
    encoding: str | None = Field(
        None, description="Encoding of a text file; null: UTF-8, or UTF-16 if it begins with that byte order mark."
    )
    missing: list[str] = Field([], description="Cells that stand for a missing value, beside the usual markers.")
    kinds: dict[str, str] = Field(
        {}, description="Kinds of columns by name, each one of `KINDS`; those of the others are detected."
    )
    sheet: str | None = Field(
        None, description="Sheet of a workbook, by its name or its number from 1; null: the first."
    )
    member: str | None = Field(None, description="File in a zip archive that is the table; null: the only table.")

    delimiter: str | None = Field(None, description="Character between the fields of a row; null: detected.")
    skip_rows: int | None = Field(None, description="Number of lines above the table; null: detected.")
    header_row: int | None = Field(None, description="Line of the names, from 1; null: the first row of the table.")
    comment: str | None = Field(None, description="Beginning of lines that hold no rows; null: there are none.")
    duplicate_names: DuplicateNames = Field(
        DuplicateNames.REFUSE, description="`number`: a column that has the name of another gets a number behind it."
    )

    def given(self, column: str) -> GivenKind | None:
        """The kind that is given for a column; None: it is detected."""
        return KINDS[self.kinds[column]] if column in self.kinds else None

    def check_columns(self, names: Sequence[str]) -> None:
        """Raises InvalidData if a column whose kind is given does not exist."""
        known_names = set(names)
        unknown = [name for name in self.kinds if name not in known_names]
        if unknown:
            faults = [
                Fault(place("kinds", name), no_such("The file has no column", name, names), "unknown_column")
                for name in unknown[:LISTED]
            ]
            raise InvalidData(f"The kinds of {len(unknown)} columns that do not exist are given.", faults=faults)


def encoding_named(name: str) -> str | None:
    """The encoding of `ENCODINGS` that goes by this name or an alias of it; None if there is none.

    latin-1 and ASCII are windows-1252, as browsers have it: files that are called so hold its quotes and its €.
    """
    encoding = _BY_NAME.get(_key(name))
    return "windows-1252" if encoding == "latin-1" or _key(name) == "ascii" else encoding


def _key(name: str) -> str:
    plain = normalize_encoding(name.lower())
    return aliases.get(plain, plain)


_BY_NAME = {_key(name): name for name in ENCODINGS}
