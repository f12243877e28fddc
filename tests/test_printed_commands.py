"""Every command that the project prints is run by a test, or says in its source why it cannot be, and then is checked.

How a block of a page is held:

- ```` ```sh ```` and ```` ```python ```` are run in reading order on running servers, and ```` ```json ```` is compared
  with what the block before it printed, by `tests/test_guide.py`. All pages share one folder and one service;
- ```` ```console ```` is a session in a folder and with servers of its own, by `tests/test_printed_sessions.py` (slow):
  lines behind `$ ` are typed, others are what is printed, with `…` for the rest of a word. For what starts or
  stops servers, needs a database, or settings;
- a block that cannot be run has a comment on the line above, which no reader sees:
  `<!-- not run: needs a Docker engine -->`, or `<!-- run by: tests/test_readme.py::test_… -->`.

Code between backticks, in prose, messages, descriptions and comments, is not run but parsed: commands of `valiant` by
its own parser, requests by the OpenAPI document. So are blocks that are not run.
"""

import re

import pytest
import yaml

from tests.printed_commands import (
    FILES,
    PAGES,
    ROOT,
    VARIABLES,
    bare_commands,
    blocks,
    code_faults,
    named_commands,
    prose_code,
    script_faults,
)  # fmt: skip

LANGUAGES = {"sh", "python", "json", "console", "text", "yaml"}


def test_every_block_of_a_page_is_run_or_says_why_not():
    for page in PAGES:
        for block in blocks(page):
            where = f"{page.name}:{block.line}"
            assert block.language in LANGUAGES, where
            how, reason = block.mark or ("", "")
            if how == "run by":
                file, name = reason.split("::")
                assert f"def {name}(" in (ROOT / file).read_text(), where
            elif page.name == "README.md" and block.language != "text":
                assert how, where
            if how == "not run":
                assert len(reason.split()) > 2, where


def test_sessions_and_blocks_that_are_not_run_are_checked():
    for page in PAGES:
        for block in blocks(page):
            if block.language == "console" or (block.mark and block.language == "sh"):
                assert script_faults("\n".join(block.commands)) == [], f"{page.name}:{block.line}"


def test_configurations_can_be_read():
    configurations = [block.text for page in PAGES for block in blocks(page) if block.language == "yaml"]
    assert all(isinstance(yaml.safe_load(text), dict) for text in configurations)
    assert configurations


def test_commands_and_requests_in_prose_exist():
    faults = {(page.name, code): code_faults(code) for page in PAGES for code in prose_code(page)}
    assert {at: fault for at, fault in faults.items() if fault} == {}


def test_commands_and_requests_in_messages_and_comments_exist():
    faults = {(file.name, code): code_faults(code) for file in FILES for code in named_commands(file.read_text())}
    assert {at: fault for at, fault in faults.items() if fault} == {}
    assert len(faults) > 20


def test_commands_in_messages_and_comments_stand_between_backticks():
    assert [(file.name, bare) for file in FILES for bare in bare_commands(file.read_text())] == []


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("valiant modles", "invalid choice"),
        ("valiant keys create --role admin --label me", "--label"),
        ("valiant serve PATH --wach 3", "--wach"),
        ("docker compose run --rm apo keys create --role admin", "apo"),
        ("docker compose run --rm api keys create --role owner", "owner"),
        ("kubectl exec deploy/valiant-apo -- valiant health", "valiant-apo"),
        ("helm install valiant app/deployment/chort", "chort"),
        ("pip install 'valiant[import,onyx]'", "onyx"),
        ("python -m tests.benchmarks.choosing --gide", "--gide"),
        ("python -m tests.benchmarks.chosing", "chosing"),
        ("POST /v1/models/{model}/predikt", "predikt"),
        ("DELETE /v1/models/{model}/predict", "DELETE"),
        ("GET /v1/datasets?nome=", "nome"),
        ("/v1/nothing", "/v1/nothing"),
        ("curl -sS http://127.0.0.1:8000/v1/dataset", "/v1/dataset"),
        ("valiant.conect()", "conect"),
        ("m.dounload", "dounload"),
    ],
)
def test_a_misspelt_command_is_found(code, fault):
    (message,) = code_faults(code)
    assert fault in message


def test_every_variable_that_is_named_is_a_setting():
    for file in (*PAGES, *FILES):
        for name in re.findall(r"\bVALIANT_[A-Z_]*[A-Z]\b", file.read_text()):
            assert {name, name.removesuffix("_FILE")} & VARIABLES, (file.name, name)
