"""Excel and OpenDocument workbooks, as the libraries write them that people use."""

import datetime as dt
import io
import zipfile

import pytest

from app.base.errors import BodyTooLarge, InvalidData
from tests.ingest.workbooks import ods, xls, xlsx

DAY = dt.date(2024, 1, 31)
ROWS = [
    ["größe, m²", "plan", "aktiv", "wann", "gemischt", "leer"],
    [1, "pro", True, DAY, 1, None],
    [2.5, "zwei\nZeilen", False, dt.datetime(2024, 2, 1, 10, 5), "x", None],  # noqa: DTZ001  workbooks know no zones
    [None, None, None, None, None, None],
    [-1e300, 'ein "Wort"', True, None, 2.5, None],
]


@pytest.mark.parametrize("write", [xlsx, xls, ods])
def test_cells_have_their_kinds(parse, write):
    parsed, table = parse(write(Tabelle=ROWS))
    assert parsed.reading.file_format == write.__name__
    assert (parsed.reading.delimiter, parsed.reading.encoding, parsed.reading.header) == (None, None, True)
    kinds = ["numeric", "categorical", "boolean", "datetime", "categorical", "numeric"]
    assert [column.kind for column in parsed.columns] == kinds
    assert not parsed.warnings
    assert table.column(0).to_pylist() == [1, 2.5, -1e300]
    assert table.column(1).to_pylist() == ["pro", "zwei\nZeilen", 'ein "Wort"']
    assert table.column(2).to_pylist() == [True, False, True]
    assert [None if t is None else t.isoformat()[:16] for t in table.column(3).to_pylist()] == [
        "2024-01-31T00:00", "2024-02-01T10:05", None,
    ]  # fmt: skip
    assert table.column(4).to_pylist() == ["1", "x", "2.5"]


def test_a_sheet_is_chosen_by_name_or_number(parse):
    data = xlsx(Erste=[["a"], [1]], Zweite=[["b", "c;d"], [2, 3]])
    parsed, table = parse(data)
    assert table.to_pydict() == {"a": [1]}
    assert parsed.warnings == ["Only the sheet 'Erste' was read; the workbook also has 'Zweite'."]
    for sheet in ("2", "Zweite"):
        assert parse(data, options={"sheet": sheet})[1].to_pydict() == {"b": [2], "c;d": [3]}
    for sheet in ("3", "0", "Zweit", "²"):
        with pytest.raises(InvalidData) as refused:
            parse(data, options={"sheet": sheet})
        assert refused.value.faults[0].pointer == "/sheet"
    assert "did you mean" in parse_detail(parse, data, sheet="Zweit")


def parse_detail(parse, data, **options):
    with pytest.raises(InvalidData) as refused:
        parse(data, options=options)
    return refused.value.detail


def test_a_sheet_without_a_header_or_with_an_index(parse):
    data = xlsx(Tabelle=[[5.1, 3.5], [4.9, 3]])
    assert parse(data)[1].to_pydict() == {"column_1": [5.1, 4.9], "column_2": [3.5, 3.0]}
    data = xlsx(Tabelle=[[None, "a"], *([at, 7 * at] for at in range(5))])
    assert parse(data)[1].column_names == ["index", "a"]


def test_an_empty_sheet_and_a_damaged_workbook(parse):
    assert parse_detail(parse, xlsx(Leer=[])) == "The sheet 'Leer' is empty."
    whole = xlsx(Tabelle=ROWS)
    with zipfile.ZipFile(io.BytesIO(whole)) as archive, zipfile.ZipFile(sink := io.BytesIO(), "w") as cut:
        for name in archive.namelist():
            cut.writestr(name, archive.read(name)[: 200 if "sheet1" in name else None])
    for data in (sink.getvalue(), xls(Tabelle=ROWS)[:3000]):
        assert "workbook" in parse_detail(parse, data)


def test_a_bomb_is_refused(parse):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b"0" * 50_000_000)
    assert len(sink.getvalue()) < 100_000
    with pytest.raises(BodyTooLarge):
        parse(sink.getvalue(), unpacked_bytes=1 << 20)


def with_other_names(data, rename):
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(sink, "w") as renamed:
        for name in archive.namelist():
            member = zipfile.ZipInfo()
            member.filename = rename(name)
            renamed.writestr(member, archive.read(name))
    return sink.getvalue()


def test_paths_with_backslashes_are_those_of_a_workbook(parse):
    data = with_other_names(xlsx(Tabelle=ROWS), lambda name: name.replace("/", "\\"))
    assert parse(data)[1].equals(parse(xlsx(Tabelle=ROWS))[1])


@pytest.mark.parametrize("page", [1252, 1250, 437, 10000])
def test_a_code_page_that_is_not_that_of_the_format_does_not_count(parse, page):
    data = xls(Tabelle=ROWS)
    assert b"\x42\0\x02\0\xb0\x04" in data
    other = data.replace(b"\x42\0\x02\0\xb0\x04", b"\x42\0\x02\0" + page.to_bytes(2, "little"))
    assert parse(other)[1].equals(parse(data)[1])


def test_a_workbook_with_a_password_is_refused_with_a_remedy(parse):
    locked = xls(Tabelle=ROWS)[:512] + bytes(1000) + "EncryptedPackage".encode("utf-16-le") + bytes(1000)
    assert "password" in parse_detail(parse, locked)
    workbook = io.BytesIO(ods(Tabelle=ROWS))
    with zipfile.ZipFile(workbook) as archive, zipfile.ZipFile(sink := io.BytesIO(), "w") as written:
        for name in archive.namelist():
            content = archive.read(name)
            written.writestr(name, b"<manifest:encryption-data/>" if name == "META-INF/manifest.xml" else content)
    assert "password" in parse_detail(parse, sink.getvalue())
