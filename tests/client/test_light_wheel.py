"""The distribution `valiant-client`: the same version, the same files, and few packages beside it."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "app" / "client"
MOST_PACKAGES = 9
SCRIPT = """
import sys, valiant
assert not {"httpx", "numpy", "pyarrow", "pandas"} & set(sys.modules)
v = valiant.connect()
d = v.upload(sys.argv[1])
m = v.train(d, target="species", n_estimators=5, model="light", progress=False)
row = {"petal_length_cm": 1.4, "petal_width_cm": 0.2, "sepal_length_cm": 5, "sepal_width_cm": 3}
print(m.predict([row]).predictions)
assert "pyarrow" not in sys.modules
print(d.frame().num_rows)
"""


def test_both_distributions_have_one_version():
    light, whole = (
        tomllib.loads(path.read_text())["project"] for path in (CLIENT / "pyproject.toml", ROOT / "pyproject.toml")
    )
    assert light["version"] == whole["version"]
    assert all(need in " ".join(whole["dependencies"]) for need in light["dependencies"])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, so that the tree stays clean."""
    copy = tmp_path_factory.mktemp("light") / "client"
    shutil.copytree(CLIENT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "--wheel-dir", str(copy / "out"), str(copy)], check=True, cwd=copy)
    (made,) = (copy / "out").glob("valiant_client-*.whl")
    return made


@pytest.mark.slow
def test_it_holds_the_client_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == {
        f"valiant/{path.name}" for path in (CLIENT / "valiant").iterdir() if path.suffix in {".py", ".typed"}
    }


@pytest.mark.slow
def test_a_fresh_environment_trains_and_predicts(wheel, address, tmp_path):
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh" / "bin" / "python"
    before = packages(python)
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True)
    assert "valiant-client" in packages(python) - before
    assert len(packages(python) - before) <= MOST_PACKAGES
    environment = os.environ | {"VALIANT_URL": address}
    run = [python, "-P", "-c", SCRIPT, ROOT / "app" / "samples" / "iris.csv"]
    printed = subprocess.run(run, check=True, capture_output=True, text=True, env=environment).stdout
    assert printed.splitlines() == ["['setosa']", "150"]
    command = [python, "-P", "-m", "valiant", "models", "--json"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    assert [each["name"] for each in json.loads(listed)] == ["light"]


def packages(python):
    listed = subprocess.run([python, "-m", "pip", "list", "--format=json"], check=True, capture_output=True).stdout
    return {each["name"] for each in json.loads(listed)}
