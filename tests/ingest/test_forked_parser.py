"""Processes that fork a child for each file: frozen ones are replaced, and the log has the last words of a dead one."""

import os
import signal
import threading

import pytest
from structlog.testing import capture_logs

from app.base.errors import InvalidData, NotReady
from app.ingest import model_file_parser
from app.ingest.model_file_parser import ModelFileParser


@pytest.fixture
def file(tmp_path):
    """A file that is read, and refused."""
    path = tmp_path / "model.json"
    path.write_text('{"learner": {}}')
    return path


@pytest.fixture
def parser():
    with ModelFileParser(1 << 30, patience_seconds=0.5) as made:
        yield made


def test_a_frozen_parser_of_model_files_is_replaced_and_the_file_is_read(parser, file):
    frozen = parser._process = model_file_parser._start()
    os.kill(frozen.process.pid, signal.SIGSTOP)
    with pytest.raises(InvalidData, match="not that of a model"):
        parser.parse(file, "xgboost")
    assert not frozen.alive


def test_a_model_file_that_only_frozen_processes_could_read_is_no_bad_file(parser, file, monkeypatch):
    start = model_file_parser._start

    def start_stopped():
        child = start()
        os.kill(child.process.pid, signal.SIGSTOP)
        return child

    monkeypatch.setattr(model_file_parser, "_start", start_stopped)
    with pytest.raises(NotReady):
        parser.parse(file, "xgboost")


def test_the_log_has_the_last_words_of_a_parser_that_died(parser, file):
    parser._process = model_file_parser._start()
    pid = parser._process.process.pid
    with pytest.raises(InvalidData, match="not that of a model"):
        parser.parse(file, "xgboost")
    os.kill(pid, signal.SIGSTOP)

    def crash():
        os.kill(pid, signal.SIGSEGV)
        os.kill(pid, signal.SIGCONT)

    threading.Timer(0.1, crash).start()
    with capture_logs() as lines, pytest.raises(InvalidData, match="crashed"):
        parser.parse(file, "xgboost")
    [line] = [line for line in lines if line["event"] == "parser_died"]
    assert line["returncode"] == -signal.SIGSEGV
    assert "Segmentation fault" in line["output"]
