"""CSV files that are read in one pass, and what makes them take another."""

import random

import pytest

from app.base.errors import InvalidData
from app.ingest import csv_reader, csv_single_pass, parsing_child

ROWS = 60
CELLS = {
    "whole": lambda rng: str(rng.randrange(-50, 5000)),
    "few": lambda rng: str(rng.randrange(3)),
    "fraction": lambda rng: f"{rng.gauss(0, 100):.3f}",
    "long": lambda rng: repr(rng.gauss(0, 1e20)),
    "german": lambda rng: f"{rng.randrange(1, 999)}.{rng.randrange(100, 999)},{rng.randrange(10, 99)}",
    "grouped": lambda rng: f"{rng.randrange(1, 99)}.{rng.randrange(100, 999)}",
    "comma": lambda rng: f"{rng.randrange(99)},{rng.randrange(99)}",
    "code": lambda rng: f"{rng.randrange(999):05}",
    "percent": lambda rng: f"{rng.randrange(99)}.{rng.randrange(9)} %",
    "euros": lambda rng: f"€ {rng.randrange(9999)}.50",
    "word": lambda rng: rng.choice(["red", "green", "blue", " padded ", "NA"]),
    "truth": lambda rng: rng.choice(["true", "False"]),
    "iso": lambda rng: f"20{rng.randrange(10, 30)}-0{rng.randrange(1, 9)}-1{rng.randrange(9)}",
    "clock": lambda rng: f"2024-01-1{rng.randrange(9)}T0{rng.randrange(9)}:30:00Z",
    "day_first": lambda rng: f"{rng.randrange(1, 28)}/{rng.randrange(1, 12)}/2024",
    "named": lambda rng: f"{rng.randrange(1, 28)} März 2024",
    "nothing": lambda _: "",
}
STRAYS = ["", "NA", "n/a", "-", "?", "1.5", "007", "+3", "0x1F", "inf", "nan", "word", "1,5", "99999999999999999999"]


def drawn(seed):
    """A file, most of it of one kind in each column, some with other cells at the end or anywhere."""
    rng = random.Random(seed)
    delimiter = rng.choice(",,;")
    columns = []
    for kind in rng.choices([*CELLS], k=rng.randrange(1, 5)):
        cells = [CELLS[kind](rng) for _ in range(ROWS)]
        if rng.random() < 0.2:
            for _ in range(rng.randrange(1, 8)):
                cells[rng.randrange(ROWS)] = rng.choice(STRAYS)
        if rng.random() < 0.1:
            cells[rng.randrange(ROWS // 2, ROWS) :] = [CELLS[rng.choice([*CELLS])](rng) for _ in range(ROWS)]
        columns.append([f'"{cell}"' if delimiter in cell or rng.random() < 0.01 else cell for cell in cells[:ROWS]])
    names = [f"c{number}" if rng.random() < 0.97 else "" for number in range(len(columns))]
    lines = [delimiter.join(row) for row in zip(*columns, strict=False)]
    if rng.random() < 0.05:
        lines[rng.randrange(len(lines))] += delimiter + "more"
    return "\n".join([delimiter.join(names), *lines]).encode()


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows, of which the first ones decide."""
    monkeypatch.setattr(csv_reader, "BLOCK", 400)
    monkeypatch.setattr(csv_reader, "COLUMN_BYTES", 1)
    monkeypatch.setattr(csv_single_pass, "SAMPLED_BYTES", 400)


@pytest.fixture
def outcome(parse):
    def run(data):
        try:
            parsed, table = parse(data)
        except InvalidData as refused:
            return refused.detail, refused.faults
        return parsed.model_dump(exclude={"chunks"}), table.to_pydict()

    return run


@pytest.mark.usefixtures("small_blocks")
def test_one_pass_and_two_read_the_same_table(outcome, monkeypatch):
    confirm, confirmed = csv_single_pass.SinglePass._confirm, []

    def counted(single, rows):
        confirm(single, rows)
        confirmed.append(rows)

    monkeypatch.setattr(csv_single_pass.SinglePass, "_confirm", counted)
    files = [drawn(seed) for seed in range(40)]
    quick = [outcome(data) for data in files]
    monkeypatch.setattr(parsing_child, "QUICK_READERS", {})
    for seed, (data, read) in enumerate(zip(files, quick, strict=True)):
        assert read == outcome(data), (seed, data.decode())
    assert 8 < len(confirmed) < 36  # both ways were taken


@pytest.mark.usefixtures("small_blocks")
def test_a_column_that_changes_behind_the_first_rows_is_read_anew(parse):
    parsed, table = parse(b"n,m\n" + b"1,2\n" * 2000 + b"1.5,x\n")
    assert table.column("n").to_pylist()[-2:] == [1.0, 1.5]
    assert "line 2002" in str(parsed.columns[1].warnings)


def test_a_plain_file_is_passed_over_once(parse, monkeypatch):
    opened, batches = [], csv_reader._batches
    monkeypatch.setattr(csv_reader, "_batches", lambda *given: opened.append(1) or batches(*given))
    _, table = parse(
        b"day,price\n" + b"".join(b"%d.5.2024,%d,5\n" % (1 + n % 28, n) for n in range(9)).replace(b",5\n", b"\n")
    )
    assert len(table) == 9
    assert len(opened) == 1
