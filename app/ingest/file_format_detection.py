"""Recognition of a file's format by its first bytes; files that are no tables are refused with their own reason."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.base.suggestions import quoted
from app.ingest.arff_header import is_arff
from app.ingest.compression import find_compression, without_suffix
from app.ingest.json_document import is_document
from app.ingest.svmlight import is_svmlight
from app.ingest.text_encoding import encoding_of
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Source
from app.ingest.zip_archive import EMPTY_ZIP, ZIP, find_table, list_members, listed
from app.schemas.datasets import FileFormat

TEXT_FORMATS = {FileFormat.CSV, FileFormat.JSONL, FileFormat.JSON, FileFormat.ARFF, FileFormat.SVMLIGHT}
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MAGIC = {
    b"PAR1": FileFormat.PARQUET,
    b"ARROW1": FileFormat.ARROW,
    b"\xff\xff\xff\xff": FileFormat.ARROW,  # a stream: the continuation mark
    b"\x93NUMPY": FileFormat.NPY,
}
_BY_SUFFIX = {
    ".json": FileFormat.JSONL, ".jsonl": FileFormat.JSONL, ".ndjson": FileFormat.JSONL, ".arff": FileFormat.ARFF,
    ".svm": FileFormat.SVMLIGHT, ".libsvm": FileFormat.SVMLIGHT, ".svmlight": FileFormat.SVMLIGHT,
}  # fmt: skip
"""Formats of texts, by the ends of their names."""
MAX_LAYERS = 4
"""Compressions and archives within each other."""
_PARTS_OF_DOCUMENTS = ("xl/", "word/", "ppt/", "[content_types].xml", "meta-inf/", "mimetype", "content.xml")
"""Beginnings of the names in a zip archive that is a document of a program."""
_EXPORT = "export the table as CSV or Parquet, and upload that"
_UNPACK = "unpack it, and upload the table that it holds"
_FOREIGN = {
    b"%PDF": f"a PDF document: {_EXPORT}",
    b"\x89PNG\r\n": "a PNG image: upload the numbers themselves, as CSV or npy",
    b"\xff\xd8\xff": "a JPEG image: upload the numbers themselves, as CSV or npy",
    b"GIF8": "a GIF image: upload the numbers themselves, as CSV or npy",
    b"II*\0": "a TIFF image: upload the numbers themselves, as CSV or npy",
    b"MM\0*": "a TIFF image: upload the numbers themselves, as CSV or npy",
    b"SQLite format 3\0": "an SQLite database: export the table as CSV, and upload that",
    b"7z\xbc\xaf\x27\x1c": f"a 7z archive: {_UNPACK}",
    b"Rar!\x1a": f"a RAR archive: {_UNPACK}",
    b"ORC": "an ORC file: write it as Parquet, such as by pyarrow, and upload that",
    b"FEA1": "a Feather file of version 1: write it as Feather of version 2 or Parquet, and upload that",
    b"\x89HDF\r\n": "an HDF5 file: write the table as Parquet, such as by pandas, and upload that",
    b"Obj\x01": "an Avro file: write it as Parquet, and upload that",
    b"$FL2": f"an SPSS file: {_EXPORT}",
    b"<stata_dta>": f"a Stata file: {_EXPORT}",
    b"RDX": "a file of R: write the table by write.csv, and upload that",
    b"MATLAB 5.0": f"a MATLAB file: {_EXPORT}",
    b"\x80\x02": "a pickle, which may run code when it is read: write the table by to_parquet, and upload that",
    b"\x80\x03": "a pickle, which may run code when it is read: write the table by to_parquet, and upload that",
    b"\x80\x04": "a pickle, which may run code when it is read: write the table by to_parquet, and upload that",
    b"\x80\x05": "a pickle, which may run code when it is read: write the table by to_parquet, and upload that",
}
"""Files that are no tables or cannot be read, and what to do instead."""
_PLAIN = (b"ORC", b"FEA1", b"Obj", b"$FL2", b"RDX", b"MATLAB")
"""Beginnings that a text may have, too."""
_MARKUP = {b"<!doctype html": "an HTML page", b"<html": "an HTML page", b"<?xml": "an XML document"}
_TAR = slice(257, 262)


class Recognised(NamedTuple):
    file_format: FileFormat
    source: Source
    warnings: tuple[str, ...]


def recognise(source: Source, options: ReadOptions, name: str, stated_format: FileFormat | None) -> Recognised:
    """The format given; else by the first bytes; else by the name, or a leading brace or bracket; else CSV.

    The source is then unpacked and knows its encoding. Raises InvalidData for a file that cannot be read.
    """
    source, name, warnings = _unpack(source, options, name)
    head = source.head()
    magic = next((form for magic, form in _MAGIC.items() if head.startswith(magic)), None) or _workbook(source, head)
    reason = None if magic is not None else next(_reasons(source, head), None)
    if reason is not None:
        _refuse(f"The file is {reason}.")
    text = source._replace(encoding=encoding_of(head, options))
    chosen = stated_format or magic or _text_format(text.head(), name)
    return Recognised(chosen, text if chosen in TEXT_FORMATS else source.seekable(), warnings)


def _unpack(source: Source, options: ReadOptions, name: str) -> tuple[Source, str, tuple[str, ...]]:
    """The file behind compressions and in a zip archive, its name, and warnings about what is beside it."""
    warnings: tuple[str, ...] = ()
    for _ in range(MAX_LAYERS):
        head = source.head()
        layer = find_compression(head)
        if layer is not None:
            source = source._replace(layers=(*source.layers, layer))
            continue
        if not head.startswith((ZIP, EMPTY_ZIP)):
            return source, name, warnings
        source = source.seekable()
        if _is_document(_names(source)):
            return source, name, warnings
        member = find_table(source.open(), options.member)
        source, name = source._replace(layers=(member.layer,)), member.name
        warnings += _beside(member.name, member.others)
    return _refuse(f"The file is compressed more than {MAX_LAYERS} times: upload the table, compressed at most once.")


def _beside(name: str, others: Sequence[str]) -> tuple[str, ...]:
    read = f"Only the file {quoted(name)} was read; the zip archive also has {listed(others)}."
    return (read,) if others else ()


def _refuse(detail: str) -> NoReturn:
    raise InvalidData(detail, faults=[Fault("", detail, "wrong_format")])


def _text_format(head: bytes, name: str) -> FileFormat:
    if is_document(head):
        return FileFormat.JSON
    if is_arff(head):
        return FileFormat.ARFF
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return FileFormat.JSONL
    end = without_suffix(name).lower()
    named = next((form for suffix, form in _BY_SUFFIX.items() if end.endswith(suffix)), None)
    return named or (FileFormat.SVMLIGHT if is_svmlight(head) else FileFormat.CSV)


def _workbook(source: Source, head: bytes) -> FileFormat | None:
    if head.startswith(OLE):
        return FileFormat.XLS
    names = _names(source) if head.startswith(ZIP) else []
    if any(name.startswith("xl/") for name in names):
        return FileFormat.XLSX
    return FileFormat.ODS if "content.xml" in names else None


def _reasons(source: Source, head: bytes) -> Iterator[str]:
    """Why it is no table."""
    binary = b"\0" in head
    for magic, reason in _FOREIGN.items():
        if head.startswith(magic) and (binary or not magic.startswith(_PLAIN)):
            yield reason
    if head.startswith(ZIP):
        yield _archive(_names(source))
    if head[_TAR] == b"ustar":
        yield f"a tar archive: {_UNPACK}"
    begin = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for mark, what in _MARKUP.items():
        if begin.startswith(mark):
            yield f"{what}: {_EXPORT}"


def _archive(names: Sequence[str]) -> str:
    if any(name.endswith(".npy") for name in names):
        return "an npz archive: write one array by numpy.save, and upload that"
    return f"a document of an office program: {_EXPORT}"


def _is_document(names: Sequence[str]) -> bool:
    """True if a zip archive is a workbook, another document, or an npz archive of several arrays."""
    arrays = len(names) > 1 and all(name.endswith(".npy") for name in names)
    return arrays or any(name.startswith(_PARTS_OF_DOCUMENTS) for name in names)


def _names(source: Source) -> list[str]:
    """Names of the files in a zip archive, in lower case and with slashes, as any system writes them."""
    return [member.filename.replace("\\", "/").lower() for member in list_members(source.open())]
