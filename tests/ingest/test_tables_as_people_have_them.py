"""Files as people have them: lines above the table, names or none, dialects, notations; nothing changes silently."""

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.base.errors import InvalidData
from tests.ingest.workbooks import xlsx

PLACES = {"place": ["Ulm", "Kiel", "Jena"], "amount": [5, 7, 9]}


def values(table):
    return {name: table.column(name).to_pylist() for name in table.column_names}


# names


@pytest.mark.parametrize(
    "data",
    [
        b"52,red,120,north\n35,blue,80,south\n29,red,60,north\n",
        b"2023-03-01,12.5\n2023-03-02,13.5\n2023-03-03,11.0\n",
        b"4.1,2.0,1.3,kind-a\n5.2,2.4,1.5,kind-b\n4.4,2.1,1.2,kind-a\n",
        b"p,x,s,p\ne,x,s,p\np,b,s,n\n",
        b"Jan 2021,3\nFeb 2021,4\nMar 2021,5\n",
        b",".join(b"%d" % number for number in range(5, 305, 5)) + b",q\n" + b"1," * 60 + b"q\n" + b"2," * 60 + b"r\n",
    ],
)
def test_a_first_row_like_the_rows_below_holds_values_and_is_warned_about(parse, data):
    parsed, table = parse(data)
    assert table.column_names[0] == "column_1"
    assert parsed.rows == data.count(b"\n")
    assert "header=present" in parsed.warnings[0]


@pytest.mark.parametrize(
    ("data", "doubted"),
    [
        (b"who,2020,2021,2022\nx,3.5,4,1\ny,4.5,5,2\nz,1,2,3\n", True),
        (b"who,2020-01,2020-02\nx,3.5,4\ny,4.5,5\nz,1,2\n", False),
        (b"who,what\nx,a\ny,b\n", False),
        (b"who,x\nx,a\ny,x\nz,b\n", True),
    ],
)
def test_names_are_names_though_some_are_numbers_or_dates(parse, data, doubted):
    parsed, table = parse(data)
    assert table.column_names[0] == "who"
    assert ["header=absent" in warning for warning in parsed.warnings] == [True] * doubted


def test_a_name_too_long_is_shortened_with_a_warning(parse):
    parsed, table = parse(b"How often " + b"really " * 40 + b"do you?,age\nnever,31\noften,45\n")
    assert [len(name) <= 200 for name in table.column_names] == [True, True]
    assert "column 1" in parsed.warnings[0]


def test_equal_names_are_refused_or_numbered(parse):
    data = b"a,b,a\n1,x,2\n3,y,4\n"
    with pytest.raises(InvalidData) as refused:
        parse(data)
    assert refused.value.faults[0].code == "duplicate_column"
    assert parse(data, options={"duplicate_names": "number"})[1].column_names == ["a", "b", "a_2"]


def test_a_second_row_of_names_or_units_is_left_out_with_a_warning(parse):
    parsed, table = parse(b"width,height,\nmm,mm,kind\n1,2,x\n3,4,y\n5,6,z\n")
    assert values(table) == {"width": [1, 3, 5], "height": [2, 4, 6], "kind": ["x", "y", "z"]}
    assert "Line 2" in parsed.warnings[0]
    named = parse(b"total,,\na,b,c\n1,2,3\n3,4,5\n5,6,7\n", options={"header_row": 2})[1]
    assert named.column_names == ["a", "b", "c"]


def test_a_row_with_a_stray_word_is_no_second_header(parse):
    parsed, _ = parse(b"a,b,c\n1,unknown,3\n2,3,4\n3,4,5\n4,5,6\n")
    assert parsed.rows == 4


# what stands above a table


@pytest.mark.parametrize(
    "above", [b"sep=;\n", b"Monthly report\n", b"# made by a program\n# of two lines\n", b"Report;\n\n", b"\nTitle\n\n"]
)
def test_lines_above_a_table_are_left_out_with_a_warning(parse, above):
    parsed, table = parse(above + b"place;amount\nUlm;5\nKiel;7\nJena;9\n")
    assert values(table) == PLACES
    assert parsed.reading.delimiter == ";"
    assert "skip_rows" in parsed.warnings[0]


def test_lines_above_a_table_can_be_given(parse):
    data = b"a,b\nc,d\nplace,amount\nUlm,5\nKiel,7\nJena,9\n"
    assert values(parse(data, options={"skip_rows": 2})[1]) == PLACES
    assert values(parse(data, options={"header_row": 3})[1]) == PLACES
    assert parse(b"Title\na,b\n1,2\n3,4\n", options={"skip_rows": 0, "delimiter": ";"})[1].column_names == ["Title"]


def test_comments_are_no_rows_where_they_are_given(parse):
    data = b"place,amount\nUlm,5\n# a comment, of two parts\nKiel,7\nJena,9\n"
    assert values(parse(data, options={"comment": "#"})[1]) == PLACES


def test_a_short_header_over_longer_rows_is_no_title(faults):
    assert "/line/2" in faults(b"a,b\n1,2,3\n4,5,6\n7,8,9\n")


def test_faults_below_a_title_have_the_lines_of_the_file(faults):
    assert faults(b"Report\n\nplace;amount\nUlm;5\nKiel\nJena;9\n" + b"x;1\n" * 9) == {
        "/line/5/column/amount": "ragged_row"
    }


def test_a_title_in_a_workbook_is_left_out(parse):
    rows = [["Sales 2024", None], ["place", "amount"], ["Ulm", 5], ["Kiel", 7], ["Jena", 9]]
    assert values(parse(xlsx(Sheet=rows))[1]) == PLACES


def test_a_first_sheet_without_a_table_names_the_others(parse):
    with pytest.raises(InvalidData) as refused:
        parse(xlsx(Note=[["The table is in the next sheet"]], Data=[["a", "b"], [1, 2]]))
    assert "sheet='Data'" in refused.value.faults[-1].detail


# dialects


@pytest.mark.parametrize(
    "data",
    [
        b"place, amount\nUlm, 5\nKiel, 7\nJena, 9\n",
        b'"place", "amount"\n"Ulm", "5"\n"Kiel", "7"\n"Jena", "9"\n',
        b"place amount\nUlm 5\nKiel   7\nJena 9\n",
        b"place\t amount\n Ulm\t5\nKiel \t7\nJena\t9 \n",
        b"place,amount,\nUlm,5,\nKiel,7,\nJena,9,\n",
        b"place,amount\nUlm,5,\nKiel,7,\nJena,9,\n",
        b"place^amount\nUlm^5\nKiel^7\nJena^9\n",
    ],
)
def test_dialects_of_one_table_are_the_same_table(parse, data):
    options = {"delimiter": "^"} if b"^" in data else {}
    assert {name: cells for name, cells in values(parse(data, options=options)[1]).items() if name in PLACES} == PLACES


def test_quotes_behind_blanks_and_backslashes_enclose_values(parse):
    assert parse(b'n, name\n1, "Doe, Jo"\n2, "Roe, Al"\n')[1].column("name").to_pylist() == ["Doe, Jo", "Roe, Al"]
    table = parse(b'n,name\n1,"the \\"old\\" one, gone"\n2,"b"\n')[1]
    assert table.column("name").to_pylist() == ['the "old" one, gone', "b"]


@pytest.mark.parametrize(
    "data",
    [
        b"n,text\n1,'Doe, Jo'\n2,'it''s'\n",
        b"'n','text'\n'1','Doe, Jo'\n'2','it''s'\n",
        b"n|text\r\n1|'Doe, Jo'\r\n2| 'it''s' \r\n",
        b"n;text\n1;'Doe, Jo'\n2;'it\\'s'\n",
    ],
)
def test_apostrophes_enclose_values_where_all_of_them_do(parse, data):
    assert values(parse(data)[1]) == {"n": [1, 2], "text": ["Doe, Jo", "it's"]}


@pytest.mark.parametrize(
    "cells", [["'t Hooft", "'s Gravesande"], ["'a'", "'t Hooft"], ["'90s'", 'say "x"'], ["it's", "'x'"]]
)
def test_other_apostrophes_are_letters(parse, cells):
    data = "n,text\n" + "".join(f"{number},{cell}\n" for number, cell in enumerate(cells))
    assert parse(data.encode())[1].column("text").to_pylist() == cells


def test_rows_that_a_lone_quote_would_swallow_are_read(parse):
    parsed, table = parse(b'n,size,v\n1,"5 inch,x\n2,6 inch,y\n3,"7 inch,z\n')
    assert table.column("size").to_pylist() == ['"5 inch', "6 inch", '"7 inch']
    assert "quotes" in parsed.warnings[0]
    assert parse(b'n,v\n1,"open\n2,x\n3,y\n')[0].rows == 3


def test_quoted_lines_like_rows_stay_one_value(parse):
    table = parse(b'n,address\n1,"Main St 1, Ulm\n2, upstairs"\n2,x\n')[1]
    assert table.column("address").to_pylist() == ["Main St 1, Ulm\n2, upstairs", "x"]


def test_a_blank_line_is_a_missing_value_of_a_single_column(parse):
    assert parse(b"age\n31\n\n44\n")[1].column("age").to_pylist() == [31, None, 44]


def test_one_column_of_texts_of_equal_parts_is_warned_about(parse):
    assert "delimiter" in parse(b"name\nJo Doe\nAl Roe\nBo Li\nCy Fox\n")[0].warnings[0]


def test_one_column_of_lines_of_which_some_have_delimiters_is_warned_about(parse):
    parsed, _ = parse(b"# a file\nof some lines\n# more\nin the way\na;b\n# and\n1;3\n6;7\n")
    assert "semicolons" in parsed.warnings[0]
    assert not parse(b"note\n" + b"a word\nwords\n" * 5 + b"a; b\n")[0].warnings


# words and missing values


def test_only_empty_cells_are_missing_among_words(parse):
    parsed, table = parse(b"lender,n\nnone,1\nNA,NA\n,3\nbank,none\n" + b"bank,4\n" * 9)
    assert table.column("lender").to_pylist()[:4] == ["none", "NA", None, "bank"]
    assert table.column("n").to_pylist()[:4] == [1, None, 3, None]
    sheet = parsed.columns[0]
    assert any("1 value is 'NA'" in warning for warning in sheet.warnings)
    assert set(sheet.offers[0].missing) == {"NA", "none"}
    again = parse(b"lender\nnone\nbank\n" * 5, options={"missing": ["none"]})[1]
    assert again.column("lender").null_count == 5


def test_blanks_around_words_do_not_count(parse):
    assert parse(b"w,n\n a ,1\na,2\n b,3\n")[1].column("w").to_pylist() == ["a", "a", "b"]


# numbers

LONG = [40123456789012345600 + number for number in range(6)]


def parquet_of(cells):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": cells, "n": [1] * len(cells)}), sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("data", "cells"),
    [
        ("id,n\n" + "".join(f"{number},1\n" for number in LONG), LONG),
        ("".join(f'{{"id": {number}, "n": 1}}\n' for number in LONG), LONG),
        ('{"columns": ["id"], "data": [' + ", ".join(f"[{number}]" for number in LONG) + "]}", LONG),
        (parquet_of(pa.array([2**64 - 1, 2**64 - 2], pa.uint64())), [2**64 - 1, 2**64 - 2]),
        ("id,n\n123456789012345678,1\n0.5,2\n", ["123456789012345678", 0.5]),
        ("id,n\n+491701234567,1\n+491701234568,2\n", ["+491701234567", "+491701234568"]),
    ],
)  # fmt: skip
def test_numbers_that_floats_would_round_stay_as_they_are_written(parse, data, cells):
    parsed, table = parse(data if isinstance(data, bytes) else data.encode())
    assert table.column("id").to_pylist() == list(map(str, cells))
    sheet = next(column for column in parsed.columns if column.name == "id")
    assert sheet.distinct == len(cells)
    assert "read as text" in sheet.warnings[0]
    assert sheet.offers[0].kinds == {"id": "numeric"}


def test_small_unsigned_numbers_are_numbers(parse):
    assert parse(parquet_of(pa.array([1, 2], pa.uint64())))[1].column("id").to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["(5.00)", "3.00", "(1.25)"], [-5.0, 3.0, -1.25]),
        (["5.00-", "3.00", "1.25-"], [-5.0, 3.0, -1.25]),
        (['"1,00,000"', '"12,34,567"', '"5,000"'], [100000, 1234567, 5000]),
    ],
)
def test_numbers_of_accounts_and_of_india(parse, cells, numbers):
    data = "v,w\n" + "".join(f"{cell},x\n" for cell in cells)
    assert parse(data.encode())[1].column("v").to_pylist() == numbers


def test_parentheses_have_to_be_a_pair(parse):
    assert parse(b"v,w\n(5.00,x\n3.00),y\n-4-,z\n")[1].column("v").to_pylist() == ["(5.00", "3.00)", "-4-"]


# dates


@pytest.mark.parametrize(
    "cells",
    [
        ["5-Jan-24", "6-Feb-24", "7-Mar-24"],
        ['"Jan 5, 2024"', '"Feb 6, 2024"', '"March 7, 2024"'],
        ["5 January 2024", "6 February 2024", "7 Mar. 2024"],
        ["5. Januar 2024", "6. Februar 2024", "7. März 2024"],
        ["5 janvier 2024", "6 février 2024", "7 mars 2024"],
        ["5 de enero de 2024", "6 de febrero de 2024", "7 de marzo de 2024"],
        ["5 gennaio 2024", "6 febbraio 2024", "7 marzo 2024"],
        ["5 de janeiro de 2024", "6 de fevereiro de 2024", "7 de março de 2024"],
        ["5 januari 2024", "6 februari 2024", "7 maart 2024"],
        [f"2024-0{month}-0{month + 4} 10:00:00.123456789" for month in (1, 2, 3)],
        ["2024-01-05 00:00 UTC", "2024-02-06 00:00 UTC", "2024-03-07 00:00 UTC"],
    ],
)
def test_dates_with_names_of_months(parse, cells):
    column = parse(("d,n\n" + "".join(f"{cell},1\n" for cell in cells)).encode())[1].column("d").to_pylist()
    assert [(date.month, date.day) for date in column] == [(1, 5), (2, 6), (3, 7)]


@pytest.mark.parametrize(
    ("cells", "months"),
    [
        (["1949-01", "1949-02"], [1, 2]),
        (["Jan 1974", "Feb 1974"], [1, 2]),
        (["09/2024", "10/2024"], [9, 10]),
        (["2024-Q1", "2024-Q3"], [1, 7]),
        (["Q2 2024", "Q4 2024"], [4, 10]),
        (["2024-W06", "2024-W10-1"], [2, 3]),
    ],
)
def test_months_quarters_and_weeks_are_dates(parse, cells, months):
    column = parse(("d,n\n" + "".join(f"{cell},1\n" for cell in cells)).encode())[1].column("d").to_pylist()
    assert [date.month for date in column] == months


def test_times_with_and_without_an_offset_are_read_and_warned_about(parse):
    parsed, table = parse(b"t,n\n2024-03-01 10:00:00,1\n2024-03-02 10:00:00+05:00,2\n2024-03-03 10:00:00,3\n")
    assert [time.hour for time in table.column("t").to_pylist()] == [10, 5, 10]
    assert "offset" in parsed.columns[0].warnings[0]


def test_a_json_word_for_nothing_is_no_date(parse):
    assert parse(b'{"n": "null", "v": 1}\n{"n": "null", "v": 2}\n')[0].columns[0].kind == "categorical"


# types of Parquet


def test_bytes_of_text_durations_and_decimals_are_read(parse):
    table = pa.table(
        {
            "word": pa.array([b"ab", b"cd"]),
            "wait": pa.array([1500, None], pa.duration("ms")),
            "price": pa.array([Decimal("1.00"), Decimal("2.00")], pa.decimal128(20, 2)),
            "count": pa.array([Decimal(3), Decimal(4)], pa.decimal128(30, 0)),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    read = parse(sink.getvalue().to_pybytes())[1]
    assert values(read) == {"word": ["ab", "cd"], "wait": [1.5, None], "price": [1.0, 2.0], "count": [3, 4]}


@pytest.mark.parametrize(
    ("cells", "word"),
    [
        (pa.array([[1], [2]]), "list"),
        (pa.array([{"a": 1}, {"a": 2}]), "field"),
        (pa.array([b"\xff", b"a"]), "UTF-8"),
    ],
)
def test_columns_that_do_not_fit_are_named_with_their_type_and_a_remedy(parse, cells, word):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": cells}), sink)
    with pytest.raises(InvalidData) as refused:
        parse(sink.getvalue().to_pybytes())
    (fault,) = refused.value.faults
    assert (fault.pointer, fault.code) == ("/column/x", "column_type")
    assert word in fault.detail


# comments among the rows, and workbooks


@pytest.mark.parametrize(
    "data",
    [
        b"place,amount\nUlm,5\n# a comment\nKiel,7\nJena,9\n",
        b"place;amount\nUlm;5\nKiel;7\n#a;b;c\nJena;9\n# end\n",
        b'# made by a program\nplace,amount\n"Ulm",5\n# of two, three, parts\nKiel,7\nJena,9\n',
    ],
)
def test_comments_among_rows_are_left_out_with_a_warning(parse, data):
    parsed, table = parse(data)
    assert values(table) == PLACES
    assert "comment" in parsed.warnings[0]


def test_values_that_begin_with_the_mark_of_comments_are_values(parse):
    assert parse(b"tag,n\n#a,1\n#b,2\n")[1].column("tag").to_pylist() == ["#a", "#b"]


def test_texts_in_a_workbook_are_read_as_they_are(parse):
    rows = [["n", "text"], [1, 'a \\"quoted\\" word, b'], [2, '"'], [3, "x;y|z"]]
    assert parse(xlsx(Sheet=rows))[1].column("text").to_pylist() == [row[1] for row in rows[1:]]


def test_a_file_of_names_alone_is_refused_with_a_remedy_that_works(parse, faults):
    assert faults(b"a,b\n") == {"/line/1": "no_rows"}
    assert parse(b"a,b\n", options={"header": "absent"})[1].to_pydict() == {"column_1": ["a"], "column_2": ["b"]}


@pytest.mark.parametrize(
    ("cells", "hours"),
    [
        ([b"2021-05-25 04:55 UTC", b"2021-05-25 04:55 EST", b"2021-05-25 04:55 PDT"], [4, 9, 11]),
        ([b"25 May 2021 10:00 CET", b"25 May 2021 10:00 CEST", b"25 May 2021 10:00 +0200"], [9, 8, 8]),
    ],
)
def test_names_of_zones_are_offsets(parse, cells, hours):
    parsed, table = parse(b"n,t\n" + b"".join(b"1,%s\n" % cell for cell in cells))
    assert [time.hour for time in table.column("t").to_pylist()] == hours
    assert not any("UTC" in warning for warning in parsed.columns[1].warnings)


@pytest.mark.parametrize(
    ("cells", "years"),
    [(["Aug-62", "Oct-74", "x"], [2062, 1974, None]), (["1/13/68", "1/14/69"], [2068, 1969]), (["1/13/2062"], [2062])],
)
def test_years_of_two_digits_are_warned_about(parse, cells, years):
    cells, years = cells * 40, years * 40
    if None in years:
        cells, years = cells[:2] * 100 + ["x"], years[:2] * 100 + [None]
    parsed, table = parse(("n,d\n" + "".join(f"1,{cell}\n" for cell in cells)).encode())
    assert [day and day.year for day in table.column("d").to_pylist()] == years
    assert any("two digits" in warning for warning in parsed.columns[1].warnings) == (len(cells[0]) < 9)
