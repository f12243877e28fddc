"""The guide: every page is served and linked, its commands work as printed, and its algorithms train."""

import ast
import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import fields
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from app.docs import guide
from app.docs.algorithm_page import commands, example
from app.docs.guide_files import write_pages
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Task
from app.ml.kinds.job import Kind
from app.ml.kinds.plot import Plot
from app.ml.kinds.query import Query
from tests.benchmarks.choosing import measurable
from tests.printed_commands import blocks

ROOT = Path(__file__).parent.parent
ADDRESS = "http://127.0.0.1:8000"
BLOCKS = {
    name: [
        (block.language, block.text)
        for block in blocks(ROOT / "app" / "docs" / f"{name}.md")
        if block.mark is None and block.language in {"sh", "python", "json"}
    ]
    for name in guide.ORDER
}
"""Language and text of the blocks of a page. JSON shows what the block before it prints, in parts and rounded."""
UPLOADS = next(block for block in BLOCKS["quick-start"] if "--data-binary" in block[1])
ROUNDED = 0.01
"""Relative error of a number that the guide shows."""


class Links(HTMLParser):
    """Addresses and anchors of a page, and elements that load something."""

    def __init__(self, html):
        super().__init__()
        self.links, self.anchors, self.loads, self.pictures = set(), set(), [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "a":
            self.links.add(given["href"])
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "img" and given["src"].startswith("/docs/pictures/"):
            self.pictures.append(given)
        elif tag in {"script", "img", "link", "iframe"} or "src" in given:
            self.loads.append(tag)


def test_every_page_is_served_and_loads_nothing(client):
    for name, page in guide.pages().items():
        response = client.get(f"/docs/guide/{name}")
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/html")
        assert page.title in response.text
        found = Links(response.text)
        assert found.loads == []
        for picture in found.pictures:
            assert picture["alt"]
            assert client.get(picture["src"]).content.startswith(b"\x89PNG")


def test_links_lead_somewhere(client):
    anchors = {name: {heading.anchor for heading in page.headings} for name, page in guide.pages().items()}
    for page in guide.pages().values():
        for link in Links(page.html).links:
            path, _, anchor = link.partition("#")
            if path.startswith("/docs/guide/") and "<" not in path:
                assert path.removeprefix("/docs/guide/") in anchors
                assert not anchor or anchor in anchors[path.removeprefix("/docs/guide/")]


def test_pages_can_be_read_where_their_files_lie():
    anchors = {name: {heading.anchor for heading in page.headings} for name, page in guide.pages().items()}
    for page in (ROOT / "app" / "docs").glob("*.md"):
        for address in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            path, _, anchor = address.partition("#")
            if not re.match(r"https?:|/v1/|/docs$|/openapi|/console", address):
                assert (page.parent / path).is_file() or not path, f"{page.name}: {address}"
                assert not anchor or anchor in anchors[Path(path).stem or page.stem], f"{page.name}: {address}"


def test_the_guide_is_written_as_files_that_need_no_server(tmp_path):
    assert write_pages(tmp_path) == len(guide.pages())
    for name in ("index", "train", "algorithms/knn"):
        file = tmp_path / f"{name}.html"
        page = Links(file.read_text())
        local = {link.partition("#")[0] for link in page.links if not re.match("https?:", link)} - {""}
        assert len(local) > 20
        assert not page.pictures
        assert {link for link in local if not link.startswith("/") and not (file.parent / link).is_file()} == set()
        assert {link for link in local if link.startswith("/docs/guide")} == set()


def test_every_written_page_has_its_place():
    assert sorted(path.stem for path in (ROOT / "app" / "docs").glob("*.md")) == sorted(guide.ORDER)


def test_a_page_that_does_not_exist_is_a_problem(client):
    response = client.get("/docs/guide/nothing")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_headings_are_found_by_their_words(client):
    page = client.get("/docs/guide", params={"q": "rejected UNCERTAIN"}).text
    assert "<h1>0 headings" in page
    page = client.get("/docs/guide", params={"q": "uncertain rows"}).text
    assert 'href="/docs/guide/decisions-of-a-classifier#reject-uncertain-rows"' in page
    assert "<script>alert" not in client.get("/docs/guide", params={"q": "<script>alert(1)</script>"}).text


def test_every_algorithm_has_a_page_with_all_its_parameters():
    for name, entry in catalogue().items():
        page = guide.pages()[f"algorithms/{name}"].html
        assert all(f"<code>{parameter}</code>" in page for parameter in entry.algorithm.params.model_fields)


@pytest.fixture(scope="module")
def address(api_address, worker):
    return api_address()


@pytest.fixture(scope="module")
def started(address, tmp_path_factory):
    """`started(block)`: what a block of commands prints, in a folder with the bundled tables."""
    folder = tmp_path_factory.mktemp("guide")
    (folder / "app").mkdir()
    (folder / "app" / "samples").symlink_to(ROOT / "app" / "samples")

    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"VALIANT_URL": address, "PATH": commands, "XDG_CONFIG_HOME": str(folder)}

    def run(language, block):
        program = {"sh": ["sh", "-eu", "-c"], "python": [sys.executable, "-c"]}[language]
        done = subprocess.run(
            [*program, block.replace(ADDRESS, address)],
            cwd=folder, capture_output=True, text=True, check=False, timeout=300, env=environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def last_value(printed):
    """The JSON value that ends an output of several, one after the other, or the list that Python printed."""
    for begin in (found.start() for found in re.finditer(r"[\[{]", printed)):
        with suppress(json.JSONDecodeError):
            return json.loads(printed[begin:])
    return ast.literal_eval(printed)


def holds(whole, part):
    """Whether `part` shows `whole` truly: some members of an object, "…" for the rest of a list, rounded numbers."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and holds(whole[key], part[key]) for key in part)
    if isinstance(part, list):
        shown = part[:-1] if part[-1:] == ["…"] else part
        rest = len(whole) > len(shown) if shown is not part else len(whole) == len(shown)
        return rest and all(map(holds, whole, shown))
    if isinstance(part, float):
        return whole == pytest.approx(part, rel=ROUNDED, abs=ROUNDED)
    return whole == (pytest.approx(part, rel=ROUNDED) if isinstance(part, int) and isinstance(whole, float) else part)


@pytest.fixture(scope="module")
def printed_by(started):
    """`printed_by(page)`: what its blocks printed, run after those of the pages before it, as a reader would."""
    printed = {}

    def run(page):
        for name in guide.ORDER[: guide.ORDER.index(page) + 1]:
            assert printed.get(name, True), f"{name} is needed, and its commands do not work"
            if name not in printed:
                outputs, printed[name] = [""], None
                for language, block in BLOCKS[name]:
                    if language == "json":
                        assert holds(last_value(outputs[-1]), json.loads(block)), (block, outputs[-1])
                    else:
                        outputs.append(started(language, block))
                printed[name] = outputs
        return printed[page]

    return run


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(name, marks=[] if name == "quick-start" else [pytest.mark.slow])
        for name in guide.ORDER
        if BLOCKS[name]
    ],
)
def test_the_commands_of_a_page_work_as_printed(printed_by, page):
    """Only the page on errors shows a problem, and no page a job that fails."""
    outputs = "".join(printed_by(page))
    assert ("urn:valiant:problem" in outputs) == (page == "jobs")
    assert not re.search(r'"state": ?"(failed|cancelled)"', outputs)


@pytest.mark.slow
def test_the_commands_of_the_guide_lead_to_results(printed_by):
    assert "rmse" in printed_by("quick-start")[-1]
    assert all('"state":"succeeded"' in output for output in printed_by("search")[1:])


def test_every_example_of_an_algorithm_is_a_valid_request(client, started):
    started(*UPLOADS)
    for entry in catalogue().values():
        response = client.post("/v1/jobs/train:validate", json=example(entry))
        assert response.status_code == 200, (entry.name, response.text)


@pytest.mark.slow
@pytest.mark.parametrize("name", catalogue())
def test_the_example_of_an_algorithm_trains_and_predicts(started, name):
    started(*UPLOADS)
    printed = started("sh", commands(catalogue()[name]))
    assert '"state":"succeeded"' in printed
    (prediction,) = last_value(printed)["predictions"]
    assert prediction is not None


def test_the_example_on_a_page_is_the_one_that_runs(started):
    started(*UPLOADS)
    for name, entry in catalogue().items():
        assert escape(commands(entry), quote=False) in unescape_quotes(guide.pages()[f"algorithms/{name}"].html)
    printed = started("sh", commands(catalogue()["logistic"]))
    assert last_value(printed)["predictions"] == ["versicolor"]


def unescape_quotes(html):
    return html.replace("&quot;", '"')


def test_prose_keeps_its_code_and_its_formulas():
    """Signs of formulas are no Markdown, and names in backticks have no escapes."""
    for name in catalogue():
        html = guide.pages()[f"algorithms/{name}"].html
        assert not re.search(r"<code>[^<]*\\\\[^<]*</code>", html.partition('<h2 id="method"')[2])
        assert "<em>" not in html


def test_cells_of_tables_name_their_column():
    html = guide.pages()["algorithms/ridge"].html
    assert re.search(r'<td data-label="default"><code>', html)


def test_a_page_marks_itself_in_the_contents_and_leads_on(client):
    page = client.get("/docs/guide/train").text
    assert page.count("aria-current=page") == 1
    assert '<a href="/docs/guide/train" aria-current=page>' in page
    assert '← <a href="/docs/guide/choosing">' in page
    assert '<a href="/docs/guide/reports">Read a report</a> →' in page
    assert "<details open>" in client.get("/docs/guide/algorithms/knn").text


def test_every_supervised_algorithm_was_measured():
    page = (ROOT / "app" / "docs" / "choosing.md").read_text()
    for task in (Task.CLASSIFICATION, Task.REGRESSION):
        table = page.split(f"<!-- measured {task} -->")[1].split(f"<!-- /measured {task} -->")[0]
        able = {name for name in catalogue() if measurable(name, task)}
        assert set(re.findall(r"^\| \[`(\w+)`\]", table, flags=re.MULTILINE)) == able


def first_column(page, heading):
    """Names in backticks in the first column of the table after a heading."""
    section = (ROOT / "app" / "docs" / f"{page}.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([^|]*) \|", section, flags=re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def parameters_of(client, path):
    operation = client.get("/openapi.json").json()["paths"][path]["post"]
    return {parameter["name"] for parameter in operation["parameters"]}


def test_names_in_tables_of_fields_exist(client):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert first_column("train", "Fields of the request") <= set(schemas["TrainRequest"]["properties"])
    assert first_column("reports", "Parts") <= set(schemas["Report"]["properties"])
    assert first_column("decisions-of-a-classifier", "Reject uncertain rows") <= parameters_of(
        client, "/v1/models/{model}/predict"
    )
    assert first_column("datasets", "How cells are read") <= parameters_of(client, "/v1/datasets")
    assert first_column("datasets", "Formats") == set(schemas["FileFormat"]["enum"]) | {"file_format"}
    assert first_column("extending", "A kind of job") == {field.name for field in fields(Kind)}
    assert first_column("extending", "A query") == {field.name for field in fields(Query)}
    assert first_column("extending", "A plot") == {field.name for field in fields(Plot)}
