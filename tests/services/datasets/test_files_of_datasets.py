"""Every file of a dataset is read again as the same table: drawn tables, in each format."""

import random

import pytest

from app.formats.table_files import FILES
from app.formats.table_files import written as parts_of
from tests.services.predictions.readings import by_csv, trained_on, uploaded, written

CELLS = {
    "whole": lambda rng: str(rng.randrange(-1000, 10**6)),
    "long": lambda rng: str(rng.randrange(2**53, 2**62)),
    "longest": lambda rng: str(rng.randrange(2**64, 2**70)),
    "float": lambda rng: repr(rng.uniform(-1, 1) * 10 ** rng.randrange(-8, 8)),
    "thousands": lambda rng: f"{rng.randrange(1, 999)}.{rng.randrange(1000):03}",
    "grouped": lambda rng: f"{rng.randrange(10**7):,}.5",
    "percent": lambda rng: f"{rng.randrange(100)} %",
    "code": lambda rng: f"{rng.randrange(1000):05}",
    "truth": lambda rng: rng.choice(["true", "False", "TRUE"]),
    "day": lambda rng: f"{rng.randrange(1, 29):02}.{rng.randrange(1, 13):02}.2024",
    "time": lambda rng: f"2024-03-{rng.randrange(1, 29):02} 12:{rng.randrange(60):02}:30.25",
    "word": lambda rng: rng.choice(["a", "b c", "NA", "none", "", "null", "5", "1.5", "é", "=1+1", "#x", "a;b", "a|b"]),
    "text": lambda rng: rng.choice(['the "old" one', "two\nlines", "a, b", " padded ", "'", "\\", "x\ty", "tail\\"]),
    "sparse": lambda rng: rng.choice(["", "", "NA", "7"]),
    "nothing": lambda rng: rng.choice(["", "NA"]),
    "mixed": lambda rng: rng.choice(["1", "2.5", "x", "2024-01-01", "true"]),
}
NAMES = ["a", "b", "Preis (€)", "x,y", 'the "name"', "two\nlines", "2020", "NA", "id", "value_1", "ü", "tab\there"]


def drawn_file(seed):
    """A CSV file of drawn columns."""
    rng = random.Random(seed)
    kinds = [rng.choice(list(CELLS)) for _ in range(rng.choice([1, 2, 3, 6]))]
    names = rng.sample(NAMES, len(kinds))
    lacking = rng.choice([0, 0, 0.2])
    rows = [
        ["" if rng.random() < lacking else CELLS[kind](rng) for kind in kinds]
        for _ in range(rng.choice([2, 3, 10, 40]))
    ]
    return written(names, rows, rng.choice(",;\t") if len(names) > 1 else ",")


def differences(seeds):
    """By seed and format, tables that are not the same after they were written and read again."""
    different = {}
    for seed in seeds:
        described, table = uploaded(drawn_file(seed))
        for media_type, file in FILES.items():
            described_again, table_again = uploaded(b"".join(parts_of([table], file)))
            kinds = [(column.name, column.kind) for column in described.columns]
            kinds_again = [(column.name, column.kind) for column in described_again.columns]
            if kinds_again != kinds or not table_again.equals(table):
                different[seed, media_type] = kinds, kinds_again, table.to_pydict(), table_again.to_pydict()
    return different


def test_files_of_drawn_datasets_are_read_again_as_the_same_tables():
    assert differences(range(5)) == {}


@pytest.mark.slow
def test_many_files_of_drawn_datasets_are_read_again_as_the_same_tables():
    assert differences(range(5, 205)) == {}


def test_a_file_of_a_dataset_is_a_body_of_predictions():
    data = written(["x, in mm", 'the "kind"', "y"], [[n + 0.5, "a" if n % 2 else "NA", n] for n in range(20)])
    model, (_, table) = trained_on(data), uploaded(data)
    body = b"".join(parts_of([table], FILES["text/csv"]))
    assert body.startswith(b'"')
    assert by_csv(model, body) == by_csv(model, data)
