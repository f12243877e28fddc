"""One reading of a cell on every path: a body in any format, and the dataset of a job that was uploaded in any."""

import random
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pytest

from app.ml.tables.casting import kinds_wanted, recast_columns, recast_table
from app.ml.training.versions.table_evaluation import column_faults
from tests.services.predictions.readings import (
    REFUSED,
    by_arrow,
    by_csv,
    by_json,
    of_job,
    of_tensors,
    parquet_of,
    trained_on,
    uploaded,
    written,
)

# cases


GERMAN = written(["price", "y"], [[f"{n}.{100 + n},5{n}", 1000 * n] for n in range(1, 10)], ";")
PLAIN = written(["price", "y"], [[f"{n}.{100 + n}5", n] for n in range(1, 10)])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("cells", [["1.234", "2.500", "7.100"], ["1.234", "500"], ["-1.234", "12.500.000"], ["1.234"]])
@pytest.mark.parametrize("training", [GERMAN, PLAIN])
def test_a_job_reads_numbers_in_the_notation_of_its_model(training, cells, delimiter):
    model = trained_on(training)
    body = written(["price", "name"], [[cell, "a"] for cell in cells], delimiter)
    assert of_job(model, body) == by_csv(model, body) != REFUSED


def test_thousands_of_german_numbers_are_thousands_in_a_job():
    model = trained_on(GERMAN)
    body = written(["price", "name"], [["1.234", "a"], ["2.500", "b"]], ";")
    predictions = list(map(float, of_job(model, body)[0]))
    plain = by_json(model, {"rows": [{"price": 1234}, {"price": 2500}]})
    assert predictions == list(map(float, plain[0]))


def test_thousands_of_a_file_are_decimals_for_a_model_of_decimals():
    model = trained_on(PLAIN)
    body = written(["price", "other"], [["1.234", "0,5"], ["2.500", "1,25"]], ";")
    assert uploaded(body)[1].column("price").to_pylist() == [1234, 2500]
    assert of_job(model, body) == by_json(model, {"rows": [{"price": 1.234}, {"price": 2.5}]})


@pytest.mark.parametrize("cells", [["1.000", "2.500", "7"]])
def test_a_job_that_cannot_tell_thousands_from_units_is_refused_with_a_remedy(cells):
    model = trained_on(GERMAN)
    body = written(["price", "name"], [[cell, "a"] for cell in cells], ";")
    described, _ = uploaded(body)
    (fault,) = column_faults(model, None, described.columns, described.rows)
    assert fault.code == "ambiguous_notation"
    assert 'kinds={"price": "numeric:comma"}' in fault.detail
    assert of_job(model, body, kinds={"price": "numeric:comma"}) == by_csv(model, body)


def test_a_dataset_of_an_earlier_release_is_used_as_it_is():
    model = trained_on(GERMAN)
    described, table = uploaded(written(["price", "name"], [["1.234", "a"], ["2.500", "b"]], ";"))
    columns = [column._replace(other_notation=None, levels=()) for column in described.columns]
    assert not list(column_faults(model, None, columns, 2))
    used = recast_columns(columns, kinds_wanted(model, columns))
    assert recast_table(table, used).column("price").to_pylist() == [1.234, 2.5]


def test_a_model_of_a_typed_file_takes_numbers_as_the_dataset_has_them():
    model = trained_on(parquet_of(pa.table({"price": [1.5, 2.5, 3.5, 4.5], "y": [1.0, 2, 3, 4]})))
    body = written(["price", "other"], [["1.234", "0,5"], ["2.500", "1,25"]], ";")
    assert of_job(model, body) == by_json(model, {"rows": [{"price": 1234}, {"price": 2500}]})


DAYS = written(["day", "y"], [[f"{n:02}/03/2024", n] for n in range(1, 29)])


def test_a_job_reads_dates_in_the_order_of_its_model():
    model = trained_on(DAYS)
    body = written(["day", "other"], [["01/02/2024", "02/13/2024"], ["03/02/2024", "01/14/2024"]])
    assert [day.month for day in uploaded(body)[1].column("day").to_pylist()] == [1, 3]
    expected = by_json(model, {"rows": [{"day": "2024-02-01"}, {"day": "2024-02-03"}]})
    assert of_job(model, body) == expected == by_csv(model, body)


def test_the_truth_of_an_evaluation_is_read_in_the_notation_of_the_training():
    model = trained_on(written(["x", "y"], [[f"{n},5", f"{n}.500,5"] for n in range(1, 10)], ";"))
    described, table = uploaded(written(["x", "y"], [["1,5", "1.500"], ["2,25", "2.500"]], ";"))
    before = [column._replace(notation=None, other_notation=column.other_notation) for column in described.columns]
    used = recast_columns(before, kinds_wanted(model, before))
    assert recast_table(table, used).column("y").to_pylist() == [1500, 2500]


def test_numbers_beyond_floats_are_the_same_on_every_path():
    rows = [[str(9007199254740993 + 7 * n), n] for n in range(20)]
    model = trained_on(written(["uid", "y"], rows), features=["uid"])
    body = written(["uid"], [["9007199254740993"], ["9007199254740995"]])
    numbers = [9007199254740993, 9007199254740995]
    results = [
        by_csv(model, body),
        of_job(model, body),
        by_json(model, {"rows": [{"uid": number} for number in numbers]}),
        by_json(model, {"columns": ["uid"], "data": [[number] for number in numbers]}),
        by_arrow(model, pa.table({"uid": numbers})),
        of_tensors(model, [{"uid": number} for number in numbers]),
    ]
    assert results == [results[0]] * 6
    assert results[0] != REFUSED
    long = 2**63
    refusals = [
        by_csv(model, written(["uid"], [[long]])),
        of_job(model, written(["uid"], [[long]])),
        by_json(model, {"rows": [{"uid": long}]}),
        by_arrow(model, pa.table({"uid": pa.array([long], pa.uint64())})),
        of_job(model, parquet_of(pa.table({"uid": pa.array([long], pa.uint64())}))),
        of_tensors(model, [{"uid": long}]),
    ]
    assert refusals == [REFUSED] * 6


# drawn tables

BLANK = ["", " ", "  "]
NOTHING = [*BLANK, "NA", " n/a", "?", "nan", "null"]
STRAYS = ["8?", "inf", "-Infinity", "1.2.3.4", "12 34 5"]
WORDS = ["a", "b", "none", "NA", "x y", "Zoë", "5", "null"]
DATE_WORD = "2024-01-05"
UNSEEN = ["c", "nan", "007", "1.50", "TRUE", DATE_WORD, "?", "6", "-"]
DAYS_SHOWN = {"YMD": "%Y-%m-%d", "DMY": "%d.%m.%Y", "MDY": "%m/%d/%Y"}


class Style(NamedTuple):
    """A way of writing a table."""

    delimiter: str
    decimal: str
    separator: str
    dates: str
    header: bool = True
    options: dict[str, Any] = {}
    typed: bool = False


STYLES = {
    "plain": Style(",", ".", "", "YMD"),
    "german": Style(";", ",", ".", "DMY"),
    "american": Style("\t", ".", ",", "MDY", options={"missing": ["-999", "x"]}),
    "french": Style(";", ",", " ", "DMY"),
    "headerless": Style(",", ".", "", "YMD", header=False),
    "typed": Style(",", ".", "", "YMD", typed=True),
}
NAMES = ["amount", "count", "plan", "store", "open", "day"]
"""Columns of numbers with fractions, whole numbers, words, numbers that are categories, truth values and dates."""


def number_text(style, number, digits, rng):
    text = f"{number:{',' if style.separator and rng.random() < 0.6 else ''}.{digits}f}"
    whole, _, fraction = text.partition(".")
    return whole.replace(",", style.separator) + (style.decimal + fraction) * bool(fraction)


def draw_cell(name, style, rng):
    """The text of a cell in a file, and its value in formats with types."""
    if name == "amount":
        digits = rng.choice([0, 1, 2, 3, 3])
        number = round(rng.uniform(-5000, 5000), digits)
        return number_text(style, number, digits, rng), int(number) if not digits and rng.random() < 0.5 else number
    if name == "count":
        number = rng.choice([rng.randrange(-50, 50), rng.randrange(10**6), 2**53 + rng.randrange(100)])
        return number_text(style, number, 0, rng), number
    if name == "plan":
        word = rng.choice(WORDS if rng.random() < 0.8 else UNSEEN)
        padded = rng.choice(["", "", " "]) + word + rng.choice(["", "", " "])
        return padded, None if word in style.options.get("missing", ()) else padded
    if name == "store":
        number = rng.choice([1, 2, 3, 4, 9])
        return str(number), number
    if name == "open":
        truth = rng.random() < 0.5
        return rng.choice([str(truth), str(truth).lower()]), truth
    day = datetime(2024, rng.randrange(1, 13), rng.randrange(1, 29), tzinfo=UTC)
    return day.strftime(DAYS_SHOWN[style.dates]), day


def draw_column(name, style, rows, rng, *, lacking=0.0, astray=0.0):
    """Texts and values of a column."""
    cells = [draw_cell(name, style, rng) for _ in range(rows)]
    words = name == "plan"
    for row in range(rows):
        if rng.random() < lacking:
            nothing = BLANK if words else [*NOTHING, *style.options.get("missing", ())]
            cells[row] = rng.choice(nothing), None
        elif not words and rng.random() < astray:
            cells[row] = rng.choice(STRAYS), None
    return list(zip(*cells, strict=True))


@cache
def model_of(style_name, algorithm):
    rng, style = random.Random(7), STYLES[style_name]
    lacking = {"amount": 0.0, "count": 0.1, "plan": 0.0, "store": 0.1, "open": 0.1, "day": 0.0}
    drawn = {name: draw_column(name, style, 60, rng, lacking=lacking[name]) for name in NAMES}
    truth = [f"{n}" for n in range(60)]
    names = NAMES if style.header else [f"column_{n}" for n in range(1, 7)]
    target = "y" if style.header else "column_7"
    kinds = {names[3]: "categorical"}
    if style.typed:
        columns = {name: pa.array(cleaned(values)) for name, (_, values) in drawn.items()}
        data = parquet_of(pa.table(columns | {"y": list(map(float, truth))}))
    else:
        rows = zip(*(texts for texts, _ in drawn.values()), truth, strict=True)
        data = written([*NAMES, "y"] if style.header else None, rows, style.delimiter)
    more = {"target": target, "kinds": kinds, "features": names}
    return trained_on(data, algorithm, options=style.options, **more)


def cleaned(values):
    return [value.strip() if isinstance(value, str) else value for value in values]


def in_json(value):
    return value.isoformat() if isinstance(value, datetime) else value


def draw_body(names, texts, style, rng):
    """The rows as CSV, in some dialect."""
    delimiter = rng.choice([style.delimiter, style.delimiter, "|"])
    order = list(range(len(names)))
    if style.header and rng.random() < 0.3:
        rng.shuffle(order)
    rows = [[column[row] for column in texts] for row in range(len(texts[0]))]
    header = [names[place] for place in order] if style.header else None
    body = written(header, [[row[place] for place in order] for row in rows], delimiter)
    if rng.random() < 0.2:
        body = body.replace(b"\n", b"\r\n")
    return b"\xef\xbb\xbf" + body if rng.random() < 0.1 else body


def outcomes_of_drawn_table(seed):
    """The outcome of one drawn table on every path; a typed file is uploaded of every other table."""
    rng = random.Random(seed)
    style_name = rng.choice(list(STYLES))
    style, model = STYLES[style_name], model_of(style_name, rng.choice(["ridge", "decision_tree"]))
    rows, names = rng.choice([1, 2, 3, 8, 30]), [column.name for column in model.inputs]
    drawn = [
        draw_column(name, style, rows, rng, lacking=rng.choice([0, 0.1, 0.5, 1]), astray=rng.choice([0, 0, 0.05, 0.3]))
        for name in NAMES
    ]
    texts, values = [column[0] for column in drawn], [column[1] for column in drawn]
    body = draw_body(names, texts, style, rng)
    records = [dict(zip(names, map(in_json, row), strict=True)) for row in zip(*values, strict=True)]
    types = [pa.float64(), pa.int64(), pa.string(), pa.int64(), pa.bool_(), pa.timestamp("us", "UTC")]
    arrays = [pa.array(column, kind) for column, kind in zip(values, types, strict=True)]
    table = pa.table(arrays, names=names)
    files = {
        "parquet": lambda: of_job(model, parquet_of(table)),
        "lines": lambda: of_job(model, b"\n".join(map(orjson.dumps, records))),
    }
    uploads = rng.choice([["parquet"], ["lines"], [], []])
    if {str(word).strip() for word in values[2]} <= {"None", DATE_WORD}:
        uploads = []  # JSON of dates alone has no texts: a job with a model of words is refused, with a remedy
    options = {"kinds": {}} if style.header else {"header": "absent"}
    return {
        "csv": by_csv(model, body),
        "job": of_job(model, body, **options),
        "rows": by_json(model, {"rows": records}),
        "columns": by_json(model, {"columns": names, "data": [list(record.values()) for record in records]}),
        "arrow": by_arrow(model, table),
        "tensors": of_tensors(model, records),
    } | {name: files[name]() for name in uploads}


def disagreements(seeds):
    """By seed, the outcomes of tables that are not the same on every path."""
    results = ((seed, outcomes_of_drawn_table(seed)) for seed in seeds)
    return {seed: result for seed, result in results if any(other != result["rows"] for other in result.values())}


def test_drawn_tables_have_one_outcome_on_every_path():
    assert disagreements(range(30)) == {}


@pytest.mark.slow
def test_many_drawn_tables_have_one_outcome_on_every_path():
    assert disagreements(range(30, 2030)) == {}
