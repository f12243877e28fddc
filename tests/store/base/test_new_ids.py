import time

from app.store.base.new_ids import uuid7


def test_version_variant_and_time():
    before = time.time_ns() // 1_000_000
    made = uuid7()
    after = time.time_ns() // 1_000_000
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    assert before <= made.int >> 80 <= after


def test_later_ids_sort_later():
    first = uuid7()
    while time.time_ns() // 1_000_000 == first.int >> 80:
        pass
    assert first < uuid7()


def test_ids_of_one_moment_differ():
    assert len({uuid7() for _ in range(10_000)}) == 10_000
