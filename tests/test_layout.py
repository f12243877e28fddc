"""Layout of the repository: the top level, and the contents of the installed package."""

import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOP = {
    *("pyproject.toml", "app", "workers", "migrations", "tests", "docker-compose.yml", "Dockerfile", "README.md"),
    *(".ci", ".github", ".dockerignore", ".gitignore", "LICENSE", "NOTICE", "requirements.lock"),
    *("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "changes", "justfile", ".pre-commit-config.yaml"),
}
LONGEST_FILE = 320
SHARED_NAMES = {
    # one resource: its route, its schema, its service, its rows
    *("algorithms", "aliases", "datasets", "health", "jobs", "models", "open_inference", "plots", "predictions"),
    *("audit", "cluster_names", "files", "keys", "metrics", "preferences", "problems", "projects", "queries"),
    *("reviews", "sessions", "uploads", "monitoring", "monitors"),
    # messages of a service and its child process, one for each kind of child
    "protocol",
    # a format: rows of a request, and a dataset
    "npy",
    # an interface and its compiled loops
    *("binning", "bounds", "distances", "growth", "linear_forms", "out_of_bag", "seeding"),
    # an algorithm and its numerics, a kind of job and its training, the entry of each process, rows and their store
    *("leave_one_out", "perceptron", "search", "train", "main", "training_rows"),
    # a query and its statistics
    "intervals",
    # a step that several rooms have: the room says of what
    *("columns", "cost", "losses", "rows", "scaling", "splits", "rejection", "validation"),
}


def test_top_level_is_as_drawn():
    ignored = shutil.ignore_patterns(*(ROOT / ".gitignore").read_text().replace("/", "").split(), ".git")
    names = {path.name for path in ROOT.iterdir()}
    assert names - ignored(str(ROOT), list(names)) == TOP


def test_files_stay_short():
    sources = [path for folder in ("app", "workers", "migrations") for path in (ROOT / folder).rglob("*.py")]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in sources}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_a_file_name_has_one_meaning():
    """A name that several files share stands on the list above, with the reason."""
    names = Counter(
        path.stem for folder in ("app", "workers") for path in (ROOT / folder).rglob("*.py") if path.stem != "__init__"
    )
    assert {name for name, count in names.items() if count > 1} - SHARED_NAMES == set()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The names inside a wheel built from a copy of the tree, so that the tree stays clean."""
    copy = tmp_path_factory.mktemp("source")
    for name in TOP - {"tests", ".ci", ".github"}:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "--wheel-dir", str(copy / "out"), str(copy)], check=True, cwd=copy)
    (made,) = (copy / "out").glob("valiant-*.whl")
    with zipfile.ZipFile(made) as archive:
        return set(archive.namelist())


def test_wheel_holds_everything_that_runs(wheel):
    for folder in ("app", "workers", "migrations"):
        expected = {str(path.relative_to(ROOT)).removeprefix("app/client/") for path in (ROOT / folder).rglob("*.py")}
        assert expected <= wheel


def test_wheel_holds_what_is_not_code(wheel):
    assert {"app/openapi.json", "app/py.typed"} <= wheel
    for folder, pattern in (
        ("deployment", "*"),
        ("deployment/chart", "*"),
        ("deployment/chart/templates", "*"),
        ("deployment/chart/files", "*"),
        ("docs", "*.*"),
        ("docs/swagger_ui", "*"),
        ("docs/pictures", "*"),
        ("console", "*.*"),
        ("console/vendor", "*"),
        ("samples", "*"),
    ):
        files = [path for path in (ROOT / "app" / folder).glob(pattern) if path.is_file()]
        assert {f"app/{folder}/{path.name}" for path in files} <= wheel


def test_wheel_holds_nothing_else(wheel):
    assert {name.split("/")[0].removesuffix(".dist-info").split("-")[0] for name in wheel} == {
        *("app", "workers", "migrations", "valiant")
    }
