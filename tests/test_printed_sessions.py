"""Sessions that the guide shows: what is typed works in an empty folder, and prints what the page says."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from app.processes import ports
from tests.printed_commands import PAGES, ROOT, blocks

pytestmark = pytest.mark.slow

SHOWN = "127.0.0.1:8000"
"""Where the pages find the service."""
SESSIONS = {
    page.stem: [block for block in blocks(page) if block.language == "console" and block.mark is None] for page in PAGES
}
COPIED = ("app", "workers", "migrations", "pyproject.toml", "README.md", "LICENSE")
SERVERS = {"up", "demo", "serve"}
DATE = re.compile(r"\d{4}-\d\d-\d\d")
END_OF_COMMAND = "-- end of command"
SESSION_SECONDS = 1800
"""Time for all commands of a page: those of the quick start install the project."""
READY_SECONDS = 300
"""Time for a first start, which compiles, on a machine that is busy."""


class Terminal:
    """A shell in a folder, whose servers listen at a port of their own; what it prints is kept."""

    def __init__(self, folder):
        with ports.listen("127.0.0.1", 0) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        home = {"VALIANT_PORT": self.address.partition(":")[2], "VALIANT_URL": f"http://{self.address}"}
        self.shell = subprocess.Popen(
            ["bash"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=os.environ | home | {"PATH": path, "XDG_CONFIG_HOME": str(folder), "COLUMNS": "200"}, bufsize=1,
        )  # fmt: skip
        self.words, self.serving = {}, False
        self.watchdog = threading.Timer(SESSION_SECONDS, self.shell.kill)
        self.watchdog.start()

    def type(self, command):
        """Run a command, with the words that stand for what was printed before, and return its lines."""
        for shown, word in self.words.items():
            command = command.replace(shown, word)
        command = command.replace(SHOWN, self.address).replace("0.0.0.0", "127.0.0.1")
        *before, last = command.split(" && ")
        if not _is_server(last):
            return self.run(command)
        for part in before:
            self.run(part)
        self.stop_server()
        self.run(f"{last} &")
        self.serving = True
        return self.wait_for_server(announces_itself="valiant serve" not in last)

    def run(self, command, *, code=0):
        """The lines that are printed until the command has ended."""
        self.shell.stdin.write(f"{command}\nprintf '\\n{END_OF_COMMAND} %s\\n' $?\n")
        lines = []
        while not (line := self.shell.stdout.readline()).startswith(END_OF_COMMAND):
            assert line, (command, lines)
            lines.append(line.rstrip("\n"))
        assert int(line.split()[-1]) == code, (command, lines)
        return lines

    def wait_for_server(self, *, announces_itself):
        """The lines that it prints until it is ready: `up` and `demo` then name what stops them."""
        end, lines = time.monotonic() + READY_SECONDS, []
        while not (any("Ctrl-C" in line for line in lines) if announces_itself else self._is_ready()):
            lines += self.run("sleep 0.2; kill -0 $!")
            assert time.monotonic() < end, lines
        return lines

    def _is_ready(self):
        try:
            return httpx.get(f"http://{self.address}/readyz", timeout=5, trust_env=False).is_success
        except httpx.TransportError:
            return False

    def stop_server(self):
        if self.serving:
            self.serving = False
            self.run("kill $! && wait $!")

    def expect(self, shown, lines):
        """Each line of the page is among those printed, in order; a word with `…` stands for the one in its place."""
        rest = iter(lines)
        for line in shown:
            assert any(self._is_shown(line.split(), printed.split()) for printed in rest), (line, lines)

    def _is_shown(self, shown, printed):
        if len(shown) != len(printed):
            return False
        pairs = list(zip(shown, printed, strict=True))
        if not all("…" in a or DATE.sub("date", a) == DATE.sub("date", b) for a, b in pairs):
            return False
        self.words |= {a: b for a, b in pairs if "…" in a}
        return True

    def close(self):
        """The servers end with the shell's own children, and without an error."""
        try:
            self.stop_server()
        finally:
            self.watchdog.cancel()
            self.shell.stdin.close()
            self.shell.wait(60)


def _is_server(command):
    words = [word for word in shlex.split(command) if not re.match("[A-Z_]+=", word)]
    return len(words) > 1 and Path(words[0]).name == "valiant" and words[1] in SERVERS


def _typed(block):
    """Commands of a session with the lines that they print; without `$ `, each line is a command."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if not block.text.startswith("$ "):
        return [(line, []) for line in lines]
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    ends = [*starts[1:], len(lines)]
    return [(lines[a].removeprefix("$ "), lines[a + 1 : b]) for a, b in zip(starts, ends, strict=True)]


@pytest.fixture(scope="module")
def project_folder(tmp_path_factory):
    """What a person who has the project sees, before anything is installed."""
    folder = tmp_path_factory.mktemp("project")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder)
    return folder


@pytest.fixture
def terminal(request, tmp_path_factory):
    """`terminal(folder)`: a shell there."""

    def start(folder):
        made = Terminal(folder)
        request.addfinalizer(made.close)
        return made

    return start


def save_model_of_another_library(folder):
    """What the page on folders begins with: a classifier of two columns, whose second class is that of large values."""
    import lightgbm
    import numpy as np

    x = np.column_stack([np.arange(100), np.arange(100) % 3])
    options = {"objective": "binary", "num_threads": 1, "verbose": -1}
    folder.mkdir(parents=True)
    lightgbm.train(options, lightgbm.Dataset(x, x[:, 0] > 60), 5).save_model(folder / "model.txt")


@pytest.mark.parametrize("page", [name for name, sessions in SESSIONS.items() if sessions])
def test_a_session_of_a_page_prints_what_the_page_shows(page, terminal, project_folder, tmp_path):
    folder = project_folder if page == "quick-start" else tmp_path
    if page == "serve":
        save_model_of_another_library(folder / "models" / "fraud" / "1")
    shell = terminal(folder)
    for block in SESSIONS[page]:
        for command, shown in _typed(block):
            shell.expect(shown, shell.type(command))


def test_the_first_command_of_the_readme_works_in_an_empty_folder(terminal, project_folder):
    command = next(block for block in blocks(ROOT / "README.md") if block.language == "sh").text.strip()
    lines = terminal(project_folder).type(command)
    assert sum(line.startswith("curl ") for line in lines) > 4
