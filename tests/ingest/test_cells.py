"""Cells of text columns as people write them: what becomes of them, and what the data sheet says of it."""

import csv
import datetime as dt
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InvalidData
from app.ingest import cell_patterns as shapes
from app.ingest.notation_candidates import numbers
from app.ingest.upload_options import KINDS
from app.ml.contract.columns import ColumnKind

NUMBERS = [f"{i * 3 % 97}.5" for i in range(499)]
HUNDRED = range(100, 200)


def column(name, cells):
    return "\n".join([name, *cells, ""]).encode()


def without(values, *words):
    """Of the sentences of a column, those on how it was read."""
    return [sentence for sentence in values if not any(word in sentence for word in ("identifier", *words))]


def moments(table, name):
    return [None if value is None else value.replace(tzinfo=None) for value in table.column(name).to_pylist()]


# strays


def test_one_stray_cell_is_missing_and_named_by_its_line(parse):
    parsed, table = parse(column("price", [*NUMBERS[:317], "unclear SECRET", *NUMBERS[317:]]))
    (price,) = parsed.columns
    assert (price.kind, price.count, price.missing) == ("numeric", 499, 1)
    assert table.column("price")[317].as_py() is None
    assert price.warnings == ["499 of 500 values are numbers; line 319 is not and was read as missing."]
    assert [offer.kinds for offer in price.offers] == [{"price": "categorical"}]
    parsed, table = parse(
        column("price", [*NUMBERS[:317], "unclear", *NUMBERS[317:]]), options={"kinds": price.offers[0].kinds}
    )
    assert (parsed.columns[0].kind, table.column("price")[317].as_py()) == ("categorical", "unclear")


def test_many_stray_cells_leave_a_text_with_an_offer_that_reads_it(parse):
    data = column("price", [*NUMBERS[:455], *["SECRET word"] * 45])
    (price,) = parse(data)[0].columns
    assert price.kind == "categorical"
    assert price.warnings == [
        "455 of 500 values are numbers; lines 457, 458, 459, 460, 461 and 40 more are not: the column was read as text."
    ]
    assert "SECRET" not in repr(price.offers)
    (again,) = parse(data, options={"kinds": price.offers[0].kinds})[0].columns
    assert (again.kind, again.missing) == ("numeric", 45)
    assert again.warnings[0].endswith("40 more are not and were read as missing.")


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([*NUMBERS[:10], "x"], "numeric"),
        ([*NUMBERS[:9], "x"], "categorical"),
        ([*NUMBERS[:199], "x", "y"], "categorical"),
        ([*NUMBERS[:200], "x", "y"], "numeric"),
        ([*(f"2024-01-{day:02}" for day in range(1, 29)), "soon"], "datetime"),
        ([*(f"{day}.12.2024" for day in range(1, 29)), "soon"], "datetime"),
        (["1", "2", "3", "A"] * 10, "categorical"),
    ],
)
def test_one_cell_in_a_hundred_and_at_least_one_may_be_a_stray(parse, cells, kind):
    assert parse(column("a", cells))[0].columns[0].kind == kind


def test_lines_are_those_of_an_editor(parse):
    rows = [f'{i}.5,"two\nlines"' if i % 2 else f"\n{i}.5,one" for i in range(1, 40)]
    parsed, _ = parse("\n".join(["", "a,b", *rows, "40,x", "bad,y", "41,z"]).encode())
    assert parsed.columns[0].warnings[0].startswith("41 of 42 values are numbers; line 82 is not")


def test_lines_of_a_file_without_a_header(parse):
    data = "\n".join([*(f"{i}.5,x" for i in range(30)), "unclear,x", ""]).encode()
    for lines, before in ((31, b""), (33, b"\n\n")):
        (a, _) = parse(before + data, options={"header": "absent"})[0].columns
        assert a.warnings[0].startswith(f"30 of 31 values are numbers; line {lines} is not")


def test_a_stray_without_any_number_in_its_block(parse):
    """The end of a file without a line break is a block of its own."""
    parsed, _ = parse(column("a,b", [f"{i}.5,x" for i in range(30)]) + b"unclear,x")
    assert (parsed.columns[0].kind, parsed.columns[0].missing) == ("numeric", 1)


def test_a_stray_far_behind_the_first_block(parse):
    parsed, table = parse(b"a,b\n" + b"1.5,filler\n" * 500_000 + b"bad,x\n")
    assert parsed.columns[0].warnings[0] == (
        "500000 of 500001 values are numbers; line 500002 is not and was read as missing."
    )
    assert table.column("a").null_count == 1


# markers


def test_markers_among_numbers_are_missing_however_many_there_are(parse):
    parsed, _ = parse(column("a", [*NUMBERS[:50], *["-", "n.b.", " Unknown ", "?"] * 10]))
    (a,) = parsed.columns
    assert (a.kind, a.missing) == ("numeric", 40)
    assert a.warnings == ["30 cells were read as missing for a marker: '-', 'n.b.', 'Unknown'."]
    assert set(a.notation.missing) == {"-", "n.b.", "Unknown"}


def test_a_marker_among_categories_is_a_category_and_offered(parse):
    data = column("plan", ["basic", "pro", "-"] * 20)
    (plan,) = parse(data)[0].columns
    assert (plan.kind, plan.missing) == ("categorical", 0)
    assert plan.warnings == ["20 values are '-', kept as a category; give missing=- to read it as missing."]
    assert [offer.missing for offer in plan.offers] == [["-"]]
    (again,) = parse(data, options={"missing": plan.offers[0].missing})[0].columns
    assert (again.missing, again.distinct, again.offers) == (20, 2, [])
    assert again.notation.missing == ("-",)


def test_given_markers_hold_for_every_column(parse):
    parsed, _ = parse(b"a,b,c\n1,x,2024-01-31\n-9, none given ,-9\n", options={"missing": ["-9", "none given"]})
    assert [(one.kind, one.missing) for one in parsed.columns] == [("numeric", 1), ("categorical", 1), ("datetime", 1)]


# numbers


@pytest.mark.parametrize(
    ("cells", "values", "sentence"),
    [
        (["12.5%", "3 %", "-1%"], [0.125, 0.03, -0.01], "Percentages were read as fractions: 12 % is 0.12."),
        (["12,5 %", "3 %"], [0.125, 0.03], "Percentages were read as fractions: 12 % is 0.12."),
        (["$1,234.50", "-$950", "$0.5"], [1234.5, -950, 0.5], "Amounts in $ were read as numbers."),
        (["1.234,50 €", "950 €", "0,5 €"], [1234.5, 950, 0.5], "Amounts in € were read as numbers."),
        (["CHF 1'234.-", "CHF 950.05"], [1234, 950.05], "Amounts in CHF were read as numbers."),
        (["1 234 567,8", "12"], [1234567.8, 12], None),
        (["1,234,567", "12"], [1234567, 12], None),
        (["1,25", "0,125"], [1.25, 0.125], None),
    ],
)
@pytest.mark.parametrize("delimiter", ["\t", ",", ";"])
def test_numbers_as_people_write_them(parse, cells, values, sentence, delimiter):
    rows = [f'"{cell}"{delimiter}x' for cell in cells * 5]
    parsed, table = parse(column(f"a{delimiter}b", rows))
    assert table.column("a").to_pylist() == values * 5
    assert without(parsed.columns[0].warnings) == ([sentence] if sentence else [])


def test_whole_amounts_are_whole_numbers(parse):
    assert parse(column("a,b", [f'"$1,{i}",x' for i in HUNDRED]))[1].column("a").type == "int64"


def ambiguous(other, delimiter):
    return column(f"a{delimiter}b", [f'"1,{i}"{delimiter}{other}' for i in HUNDRED])


@pytest.mark.parametrize(
    ("other", "delimiter", "first"),
    [
        ("0.5", ",", 1100),
        ('"0,5"', ",", 1.1),
        ("x", ",", 1100),
        ("x", ";", 1.1),
        ("x", "\t", 1100),
        ("0,5", ";", 1.1),
        ("0.5", ";", 1100),
    ],
)
def test_the_rest_of_the_file_decides_between_thousands_and_decimals(parse, other, delimiter, first):
    data = ambiguous(other, delimiter)
    parsed, table = parse(data)
    assert table.column("a")[0].as_py() == first
    if delimiter == ";" and first == 1.1:
        return  # the usual way of such a file
    (sentence,) = without(parsed.columns[0].warnings)
    assert sentence.startswith("The commas may be decimal marks or thousands separators: they were read as ")
    (offer,) = parsed.columns[0].offers
    _, table = parse(data, options={"kinds": offer.kinds})
    assert table.column("a")[0].as_py() == {1.1: 1100, 1100: 1.1}[first]


def test_points_are_thousands_where_commas_are_decimals(parse):
    _, table = parse(column("a;b", [f"{i},5;1.{i}" for i in HUNDRED]))
    assert (table.column("a")[0].as_py(), table.column("b")[0].as_py()) == (100.5, 1100)
    _, table = parse(column("a;b", [f"{i};1.{i}" for i in HUNDRED]))
    assert table.column("b")[0].as_py() == 1.1


def test_two_currencies_are_not_one_number(parse):
    (a,) = parse(column("a", ["$5", "€5"] * 20))[0].columns
    assert a.kind == "categorical"


# codes


def test_codes_keep_their_leading_zeros(parse):
    cells = [f"{i:05}" for i in range(700, 1300, 3)]
    parsed, table = parse(column("zip", cells))
    assert table.column("zip").to_pylist() == cells
    assert "leading zeros" in parsed.columns[0].warnings[0]
    (offer,) = parsed.columns[0].offers
    _, table = parse(column("zip", cells), options={"kinds": offer.kinds})
    assert table.column("zip").to_pylist() == list(range(700, 1300, 3))


def test_numbers_with_some_leading_zeros_are_numbers(parse):
    parsed, table = parse(column("a", ["007", "12", "0", "5"]))
    assert table.column("a").to_pylist() == [7, 12, 0, 5]
    assert parsed.columns[0].warnings == ["Some numbers have leading zeros, which are not kept."]
    assert not parse(column("a", ["0", "0.5", "10"]))[0].columns[0].warnings


# dates

DAYS = [dt.datetime(2024, 1 + i % 12, 1 + i % 28) for i in range(50)]  # noqa: DTZ001  compared without


@pytest.mark.parametrize(
    ("form", "dates"),
    [("%d.%m.%Y", "DMY"), ("%m/%d/%Y", "MDY"), ("%Y/%m/%d", "YMD"), ("%d-%m-%Y", "DMY"), ("%d/%m/%y", "DMY")],
)
def test_dates_in_the_usual_orders(parse, form, dates):
    parsed, table = parse(column("a", [day.strftime(form) for day in DAYS]))
    assert moments(table, "a") == DAYS
    assert (parsed.columns[0].notation.dates if parsed.columns[0].notation else "YMD") == dates


def test_dates_with_a_time_of_day(parse):
    _, table = parse(column("a", ["31.12.2024 14:05", "1.2.2024 00:00"]))
    assert moments(table, "a") == [dt.datetime(2024, 12, 31, 14, 5), dt.datetime(2024, 2, 1)]  # noqa: DTZ001


EARLY = [day.replace(day=1 + day.day % 12) for day in DAYS]


def test_dates_that_may_be_of_two_orders_are_text_with_an_offer_of_both(parse):
    data = column("a", [day.strftime("%d/%m/%Y") for day in EARLY])
    (a,) = parse(data)[0].columns
    assert a.kind in {"categorical", "text"}
    assert a.warnings[0] == (
        "The dates may be written as day, month, year or month, day, year: the column was read as text."
    )
    assert [offer.kinds for offer in a.offers] == [{"a": "date:DMY"}, {"a": "date:MDY"}]
    assert moments(parse(data, options={"kinds": {"a": "date:DMY"}})[1], "a") == EARLY
    swapped = [day.replace(day=day.month, month=day.day) for day in EARLY]
    assert moments(parse(data, options={"kinds": {"a": "date:MDY"}})[1], "a") == swapped


def test_another_column_or_dots_settle_the_order(parse):
    rows = [f"{day:%m/%d/%Y},{early:%m/%d/%Y},{early:%d.%m.%Y}" for day, early in zip(DAYS, EARLY, strict=True)]
    _, table = parse(column("a,b,c", rows))
    assert moments(table, "b") == moments(table, "c") == EARLY


# kinds


def test_kinds_can_be_given(parse):
    data = column(
        "store,zip,when,flag", [f"{i % 7},{i},{i % 28 + 1}.1.2024,{'yes' if i % 2 else 'no'}" for i in HUNDRED]
    )
    kinds = {"store": "categorical", "zip": "text", "when": "date", "flag": "boolean"}
    parsed, table = parse(data, options={"kinds": kinds})
    assert {one.name: one.kind for one in parsed.columns} == kinds | {"when": "datetime"}
    assert table.column("store")[0].as_py() == "2"
    assert table.column("flag")[1].as_py() is True


def test_a_kind_that_no_cell_has_is_a_fault(faults):
    assert faults(b"a,b\nx,SECRET\ny,z\n", options={"kinds": {"b": "numeric"}}) == {"/kinds/b": "kind_not_found"}
    assert faults(b"a,b\nx,13/13/2024\n", options={"kinds": {"b": "date"}}) == {"/kinds/b": "kind_not_found"}


def test_names_and_codes_cost_no_second_pass(monkeypatch, parse):
    """A plain file is passed over once, one with a doubtful column too."""
    from app.ingest import csv_reader as delimited

    opened = []
    rows = delimited._Rows
    monkeypatch.setattr(delimited, "_Rows", lambda *args, **kwargs: opened.append(1) or rows(*args, **kwargs))
    names = np.array(["Ada", "Grace", "A12", "B-7"])
    parse(column("a,b,c,d", [f"{names[i % 4]},{i},2024-01-01,{i / 7}" for i in range(50)]))
    assert len(opened) == 1
    parse(column("a", [*NUMBERS[:20], "x"]))
    assert len(opened) == 2


CELLS = [
    "1", "-2", "+3", " 4 ", "007", "0", "0.5", "1.5", "1,5", "1,234", "1.234", "1.234,5", "1'234.-", "1e5", "inf",
    "1e999", "-nan", "12%", "$5", "5 €", "-$1,234.5", "31.12.2024", "1/2/2024", "12/31/24 3:05 PM", "2024-02-30",
    "2024-01-31T10:00:00Z", "-", "n.b.", "?", "", "true", "word", "a, b", "9223372036854775807", "123456789012345678",
    "\u2212\u00a05", "1" * 60, "\u0661",
]  # fmt: skip


@given(
    st.lists(st.tuples(*[st.sampled_from(CELLS)] * 2), min_size=1, max_size=30),
    st.lists(st.sampled_from(CELLS), min_size=1, max_size=3),
    st.sampled_from(",;\t"),
    st.sampled_from([None, *KINDS]),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_in_the_cells_the_sheet_counts_what_the_table_holds(parse, rows, usual, delimiter, kind):
    lines = [[*row, usual[at % len(usual)]] for at, row in enumerate(rows * 4)]
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=delimiter).writerows([["a", "b", "c"], *lines])
    try:
        parsed, table = parse(written.getvalue().encode(), options={"kinds": {"c": kind} if kind else {}})
    except InvalidData as error:
        refused = error
        parsed, table = None, None
    if table is None:
        assert [fault.pointer for fault in refused.faults] == ["/kinds/c"]
        return
    for described, values in zip(parsed.columns, table.columns, strict=True):
        assert described.missing == values.null_count
        assert described.kind in {column.value for column in ColumnKind}


def test_whole_numbers_beside_a_stray_keep_all_their_digits(parse):
    cells = [str(123456789012345678 + i) for i in range(20)]
    _, table = parse(column("a", [*cells, "x"]))
    assert table.column("a").to_pylist() == [*map(int, cells), None]


def test_with_more_shapes_than_are_counted_no_number_is_taken_for_whole(monkeypatch):
    monkeypatch.setattr(shapes, "MOST_SHAPES", 2)
    counted = shapes.Shapes()
    for cells in (["1", "12", "x"], ["123", "1.5"]):
        counted.add(pa.array(cells), ())
    assert (counted.total, counted.complete, [way.whole for way in numbers(counted)]) == (5, False, [False])


# typed formats


def test_kinds_and_markers_can_be_given_for_json(parse):
    rows = [{"zip": 1000 + i, "price": f"{i}.5", "rate": f"{i},5", "plan": "-", "when": 20240101 + i} for i in range(9)]
    data = "\n".join(map(json.dumps, [*rows, {"price": "SECRET"}])).encode()
    kinds = {"zip": "categorical", "price": "numeric", "rate": "numeric:comma", "when": "date"}
    parsed, table = parse(data, options={"kinds": kinds, "missing": ["-"]})
    found = {one.name: one for one in parsed.columns}
    assert {name: found[name].kind for name in kinds} == kinds | {"rate": "numeric", "when": "datetime"}
    assert table.column("zip")[0].as_py() == "1000"
    assert (table.column("price")[8].as_py(), table.column("rate")[8].as_py()) == (8.5, 8.5)
    assert moments(table, "when")[8] == dt.datetime(2024, 1, 9)  # noqa: DTZ001
    assert found["plan"].missing == 10
    assert found["price"].warnings[0] == "9 of 10 values are numbers; row 10 is not and was read as missing."


def test_kinds_can_be_given_for_parquet(parse, faults):
    table = pa.table({"a": pa.array(["1", "2"]).dictionary_encode(), "b": [0, 1], "c": ["SECRET", "x"]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    data = sink.getvalue().to_pybytes()
    _, read = parse(data, options={"kinds": {"a": "numeric", "b": "boolean"}})
    assert read.select(["a", "b"]).to_pydict() == {"a": [1.0, 2.0], "b": [False, True]}
    assert faults(data, options={"kinds": {"c": "numeric"}}) == {"/kinds/c": "kind_not_found"}


def test_dates_without_marks_are_numbers_and_offered_as_dates(parse):
    data = b"a,b,c\n20240131,1,20240131\n20241201,2,20241301\n"
    parsed, _ = parse(data)
    assert [one.kind for one in parsed.columns] == ["numeric"] * 3
    assert [[offer.kinds for offer in one.offers] for one in parsed.columns] == [[{"a": "date:YMD"}], [], []]
    _, table = parse(data, options={"kinds": parsed.columns[0].offers[0].kinds})
    assert moments(table, "a") == [dt.datetime(2024, 1, 31), dt.datetime(2024, 12, 1)]  # noqa: DTZ001


def test_digits_without_end_stay_as_they_are_in_a_column_given_as_categories(parse):
    _, table = parse(b"c\n" + 4 * (b"9" * 48 + b"\n"), options={"kinds": {"c": "categorical"}})
    assert table["c"].to_pylist() == ["9" * 48] * 4
