"""Compressed files and zip archives: each is the table that it holds, or refused with the reason and a remedy."""

import bz2
import gzip
import io
import lzma
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.base.errors import BodyTooLarge, InvalidData
from tests.ingest.workbooks import xls, xlsx

TABLE = {"place": ["Ulm", "Kiel", "Jena"], "amount": [5, 7, 9]}
CSV = b"place,amount\nUlm,5\nKiel,7\nJena,9\n"


def by_arrow(codec):
    def compress(data):
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(data)
        return sink.getvalue().to_pybytes()

    return compress


COMPRESSIONS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": by_arrow("zstd"),
    "lz4": by_arrow("lz4"),
}


def archive(members, compression=zipfile.ZIP_DEFLATED, **options):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", compression) as written:
        for name, data in members.items():
            with written.open(name, "w", **options) as member:
                member.write(data)
    return sink.getvalue()


def parquet():
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(TABLE), sink)
    return sink.getvalue().to_pybytes()


def arrow():
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, pa.table(TABLE).schema) as writer:
        writer.write_table(pa.table(TABLE))
    return sink.getvalue().to_pybytes()


ROWS = [list(TABLE), *map(list, zip(*TABLE.values(), strict=True))]
FORMATS = {
    "csv": CSV,
    "utf-16": CSV.decode().encode("utf-16"),
    "jsonl": b"".join(b'{"place": "%s", "amount": %d}\n' % (p.encode(), a) for p, a in ROWS[1:]),
    "json": b'{"columns": ["place", "amount"], "data": [["Ulm", 5], ["Kiel", 7], ["Jena", 9]]}',
    "parquet": parquet(),
    "arrow": arrow(),
    "xlsx": xlsx(Sheet=ROWS),
    "xls": xls(Sheet=ROWS),
    "arff": b"@relation r\n@attribute place {Ulm,Kiel,Jena}\n@attribute amount integer\n@data\nUlm,5\nKiel,7\nJena,9\n",
}


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_compressed_file_is_the_table_that_it_holds(parse, compression, file_format):
    data = COMPRESSIONS[compression](FORMATS[file_format])
    parsed, table = parse(data, name=f"table.{file_format}.x")
    assert table.to_pydict() == TABLE
    assert not parsed.warnings


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_zip_archive_is_the_table_that_it_holds(parse, file_format):
    members = {"__MACOSX/._a": b"\0\5", ".DS_Store": b"\0", f"deep/folder/a.{file_format}": FORMATS[file_format]}
    parsed, table = parse(archive(members))
    assert table.to_pydict() == TABLE
    assert not parsed.warnings


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_are_read_however_they_are_compressed(parse, compression):
    assert parse(archive({"a.csv": CSV}, compression))[1].to_pydict() == TABLE


def test_a_member_may_be_large_in_the_format_of_zip64(parse):
    assert parse(archive({"a.csv": CSV}, force_zip64=True))[1].to_pydict() == TABLE


def test_arrays_of_numpy_are_read_from_archives(parse):
    sink = io.BytesIO()
    np.savez(sink, a=np.arange(3))
    assert parse(sink.getvalue())[1].to_pydict() == {"c0": [0, 1, 2]}
    sink = io.BytesIO()
    np.save(sink, np.asfortranarray(np.arange(6).reshape(3, 2)))
    assert parse(gzip.compress(sink.getvalue()))[1].to_pydict() == {"c0": [0, 2, 4], "c1": [1, 3, 5]}


@pytest.mark.parametrize("outer", [gzip.compress, bz2.compress, lambda data: archive({"table.csv.gz": data})])
def test_compressions_within_each_other_are_read(parse, outer):
    assert parse(outer(gzip.compress(CSV)))[1].to_pydict() == TABLE
    assert parse(outer(archive({"a.csv": CSV})))[1].to_pydict() == TABLE


def test_files_beside_the_only_table_are_named(parse):
    parsed, table = parse(archive({"README.txt": b"about", "a/data.csv": CSV, "a/data.names": b"1. place"}))
    assert table.to_pydict() == TABLE
    (warning,) = parsed.warnings
    assert "'a/data.csv'" in warning
    assert "'README.txt', 'a/data.names'" in warning


def test_of_several_tables_one_is_chosen_by_name(parse):
    data = archive({"a.csv": CSV, "b.csv": b"x,y\n1,2\n"})
    with pytest.raises(InvalidData) as refused:
        parse(data)
    (fault,) = refused.value.faults
    assert (fault.pointer, fault.code) == ("/member", "several_tables")
    assert "'a.csv', 'b.csv'" in fault.detail
    assert "member=a.csv" in fault.detail
    assert parse(data, options={"member": "b.csv"})[1].to_pydict() == {"x": [1], "y": [2]}
    with pytest.raises(InvalidData, match=r"did you mean 'b.csv'"):
        parse(data, options={"member": "b.cvs"})


def encrypted():
    data = bytearray(archive({"a.csv": CSV}))
    data[6] |= 1
    central = data.index(b"PK\x01\x02")
    data[central + 8] |= 1
    return bytes(data)


def by_unknown_method():
    data = bytearray(archive({"a.csv": CSV}))
    data[8] = 9  # deflate64
    data[data.index(b"PK\x01\x02") + 10] = 9
    return bytes(data)


def with_a_wrong_checksum():
    data = bytearray(archive({"a.csv": CSV}, zipfile.ZIP_STORED))
    data[data.index(b"Kiel")] ^= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (archive({"a.csv": CSV})[:-30], "no_table"),
        (archive({}), "no_table"),
        (archive({"__MACOSX/a.csv": CSV, "folder/": b""}), "no_table"),
        (encrypted(), "encrypted"),
        (by_unknown_method(), "compression_method"),
        (with_a_wrong_checksum(), "damaged_compression"),
    ],
)
def test_an_archive_that_cannot_be_read_is_refused_with_a_remedy(parse, data, code):
    with pytest.raises(InvalidData) as refused:
        parse(data)
    (fault,) = refused.value.faults
    assert fault.code == code
    assert any(remedy in fault.detail for remedy in ("upload", "pack"))


def long_table():
    """Of numbers that hardly compress."""
    rng = np.random.default_rng(0)
    return b"a,b\n" + b"".join(b"%d,%d\n" % tuple(pair) for pair in rng.integers(0, 10**12, (5_000, 2)))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_compressed_file_that_was_cut_names_where_it_ends(parse, compression):
    whole = COMPRESSIONS[compression](long_table())
    for end in (len(whole) * 3 // 4, len(whole) - 2, 20):
        with pytest.raises(InvalidData) as refused:
            parse(whole[:end])
        (fault,) = refused.value.faults
        assert fault.code == "damaged_compression"
        assert fault.pointer.startswith("/byte/")
        assert compression in fault.detail
        assert "ends too early" in fault.detail


@pytest.mark.parametrize("compression", ["gzip", "bzip2", "xz"])
def test_a_compressed_file_that_is_damaged_names_where(parse, compression):
    data = bytearray(COMPRESSIONS[compression](long_table()))
    middle = len(data) // 2
    data[middle : middle + 50] = bytes(50)
    with pytest.raises(InvalidData) as refused:
        parse(bytes(data))
    (fault,) = refused.value.faults
    assert (fault.code, "is damaged" in fault.detail) == ("damaged_compression", True)


@pytest.mark.parametrize("compress", [*COMPRESSIONS.values(), lambda data: archive({"a.csv": data})])
def test_a_bomb_is_refused_by_its_expanded_size(parse, compress):
    bomb = compress(b"a,b\n" + b"1,2\n" * 50_000)
    assert len(bomb) < 20_000
    with pytest.raises(BodyTooLarge, match="100000"):
        parse(bomb, unpacked_bytes=10**5)
    with pytest.raises(BodyTooLarge, match="100000"):
        parse(gzip.compress(bomb), unpacked_bytes=10**5)


def test_endless_compressions_are_refused(parse):
    data = CSV
    for _ in range(6):
        data = gzip.compress(data)
    with pytest.raises(InvalidData, match="more than 4 times"):
        parse(data)
