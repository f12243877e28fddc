"""Uploads of projects take turns at the parsers."""

import threading
from uuid import UUID

import pytest

from app.base.errors import Overloaded
from app.ingest import parsing_turns
from app.ingest.parsing_turns import Turns

FIRST, SECOND, THIRD = (UUID(int=number) for number in (1, 2, 3))


class Uploads:
    """Uploads in threads, each parsed until it is ended."""

    def __init__(self, at_once):
        self.turns, self.begun, self.ends = Turns(at_once), [], {}
        self.changed = threading.Condition()

    def add(self, name, project):
        self.ends[name] = threading.Event()
        threading.Thread(target=self._run, args=(name, project), daemon=True).start()
        self.wait(lambda: name in self.begun or self._is_waiting(project))

    def _is_waiting(self, project):
        return any(upload.project == project for upload in self.turns._waiting)

    def _run(self, name, project):
        with self.turns.turn(project):
            with self.changed:
                self.begun.append(name)
                self.changed.notify_all()
            self.ends[name].wait()

    def wait(self, holds):
        with self.changed:
            while not self.changed.wait_for(holds, 0.01):
                pass

    def end(self, name, count):
        self.ends[name].set()
        self.wait(lambda: len(self.begun) == count)


def test_one_project_alone_has_all_turns():
    uploads = Uploads(2)
    for name in "abc":
        uploads.add(name, FIRST)
    assert uploads.begun == ["a", "b"]
    uploads.end("a", 3)


def test_another_project_begins_at_once_and_takes_turns_then():
    uploads = Uploads(2)
    for name in "abcd":
        uploads.add(name, FIRST)
    uploads.add("e", SECOND)
    assert uploads.begun == ["a", "b", "e"]
    uploads.add("f", THIRD)
    assert uploads.begun == ["a", "b", "e"]
    uploads.end("a", 4)
    assert uploads.begun[3] == "f"
    uploads.add("g", SECOND)
    for name, count in (("b", 4), ("f", 5), ("e", 6)):
        uploads.end(name, count)
    assert set(uploads.begun[4:]) <= {"c", "d", "g"}
    assert "g" in uploads.begun[4:6]


def test_uploads_of_a_project_that_wait_are_limited(monkeypatch):
    monkeypatch.setattr(parsing_turns, "MAX_WAITING_UPLOADS", 1)
    uploads = Uploads(1)
    uploads.add("a", FIRST)
    uploads.add("b", FIRST)
    with pytest.raises(Overloaded), uploads.turns.turn(FIRST):
        pass
    uploads.add("c", SECOND)
    assert uploads.begun == ["a", "c"]
