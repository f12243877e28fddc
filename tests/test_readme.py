"""README and guide say what is so. Their generated tables are rewritten when they are stale, and that run fails."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.base.settings import Settings
from app.ml.models.cluster_description import described

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
TEXT = README.read_text()
COMMANDS = re.findall(r"```sh\n(.*?)```", TEXT, flags=re.DOTALL)
GUIDE = ROOT / "app" / "docs"
LONGEST = 150
"""Lines of the README."""


def test_is_short():
    assert len(TEXT.splitlines()) <= LONGEST


def algorithms():
    from app.ml.catalogue.algorithm_files import catalogue

    yield "| algorithm | tasks | what | when |"
    yield "|---|---|---|---|"
    for entry in catalogue().values():
        tasks = ", ".join(sorted(entry.algorithm.tasks))
        page = f"[`{entry.name}`](../ml/algorithms/{entry.name}.py)"
        yield f"| {page} | {tasks} | {_cell(entry.title)} | {_cell(entry.use_when)} |"


def algorithms_by_task():
    from app.ml.catalogue.algorithm_files import catalogue
    from app.ml.contract.task import Task

    yield "| task | algorithms |"
    yield "|---|---|"
    for task in Task:
        names = [entry.name for entry in catalogue().values() if task in entry.algorithm.tasks]
        yield f"| {task} | {', '.join(f'`{name}`' for name in names)} |"


RIVALS = "Valiant, JSON", "MLServer, default", "FastAPI + joblib, by hand"
LOADS = {"logistic": ("1 by 64", "100 by 16"), "forest": ("1 by 64",)}
"""Loads of the README, rows by connections, of those on the page of measurements."""


def rivals():
    page = (GUIDE / "performance.md").read_text()
    yield "| model: rows by connections | " + " | ".join(RIVALS) + " |"
    yield "|---|" + "---|" * len(RIVALS)
    for model, loads in LOADS.items():
        heads, _, *rows = (
            [cell.strip() for cell in line.strip("| ").split(" | ")]
            for line in re.search(rf"^\| {model}: .*?(?=\n\n)", page, re.MULTILINE | re.DOTALL)[0].splitlines()
        )
        rates = {row[0]: dict(zip(heads, row, strict=True)) for row in rows}
        for load in loads:
            yield (
                f"| {model}: {load} | " + " | ".join(rates[rival][load].partition(" · ")[0] for rival in RIVALS) + " |"
            )


def settings():
    yield "| variable | default | |"
    yield "|---|---|---|"
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else f"`{field.default}`"
        yield f"| `VALIANT_{name.upper()}` | {default} | {_cell(field.description or '')} |"


def errors():
    from app.base.errors import ValiantError
    from app.main import create_app

    create_app(Settings())  # imports every file that defines one
    kinds = [ValiantError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    own = [kind for kind in kinds if kind.__module__.startswith("app.") and "Never seen by" not in (kind.__doc__ or "")]
    yield "| code | status | meaning | what to do |"
    yield "|---|---|---|---|"
    for _, _, kind in sorted({kind.code: (kind.status, kind.code, kind) for kind in reversed(own)}.values()):
        yield f"| `{kind.code}` | {kind.status} | {_cell(kind.title)} | {_cell(kind.remedy)} |"


def queries():
    from app.base.errors import NotOffered
    from app.ml.catalogue.algorithm_files import catalogue
    from app.ml.kinds.query import any_model
    from app.ml.operations import query_entries

    yield "| query | result | offered by |"
    yield "|---|---|---|"
    for name, entry in query_entries().items():
        query, algorithms = entry.query, list[str]()
        if query.refusal is NotOffered and query.offered is not any_model:
            algorithms = [one.name for one in catalogue().values() if query.offered(_fitted(one.algorithm))]
        path = query.path or f"/v1/models/{{model}}/{name}"
        offered = ", ".join(f"`{one}`" for one in algorithms) or f"models that do not return `{query.refusal.code}`"
        if query.offered is any_model:
            offered = "no model needed" if query.path else "every model"
        what = entry.description.split("\n\n")[0].replace("\n", " ")
        yield f"| `POST {path}` | {_cell(what)} | {offered} |"


def calculators():
    from app.ml.operations import calculator_entries

    yield "| calculator | result |"
    yield "|---|---|"
    for name, entry in calculator_entries().items():
        what = entry.description.split("\n\n")[0].replace("\n", " ")
        yield f"| `POST /v1/theory/{name}` | {_cell(what)} |"


def plots():
    from app.ml.operations import plot_entries

    yield "| plot | what it shows |"
    yield "|---|---|"
    for name, entry in plot_entries().items():
        what = entry.description.split("\n\n")[0].replace("\n", " ")
        yield f"| `{name}` | {_cell(what)} |"


def _fitted(algorithm):
    """A model of it by its defaults, as far as a query asks for one."""
    task = min(algorithm.tasks)
    clusters = SimpleNamespace(normals=SimpleNamespace(normals=None)) if task.labels else None
    return SimpleNamespace(
        algorithm=described(algorithm, task, algorithm.params(), clusters),
        params=algorithm.params(),
        task=task,
        preparation=SimpleNamespace(restorable=True),
        clusters=clusters,
    )


def _cell(text):
    return text.replace("|", "\\|")


@pytest.mark.parametrize(
    ("table", "page"),
    [
        (algorithms, "choosing.md"),
        (settings, "settings.md"),
        (errors, "jobs.md"),
        (queries, "predict.md"),
        (plots, "reports.md"),
        (calculators, "guarantees.md"),
        (algorithms_by_task, README),
        (rivals, README),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_generated_table_is_current(table, page):
    _rewrite(GUIDE / page, rf"(<!-- {table.__name__} -->\n).*?(<!-- /{table.__name__} -->)", "\n".join(table()))


def _rewrite(page, pattern, text):
    """Compare what stands between two groups of a pattern, and write it anew where it is stale."""
    current = re.sub(pattern, lambda around: f"{around[1]}{text}\n{around[2]}", page.read_text(), flags=re.DOTALL)
    stale = current != page.read_text()
    if stale:
        page.write_text(current)
    assert not stale, f"{page.name} was stale and has been rewritten: look at it and commit it."


def test_every_setting_is_explained():
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_demo_and_tests_are_one_command_each():
    demo, suite = COMMANDS[0].strip(), COMMANDS[-1].strip()
    for command in (demo, suite):
        assert len(command.splitlines()) == 1
        subprocess.run(["sh", "-n", "-c", command], check=True)
    assert demo.endswith(".venv/bin/valiant demo")
    assert suite.endswith(".venv/bin/pytest")


def test_clean_room_runs_the_commands_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text()
    extras, program = re.search(r"pip install (-e '\S+') && (\S+)$", COMMANDS[-1].strip()).groups()
    assert extras in script
    assert f"\n{program}\n" in script


def test_every_test_it_names_exists():
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", TEXT + (GUIDE / "invariants.md").read_text())
    assert len(named) > 10
    for file, test in named:
        functions = {node.name for node in ast.parse((ROOT / file).read_text()).body if hasattr(node, "name")}
        assert test in functions, f"{file}::{test}"


def test_every_invariant_has_its_test():
    section = (GUIDE / "invariants.md").read_text()
    rows = [line for line in section.splitlines() if line.startswith("| ") and line != "| invariant | test |"]
    assert len(rows) > 100
    assert all(re.search(r"`tests/\S+::\w+`", row) for row in rows)


def test_map_of_the_code_is_true():
    section = (ROOT / "CONTRIBUTING.md").read_text().split("## Map of the code")[1].split("```")[1]
    for line in section.strip().splitlines()[1:]:
        assert (ROOT / line.split()[0]).exists(), line


def test_every_recipe_that_is_named_exists():
    recipes = set(re.findall(r"^([a-z]+)[^:\n]*:$", (ROOT / "justfile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`just ([a-z]+)", (ROOT / "CONTRIBUTING.md").read_text()))
    assert named <= recipes
    assert len(named) > 8


def test_every_fragment_of_the_changes_has_a_kind():
    kinds = {
        each["directory"] for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]["type"]
    }
    fragments = {path.name for path in (ROOT / "changes").iterdir()} - {"README.md"}
    assert all(re.fullmatch(rf"\+[a-z0-9-]+\.({'|'.join(kinds)})\.md", name) for name in fragments), fragments


def test_the_release_stands_in_the_readme_and_in_the_changes():
    release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"Version {release}," in TEXT
    assert f"\n## {release}" in (ROOT / "CHANGELOG.md").read_text()


def test_decisions_are_short():
    section = (GUIDE / "design-decisions.md").read_text().partition("\n\n")[2]
    for decision in section.strip().split("\n\n"):
        assert decision.startswith("**")
        assert len(decision.splitlines()) <= 12


@pytest.mark.usefixtures("worker")
def test_its_python_prints_what_it_shows(api_address):
    block = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)[1]
    where = os.environ | {"VALIANT_URL": api_address()}
    run = [sys.executable, "-c", block]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120, env=where)
    printed = re.sub(r"^! These rows have been evaluated .*\n", "", done.stdout, flags=re.MULTILINE)  # by other tests
    _rewrite(README, r"(```text\n).*?(```)", printed.strip())


@pytest.mark.usefixtures("worker")
def test_its_curl_commands_work_as_printed(api_address):
    address = api_address()
    block = next(block for block in COMMANDS if "curl" in block)
    done = subprocess.run(
        ["sh", "-eu", "-c", block.replace("http://127.0.0.1:8000", address)],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    predicted = json.loads(done.stdout[done.stdout.rindex('{"model"') :])
    assert predicted["model"] == "miete"
    assert [500 < rent < 5000 for rent in predicted["predictions"]] == [True]
