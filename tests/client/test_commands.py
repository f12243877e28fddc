"""Commands of the client in the terminal: their tables, their JSON, and their exit codes."""

import json
import re
import sys
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow.parquet as pq
import pytest

from app.cli import main
from valiant.commands import main as client_main
from valiant.summary_table import SummaryTable

IRIS = "app/samples/iris.csv"


@pytest.fixture(scope="module", autouse=True)
def _flowers(address):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VALIANT_URL", address)
        assert main(["train", IRIS, "--target", "species", "--model", "flowers", "-s", "n_estimators=5"]) == 0
        yield


@pytest.fixture
def valiant(capsys):
    """`valiant("models", "--json")`: exit code, output and errors."""

    def run(*arguments, entry=main):
        try:
            code = entry([*map(str, arguments)])
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return run


def test_train_prints_the_metrics(valiant):
    code, printed, errors = valiant("train", "iris", "--target", "species", "--algorithm", "ridge", "-s", "l2=0.5")
    assert code == 0
    assert errors == ""
    assert printed.startswith("iris, version 1: classification by ridge\nmetric")
    assert "accuracy" in printed


def test_predict_prints_or_writes(valiant, tmp_path):
    before = valiant("datasets", "--json")
    code, printed, _ = valiant("predict", "flowers", IRIS, "--keep", "species")
    lines = printed.splitlines()
    assert (code, len(lines)) == (0, 151)
    assert lines[0].startswith('"species","prediction","probability_setosa"')
    target = tmp_path / "scored.parquet"
    assert valiant("predict", "flowers", IRIS, "-o", target) == (0, "", "")
    assert pq.read_table(target).num_rows == 150
    assert valiant("datasets", "--json") == before


def test_lists_are_tables(valiant):
    code, printed, _ = valiant("models")
    assert code == 0
    heading, rule, *rows = printed.splitlines()
    assert heading.split() == ["model", "versions", "newest", "aliases"]
    assert set(rule) == {"-", " "}
    assert [row.split()[0] for row in rows] == ["flowers", "iris"]
    assert "gradient_boosting" in valiant("models", "flowers")[1]
    assert valiant("jobs")[1].split()[:4] == ["job", "kind", "state", "model"]
    assert "petal_length_cm" in valiant("datasets", "iris")[1]
    assert valiant("report", "flowers")[1].splitlines()[1].split() == ["metric", "value", "interval", "n"]


def test_a_report_is_saved_as_a_page(valiant, service, tmp_path):
    assert valiant("report", "flowers", "-o", tmp_path / "report.html") == (0, "", "")
    page = (tmp_path / "report.html").read_text()
    version = service.model("flowers").version()
    assert page.count("<section>") == len(version.plots()) > 3
    bounds = [each["statement"] for each in version.report.guarantees["certificates"]]
    for text in (version.report.evidence, "Test rows", "Training rows", "accuracy", *bounds):
        assert text in page
    assert "http" not in re.sub(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", "", page).replace("http-equiv", "")


@pytest.mark.parametrize(("name", "options"), [("grown.txt", ()), ("grown", ("--format", "lightgbm"))])
def test_import_makes_a_version(valiant, service, tmp_path, name, options):
    lightgbm = pytest.importorskip("lightgbm")
    x = np.random.default_rng(0).normal(size=(200, 3))
    booster = lightgbm.train({"objective": "binary", "verbose": -1}, lightgbm.Dataset(x, x[:, 0] > 0), 3)
    booster.save_model(tmp_path / name)
    classes = ("-s", 'classes=["low", "high"]')
    code, printed, errors = valiant("import", tmp_path / name, *options, *classes)
    assert (code, errors) == (0, "")
    assert re.match(r"grown, version \d: classification by imported_trees\n", printed)
    rows = tmp_path / "rows.csv"
    rows.write_text("Column_0,Column_1,Column_2\n" + "".join(f"{a!r},{b!r},{c!r}\n" for a, b, c in x.tolist()))
    lines = valiant("predict", "grown", rows)[1].splitlines()[1:]
    assert [line.split(",")[0] for line in lines] == ['"high"' if p > 0.5 else '"low"' for p in booster.predict(x)]
    service.model("grown").delete()


def test_a_file_of_no_format_is_not_uploaded(valiant, tmp_path):
    file = tmp_path / "grown"
    file.write_text("tree")
    assert valiant("import", file) == (2, "", "valiant: the suffix of 'grown' names no format: give --format\n")


def test_json_is_what_the_service_sent(valiant, service):
    (newest, *_), models = (json.loads(valiant(name, "--json")[1]) for name in ("jobs", "models"))
    assert service.job(newest["id"]).kind == newest["kind"]
    assert models[0]["name"] == "flowers"
    assert json.loads(valiant("report", "flowers", "--json")[1])["task"] == "classification"


def test_a_job_is_followed_to_its_end(valiant, service, iris):
    job = service.train(iris, "species", model="followed", n_estimators=30, wait=False)
    code, printed, _ = valiant("jobs", "-f", job.id)
    assert (code, printed.splitlines()[0]) == (0, f"train {job.id}: succeeded, 100% {job.refresh().message}".rstrip())
    assert valiant("jobs", "-f") == (0, "", "")  # nothing is unfinished


def test_exit_codes(valiant, service, iris, tmp_path):
    failing = service.train(iris, "species", model="slow", n_estimators=10_000, wait=False)
    failing.cancel()
    code, printed, errors = valiant("jobs", "-f", failing.id)
    assert (code, printed) == (3, "")
    assert "cancelled" in errors
    code, _, errors = valiant("train", "iris", "--target", "specis")
    assert code == 4
    assert "did you mean 'species'?" in errors
    assert valiant("report", "nothing")[0] == 4
    assert valiant("models", "--url", "http://127.0.0.1:9", "--timeout", "0.1")[0] == 1
    for wrong in (
        ("predict", "flowers", tmp_path / "nowhere.csv"),
        ("predict", "flowers", IRIS, "-o", "rows.xlsx"),
        ("report", "flowers", "-o", "report.pdf"),
        ("train", IRIS, "-s", "n_estimators"),
        ("jobs", "--state"),
        ("trian", IRIS),
    ):
        code, _, errors = valiant(*wrong)
        assert code == 2
        assert "usage: valiant" in errors


def test_the_same_commands_without_the_service(valiant):
    assert valiant("models", entry=client_main)[1] == valiant("models")[1]
    code, printed, _ = valiant("--help", entry=client_main)
    assert code == 0
    assert "migrate" not in printed
    assert {"migrate", "train", "predict"} <= set(valiant("--help")[1].split())


def test_login_keeps_the_key(valiant, tmp_path, monkeypatch):
    import io

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\n"))
    code, printed, _ = valiant("login", "https://models.example")
    assert (code, printed) == (0, "")
    stored = tmp_path / "valiant" / "config.toml"
    assert stored.read_text() == 'url = "https://models.example"\nkey = "secret"\n'


def test_projects_and_their_use_are_tables(valiant, service):
    name = f"p-{uuid4()}"
    code, before, _ = valiant("projects")
    assert code == 0
    service.create_project(name, model_versions=7)
    code, listed, _ = valiant("projects")
    (line,) = [line for line in listed.splitlines() if line.startswith(name)]
    assert "7" in line.split()
    assert name not in before
    assert json.loads(valiant("projects", "--json")[1])[0]["name"] == name  # the newest is first
    code, used, _ = valiant("usage")
    assert code == 0
    assert used.startswith("project default\nwhat")
    shown = dict(re.findall(r"^(model versions|bytes stored) +(\d+)", used, re.MULTILINE))
    assert int(shown["model versions"]) >= 1
    assert json.loads(valiant("usage", "--json")[1])["model_versions"] == int(shown["model versions"])


def test_tables_fit_their_width():
    table = SummaryTable("title", ("name", "text", "n"), [["x" * 36, "y" * 200, 1], ["z", "", 22]], ["word " * 30])
    lines = table.text(80).splitlines()
    assert [len(line) for line in lines[1:5]] == [80, 80, 80, 80]
    assert lines[3] == f"{'x' * 36}  {'y' * 37}…   1"
    assert lines[5].startswith("! word word")
    assert max(map(len, lines)) == 80
    assert max(map(len, table.text().splitlines())) > 200
    assert SummaryTable("nothing", ("a",), []).text(80) == "nothing"


def test_notebooks_show_tables(service, iris):
    job = service.jobs(1)[0]
    version = service.model("flowers").version()
    for shown in (iris, job, version, version.report, service.model("flowers")):
        html = shown._repr_html_()
        assert html.startswith("<table><caption>")
        assert "<tr><td>" in html
    specification = version.plot(version.plots()[0]["name"])
    assert specification._repr_mimebundle_()["application/vnd.vegalite.v5+json"]["$schema"].endswith("v5.json")
    assert SummaryTable("<b>", ("a&b",), [["<script>"]], ["<i>"]).html() == (
        "<table><caption>&lt;b&gt;</caption><tr><th>a&amp;b</th></tr>"
        "<tr><td>&lt;script&gt;</td></tr></table><ul><li>&lt;i&gt;</li></ul>"
    )


def test_algorithms_are_compared_and_the_best_is_promoted(valiant, service):
    code, printed, _ = valiant(
        "search",
        "iris",
        "--target",
        "species",
        "--model",
        "best",
        "--algorithms",
        "knn",
        "ridge",
        "--metric",
        "accuracy",
    )
    assert code == 0
    assert re.search(r"accuracy: higher is better\nrank +algorithm +value +interval\n.*\n +1 +knn ", printed)
    assert "! best, version 1, is trained." in printed
    code, printed, _ = valiant("compare", "iris", "best", "flowers:1", "--metric", "accuracy")
    assert code == 0
    assert re.search(r"\nbest:1 +flowers:1 .* (not distinguished|best:1|flowers:1)\n", f"{printed}\n")
    assert valiant("promote", "best") == (0, "best: champion → 1\n", "")
    assert valiant("promote", "best", "2")[0] == 4
    assert valiant("promote", "best", "1", "--alias", "next")[1] == "best: champion → 1, next → 1\n"


def test_versions_and_datasets_are_downloaded_and_deleted(valiant, tmp_path):
    valiant("upload", IRIS, "--name", "gone")
    target = tmp_path / "rows.csv"
    assert valiant("download", "dataset", "gone", "-o", target) == (0, "", "")
    assert len(target.read_text().splitlines()) == 151
    assert valiant("delete", "dataset", "gone") == (0, "", "")
    assert valiant("delete", "dataset", "gone")[0] == 4
    valiant("train", "iris", "--target", "species", "--algorithm", "ridge", "--model", "short")
    valiant("train", "iris", "--target", "species", "--algorithm", "knn", "--model", "short")
    target = tmp_path / "short.safetensors"
    assert valiant("download", "model", "short", "--version", "1", "-o", target) == (0, "", "")
    assert target.stat().st_size > 100
    assert valiant("export", "short", "--version", "1", "-o", tmp_path / "short.py") == (0, "", "")
    assert "def predict" in (tmp_path / "short.py").read_text("utf-8")
    assert valiant("export", "short", "-o", tmp_path / "short.txt")[0] == 2
    assert valiant("delete", "model", "short", "--version", "1") == (0, "", "")
    assert "knn" in valiant("models", "short")[1]
    assert valiant("delete", "model", "short") == (0, "", "")
    assert valiant("models", "short")[0] == 4


def test_a_job_that_has_ended_cannot_be_cancelled_and_stays(valiant, service):
    job = service.jobs(1, state="succeeded")[0]
    code, printed, _ = valiant("cancel", job.id)
    assert code == 0
    assert "succeeded" in printed


def test_drift_is_printed_written_and_fails_a_pipeline(valiant, tmp_path):
    lines = Path(IRIS).read_text().splitlines()
    later = tmp_path / "later.csv"
    moved = (",".join([str(float(line.split(",")[0]) + 1.5), *line.split(",")[1:]]) for line in lines[1:])
    later.write_text("\n".join([lines[0], *moved]))
    page = tmp_path / "drift.html"
    code, printed, _ = valiant("drift", later, "--model", "flowers", "--fail-on", "predictions", "-o", page)
    assert (code, "sepal_length_cm" in printed) == (0, True)
    assert "sepal_length_cm (values), PSI" in page.read_text()
    code, printed, errors = valiant("drift", later, "--reference", IRIS, "--fail-on", "any", "--json")
    assert code == 5
    assert json.loads(printed)["drifted"] == 1
    assert errors == "valiant: drift of sepal_length_cm\n"
    assert valiant("drift", IRIS, "--model", "flowers", "--fail-on", "any")[0] == 0


def test_the_best_model_is_printed_as_a_leaderboard(valiant):
    name = f"best-{uuid4()}"
    options = ("--target", "species", "--units", "20", "--include", "logistic", "--include", "knn", "--model", name)
    code, printed, errors = valiant("automl", IRIS, *options)
    assert code == 0, errors
    assert f"BestModel {name} 1: log_loss" in printed
    assert "logistic" in printed
    assert valiant("automl", IRIS, "--target", "nobody")[0] == 4
    assert valiant("automl", IRIS, "--target", "species", "--units", "2", "--include", "knn")[0] == 3
