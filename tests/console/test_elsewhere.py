"""What the console prints under "As code", run as it stands in an empty folder."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

IRIS = Path(__file__).parents[2] / "app" / "samples" / "iris.csv"


@pytest.fixture
def run_elsewhere(page, send, tmp_path):
    """`run_elsewhere()`: what each way of the page that is open prints, by its name."""
    page.set_default_timeout(300_000)  # a first training compiles
    secret = send("POST", "/v1/keys", {"name": "elsewhere", "role": "admin"})["secret"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "XDG_CONFIG_HOME": str(tmp_path)}
    for name in ("rows.csv", "churn.csv"):
        (tmp_path / name).write_bytes(IRIS.read_bytes())

    def run():
        page.get_by_text("As code").click()
        page.get_by_role("heading", name="First", exact=True).wait_for()
        sections = page.locator("details.how section")
        ways = {one.locator("h3").inner_text(): one.locator("pre").inner_text() for one in sections.all()}
        first = ways.pop("First").replace("vlt_…", secret)
        return {name: in_shell(first, name, text) for name, text in ways.items()}

    def in_shell(first, name, text):
        script = f"python3 - <<'PROGRAM'\n{text}\nPROGRAM" if name == "Python" else text
        done = subprocess.run(
            ["bash", "-euc", f"{first}\n{script}"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, (name, text, done.stderr)
        assert "urn:valiant:problem" not in done.stdout, (name, text, done.stdout)
        return done.stdout

    return run


def test_what_every_page_prints_works_elsewhere(train, go, send, run_elsewhere):
    train("iris", "logistic")
    train("iris", "logistic", l2=0.5)
    job, dataset = (send("GET", f"/v1/{kind}")["items"][0]["id"] for kind in ("jobs", "datasets"))
    for place, title in (
        ("compare?model=iris", "Compare"), ("models/iris/1/try", "Try iris, version 1"),
        (f"datasets/{dataset}/difference?with={dataset}", "iris and iris"),
        ("reviews", "Reviews"), ("sessions", "Sessions"), ("theory", "Theory"), ("keys", "Keys"),
        ("datasets", "Datasets"), (f"datasets/{dataset}", "iris"), ("jobs", "Jobs"), (f"jobs/{job}", "train"),
        ("models", "Models"), ("models/iris", "iris"), ("models/iris/1", "iris, version 1"),
    ):  # fmt: skip
        go(place, title)
        assert {"curl", "Python"} <= set(run_elsewhere()), place


def test_what_the_page_of_a_tree_prints_works_elsewhere(train, go, run_elsewhere):
    train("iris", "decision_tree")
    go("models/iris/1/tree", "Tree of iris, version 1")
    assert {"curl", "Python", "Terminal"} <= set(run_elsewhere())


def test_what_the_form_of_a_training_prints_trains_the_same(page, train, go, send, run_elsewhere):
    """Also a learner within a learner, whose parameters hold null and true."""
    train("iris", "logistic")
    dataset = send("GET", "/v1/datasets")["items"][0]["id"]
    go(f"train?dataset={dataset}", "Train")
    page.get_by_label("Algorithm").select_option("bagging")
    page.get_by_text("Parameters of decision_tree").click()
    page.locator("#field-estimator-max_depth").fill("2")
    page.get_by_text("classification of 150 rows").wait_for()
    printed = run_elsewhere()
    jobs = send("GET", f"/v1/jobs?limit={len(printed)}")["items"]
    assert json.loads(printed["curl"])["id"] in {job["id"] for job in jobs}
    parameters = [version_of(send, job)["parameters"] for job in jobs]
    assert parameters[0]["estimator"]["max_depth"] == 2
    assert all(each == parameters[0] for each in parameters)


def version_of(send, job):
    until = time.monotonic() + 300
    while (state := send("GET", f"/v1/jobs/{job['id']}"))["state"] in {"queued", "running"}:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert state["state"] == "succeeded", state
    return send("GET", f"/v1/models/{state['model']}/versions/{state['version']}")
