"""Training rows are recognised in any dataset, new rows are not, and the hashes survive storage."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import CorruptModel
from app.ml.models.seen_rows import SeenRows, decode, encode, recognise
from app.ml.preparation.row_hashes import row_hashes

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)
rows_of_tables = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["a", "b", None])), min_size=1, max_size=30)


def table_of(rows):
    numbers, words = zip(*rows, strict=True)
    return pa.table({"x": np.array(numbers, float), "word": pa.array(words, pa.string())})


def seen(rows, digest="sha256:other"):
    return SeenRows.of(row_hashes(table_of(rows), ["x"], "word"), digest, ["x"], "word")


@QUICK
@given(rows_of_tables, rows_of_tables)
def test_exactly_the_rows_learned_from_are_recognised(learned, others):
    (part,) = decode(encode([seen(learned)]))
    found = recognise([part], table_of(others), "word", "sha256:this")
    assert (found.seen | found.common).tolist() == [row in learned for row in others]
    own = recognise([seen(learned, "sha256:this")], table_of(others), "word", "sha256:this")
    assert own.seen.tolist() == [row in learned for row in others], "of the training's own dataset chance explains none"


@QUICK
@given(rows_of_tables)
def test_the_same_rows_in_any_order_are_the_same_bytes(rows):
    assert encode([seen(rows)]) == encode([seen(rows[::-1])]) == encode([seen(rows), seen(rows)])


def test_eight_bytes_a_row():
    part = SeenRows.of(np.random.default_rng(0).integers(0, 2**64, 100_000, np.uint64), "sha256:own", ["x"], "y")
    assert len(encode([part])) < 8 * 100_000 + 1000


def test_new_rows_from_the_same_source_are_seldom_taken_for_training_rows():
    """Columns of few values, dependent on each other: more rows are equal than independence lets expect."""
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        cells = rng.geometric(0.01, 1500)  # some of many combinations are common
        rows = [(int(cell), "ab"[cell % 2]) for cell in cells]
        wrong += recognise([seen(rows[:1000])], table_of(rows[1000:]), "word", "sha256:this").seen.any()
    assert wrong <= 4


def test_copies_among_new_rows_are_recognised():
    rng = np.random.default_rng(0)
    rows = [(int(cell), "a") for cell in rng.geometric(0.001, 2000)]
    found = recognise([seen(rows[:1000])], table_of(rows[900:]), "word", "sha256:this")
    assert found.seen[:100].all()


def test_nothing_is_known_of_what_was_not_stored(monkeypatch):
    assert decode(b"") is None
    monkeypatch.setattr("app.ml.models.seen_rows.MAX_HASHED_ROWS", 2)
    assert encode([seen([(1, "a"), (2, "a"), (3, "a")])]) == b""


@pytest.mark.parametrize("damage", ["cut", "format", "fields"])
def test_damaged_hashes_are_refused(damage):
    content = encode([seen([(1, "a")])])
    changed = {
        "cut": content[:-4],
        "format": content.replace(b'\\"format\\":1', b'\\"format\\":9'),
        "fields": content.replace(b"single", b"simple"),
    }[damage]
    assert changed != content
    with pytest.raises(CorruptModel):
        decode(changed)
