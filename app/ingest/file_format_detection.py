"""Recognition of a file's format by its first bytes; files that are no tables are refused with their own reason."""

import zipfile
from collections.abc import Iterator

from app.errors import InvalidData
from app.faults import Fault
from app.ingest.json_document import is_document
from app.ingest.text_encoding import encoding_of
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Source
from app.schemas.datasets import FileFormat

TEXT_FORMATS = {FileFormat.CSV, FileFormat.JSONL, FileFormat.JSON}
ZIP, OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MAGIC = {
    b"PAR1": FileFormat.PARQUET,
    b"ARROW1": FileFormat.ARROW,
    b"\xff\xff\xff\xff": FileFormat.ARROW,  # a stream: the continuation mark
    b"\x93NUMPY": FileFormat.NPY,
}
_JSON_NAMES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
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
    b"\xfd7zXZ\0": f"packed by xz: {_UNPACK}; gzip is read as it is",
    b"BZh": f"packed by bzip2: {_UNPACK}; gzip is read as it is",
    b"\x28\xb5\x2f\xfd": f"packed by zstd: {_UNPACK}; gzip is read as it is",
    b"\x04\x22\x4d\x18": f"packed by lz4: {_UNPACK}; gzip is read as it is",
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
_PLAIN = (b"BZh", b"ORC", b"FEA1", b"Obj", b"$FL2", b"RDX", b"MATLAB")
"""Beginnings that a text may have, too."""
_MARKUP = {b"<!doctype html": "an HTML page", b"<html": "an HTML page", b"<?xml": "an XML document"}
_TAR = slice(257, 262)


def recognise(source: Source, options: ReadOptions, name: str, given: FileFormat | None) -> tuple[FileFormat, Source]:
    """The format given; else by the first bytes; else JSON by name or a leading brace or bracket; else CSV.

    The source is then one that knows its encoding. Raises InvalidData for a file that cannot be read.
    """
    head = source.head()
    found = next((form for magic, form in _MAGIC.items() if head.startswith(magic)), None) or _workbook(source, head)
    reason = None if found is not None else next(_reasons(source, head), None)
    if reason is not None:
        detail = f"The file is {reason}."
        raise InvalidData(detail, faults=[Fault("", detail, "wrong_format")])
    text = source._replace(encoding=encoding_of(head, options))
    chosen = given or found or _text_format(text.head(), name)
    if chosen in TEXT_FORMATS:
        return chosen, text
    if source.packed:
        raise InvalidData("Only text files may be packed with gzip: the other formats compress inside.")
    return chosen, source


def _text_format(head: bytes, name: str) -> FileFormat:
    if is_document(head):
        return FileFormat.JSON
    looks_json = name.lower().endswith(_JSON_NAMES) or head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    return FileFormat.JSONL if looks_json else FileFormat.CSV


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
        yield _archive(source)
    if head[_TAR] == b"ustar":
        yield f"a tar archive: {_UNPACK}"
    begin = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for mark, what in _MARKUP.items():
        if begin.startswith(mark):
            yield f"{what}: {_EXPORT}"


def _archive(source: Source) -> str:
    names = _names(source)
    if names and all(name.endswith(".npy") for name in names):
        return "an npz archive: write one array by numpy.save, and upload that"
    if any(name.startswith(("word/", "ppt/")) for name in names):
        return f"a document of an office program: {_EXPORT}"
    return f"a zip archive: {_UNPACK}"


def _names(source: Source) -> list[str]:
    return [member.filename for member in members(source)]


def members(source: Source) -> list[zipfile.ZipInfo]:
    """The files in a zip archive; none if it is none, or damaged."""
    try:
        with zipfile.ZipFile(source.open()) as archive:
            return archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return []
