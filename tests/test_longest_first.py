"""The longest files of tests begin first, the others by their number of tests, and each stays together."""

from types import SimpleNamespace

from tests.longest_first import LONGEST, ROOT, pytest_collection_modifyitems


def test_every_long_file_exists():
    assert [name for name in LONGEST if not (ROOT / name).is_file()] == []


def test_long_files_come_first_and_then_the_files_of_most_tests():
    names = ["a.py", "a.py", "b.py", "b.py", "b.py", LONGEST[1], LONGEST[0], "c.py", "c.py"]
    items = [SimpleNamespace(path=ROOT / name) for name in names]
    pytest_collection_modifyitems(items)
    found = [item.path.relative_to(ROOT).as_posix() for item in items]
    assert found == [LONGEST[0], LONGEST[1], "b.py", "b.py", "b.py", "a.py", "a.py", "c.py", "c.py"]
