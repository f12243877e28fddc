"""The demo from start to end, and the commands that it prints, run as printed."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from app.commands.demo import EXAMPLES

ROOT = Path(__file__).parents[2]


def demo(folder, *arguments):
    command = [sys.executable, "-P", "-m", "app.cli", "demo", "--data", str(folder), "--port", "0", *arguments]
    plain = os.environ | {"COLUMNS": "100", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    return subprocess.Popen(command, env=plain, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What a serving demo has printed; it serves until the tests of this module are done."""
    process = demo(tmp_path_factory.mktemp("demo") / "var")
    lines = []
    while (line := process.stdout.readline()) and "Ctrl-C" not in line:
        lines.append(line)
    yield "".join(lines)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 0
    assert psutil.wait_procs(family, timeout=15)[1] == []


def curl(line, address):
    """What curl would do with such a line: the decoded response."""
    words = iter(shlex.split(line)[1:])
    headers, body, url = {}, None, ""
    for word in words:
        if word == "-H":
            name, value = next(words).split(": ", 1)
            headers[name] = value
        elif word == "-d":
            body = next(words).encode()
        elif word == "--data-binary":
            body = (ROOT / next(words).removeprefix("@")).read_bytes()
        elif word != "-sS":
            url = urlsplit(word)._replace(scheme="http", netloc=urlsplit(address).netloc).geturl()
    response = httpx.request("GET" if body is None else "POST", url, headers=headers, content=body)
    assert response.is_success, response.text
    return response.json()


def address_in(shown):
    return re.search(r"(http://\S+)/docs", shown).group(1)


@pytest.mark.slow
def test_shows_training_metrics_and_predictions(shown):
    assert shown.count("trained") == len(EXAMPLES)
    assert shown.count("100%") == len(EXAMPLES)
    for metric in ("accuracy", "log_loss", "rmse", "r2"):
        assert re.search(rf"{metric}\W.*\d … ", shown), metric
    assert "P(setosa)" in shown
    assert "true progression" in shown


@pytest.mark.slow
def test_its_curl_lines_run_as_printed(shown):
    lines = [line for line in shown.splitlines() if line.startswith("curl ")]
    assert len(lines) == 4 * len(EXAMPLES)
    for example, start in zip(EXAMPLES, range(0, len(lines), 4), strict=True):
        upload, train, job, predict = lines[start : start + 4]
        assert curl(upload, address_in(shown))["rows"] > 100
        assert curl(train, address_in(shown))["state"] == "queued"
        assert curl(job, address_in(shown))["state"] == "succeeded"
        assert curl(predict, address_in(shown))["model"] == example.model


@pytest.mark.slow
def test_it_serves_its_documentation(shown):
    response = httpx.get(f"{address_in(shown)}/docs")
    assert response.is_success
    assert "html" in response.headers["content-type"]


@pytest.mark.slow
def test_once_ends_by_itself(tmp_path):
    process = demo(tmp_path / "var", "--once")
    messages = process.communicate()[0]
    assert process.returncode == 0, messages
    assert "/docs" in messages
