"""Files that are no tables: each is refused with its own reason, whatever it is called."""

import gzip
import io
import pickle
import sqlite3
import tarfile
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc

from app.base.errors import InvalidData


def zipped(*names):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name in names:
            archive.writestr(name, b"a,b\n1,2\n")
    return sink.getvalue()


def npz():
    sink = io.BytesIO()
    np.savez(sink, a=np.zeros(3), b=np.zeros(2))
    return sink.getvalue()


def tarred():
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.csv"))
    return sink.getvalue()


def sqlite():
    with sqlite3.connect(":memory:") as database:
        database.execute("create table a (b integer)")
        return database.serialize()


def orc_file():
    sink = io.BytesIO()
    orc.write_table(pa.table({"a": [1, 2]}), sink)
    return sink.getvalue()


FILES = {
    "PDF": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj",
    "PNG": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "JPEG": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "npz": npz(),
    "office": zipped("word/document.xml", "[Content_Types].xml"),
    "tar": tarred(),
    "tar ": gzip.compress(tarred()),
    "HTML": b"\xef\xbb\xbf\n <!DOCTYPE html><html><table></table>",
    "XML": b"<?xml version='1.0'?><a/>",
    "SQLite": sqlite(),
    "pickle": pickle.dumps({"a": [1]}, protocol=4),
    "ORC": orc_file(),
    "Feather": b"FEA1" + bytes(20),
    "7z": b"7z\xbc\xaf\x27\x1c\0\x04",
    "HDF5": b"\x89HDF\r\n\x1a\n\0",
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("file_format", [None, "csv"], ids=["detected", "given"])
def test_a_file_that_is_no_table_is_refused_with_its_own_reason(parse, kind, file_format):
    with pytest.raises(InvalidData) as refused:
        parse(FILES[kind], file_format=file_format, name="table.csv")
    (fault,) = refused.value.faults
    assert fault.code == "wrong_format"
    assert kind.strip() in fault.detail
    assert any(advice in fault.detail for advice in ("upload", "Parquet"))


@pytest.mark.parametrize("name", ["ORCA", "BZhou", "FEA1", "Obj", "RDX", "MATLAB 5.0", "PK", "%PD"])
def test_a_column_may_have_such_a_name(parse, name):
    assert parse(f"{name},b\n1,x\n".encode())[1].column_names == [name, "b"]
