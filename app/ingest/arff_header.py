"""Header of an ARFF file (Weka's attribute-relation format; also KEEL's): names and types of the columns.

No library reads all of it: SciPy's has neither strings nor sparse rows, and liac-arff is no longer maintained.
Reference: the manual of Weka, "ARFF (stable version)".
"""

import re
from typing import BinaryIO, NamedTuple, NoReturn

from app.base.faults import Fault, place
from app.ingest.reader_result import refuse
from app.ingest.uploaded_file import BOM

MAX_LINE_BYTES = 4 << 20
_IS_ARFF = re.compile(rb"(?:\xef\xbb\xbf)?(?:[ \t]*(?:%[^\r\n]*)?[\r\n]++)*[ \t]*@relation\b", re.IGNORECASE)
_KEYWORD = re.compile(r"\s*@([a-z]+)\s*(.*)", re.IGNORECASE | re.DOTALL)
QUOTED = r"""'(?P<single>(?:[^'\\]|\\.|'')*+)'|"(?P<double>(?:[^"\\]|\\.|"")*+)\""""
"""A value in quotes, in which a backslash or another quote makes a letter of a quote."""
_TOKEN = re.compile(rf"""(?:{QUOTED}|(?P<bare>[^\s,{{}}'"][^\s,{{}}]*+))""")
_ESCAPE = re.compile(r"""((?:\\u[0-9a-fA-F]{4})+)|\\(.)|(["'])\3""", re.DOTALL)
_SEPARATORS = re.compile(r"[ \t,]*")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_NUMERIC = {"numeric", "real", "integer"}
_DATE_KINDS = {"yMd": "date", "dMy": "date:DMY", "Mdy": "date:MDY"}
_ISO_FORMAT = "yyyy-MM-dd'T'HH:mm:ss"
_IGNORED = {"relation", "inputs", "input", "outputs", "output"}
"""Declarations that describe no column."""


class Attribute(NamedTuple):
    name: str
    kind: str | None
    """The kind of its column, as an upload gives it; None: detected."""
    levels: tuple[str, ...] = ()
    """The values of a nominal attribute."""
    line: int = 0

    @property
    def default(self) -> str:
        """The value that a sparse row leaves out: zero, or the first of a nominal attribute."""
        if self.levels:
            return self.levels[0]
        return {"numeric": "0", "text": ""}.get(self.kind or "", "1970-01-01")


class ArffHeader(NamedTuple):
    attributes: tuple[Attribute, ...]
    data_line: int
    """Line of `@data`, from 1."""
    data_offset: int
    """Bytes in front of the rows."""


def is_arff(head: bytes) -> bool:
    """True if a file that begins so declares a relation."""
    return _IS_ARFF.match(head) is not None


def read_header(file: BinaryIO) -> ArffHeader:
    """The declarations of a file. Raises InvalidData with the line of one that is not understood."""
    attributes: list[Attribute] = []
    line, offset = 0, 0
    while raw := file.readline(MAX_LINE_BYTES):
        line, offset = line + 1, offset + len(raw)
        text = _text(raw.removeprefix(BOM) if line == 1 else raw, line).strip()
        if not text or text.startswith("%"):
            continue
        match = _KEYWORD.fullmatch(text)
        keyword = "" if match is None else match[1].lower()
        if match is not None and keyword == "attribute":
            attributes.append(_attribute(match[2], line))
        elif keyword == "data":
            return ArffHeader(tuple(attributes), line, offset)
        elif keyword not in _IGNORED:
            _refuse(line, "The header of an ARFF file has lines of @relation, @attribute and @data only.")
    return _refuse(line, "The header of the ARFF file ends without a line @data: put it in front of the rows.")


def _text(raw: bytes, line: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        detail = "The line is not valid UTF-8: give the encoding of the file, such as encoding=windows-1252."
        refuse([Fault(place("line", line), detail, "not_utf8")])


def _attribute(text: str, line: int) -> Attribute:
    token = _TOKEN.match(text)
    if token is None:
        _refuse(line, "The attribute has no name: write @attribute, its name and its type.")
    name, declared = unescape(token, line), text[token.end() :].strip()
    if declared.startswith("{"):
        return Attribute(name, "categorical", _levels(declared, line), line)
    words = declared.split(None, 1) or [""]
    kind = re.split(r"[\[{]", words[0])[0].lower()
    if kind in _NUMERIC:
        return Attribute(name, "numeric", line=line)
    if kind == "string":
        return Attribute(name, "text", line=line)
    if kind == "date":
        return Attribute(name, _date_kind(words[1] if len(words) > 1 else "", line), line=line)
    if kind == "relational":
        _refuse(line, "A relational attribute holds tables, not values: write its columns as attributes of their own.")
    return _refuse(line, "The type of the attribute is none of numeric, real, integer, string, date and {values}.")


def _levels(declared: str, line: int) -> tuple[str, ...]:
    levels: list[str] = []
    end = 1
    while True:
        end = _SEPARATORS.match(declared, end).end()  # type: ignore[union-attr]  # it matches nothing, too
        if declared[end : end + 1] == "}":
            return tuple(levels)
        token = _TOKEN.match(declared, end)
        if token is None:
            _refuse(line, "The values of the attribute are not readable: write {a, b, 'c d'}, quotes around blanks.")
        levels.append(unescape(token, line))
        end = token.end()


def _date_kind(pattern: str, line: int) -> str | None:
    token = _TOKEN.match(pattern)
    letters = re.sub("'[^']*'", "", _ISO_FORMAT if token is None else unescape(token, line))
    return _DATE_KINDS.get("".join(dict.fromkeys(letter for letter in letters if letter in "yMd")))


def unescape(token: re.Match[str], line: int) -> str:
    """The text of a token, which may be in quotes and have backslashes. Raises InvalidData with this line."""
    quoted = token["double"] if token["single"] is None else token["single"]
    if quoted is None:
        return str(token["bare"])
    try:
        return _ESCAPE.sub(_character, quoted)
    except UnicodeDecodeError:
        detail = "An escape, such as \\ud83d, is half of a character: write both halves, or the character itself."
        refuse([Fault(place("line", line), detail, "unreadable_row")])


def _character(match: re.Match[str]) -> str:
    if match[1]:
        return bytes.fromhex(match[1].replace("\\u", "")).decode("utf-16-be")
    escaped = match[2] or match[3]
    return _ESCAPED.get(escaped, escaped)


def _refuse(line: int, detail: str) -> NoReturn:
    refuse([Fault(place("line", line), detail, "arff_header")])
