"""The release: one version, the same bytes twice, a signature, the origin of every file, and the definitions of CI."""

import importlib.util
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_has_the_version_of_the_package():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert set(map(frozenset, script("version").read_versions().values())) == {frozenset({version})}


def test_a_version_is_set_everywhere(tmp_path):
    version = script("version")
    for file in version.PLACES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    version.set_version("7.8.9rc1", tmp_path)
    assert version.read_versions(tmp_path) == {file: {"7.8.9rc1"} for file in version.PLACES}
    assert tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]["version"] == "7.8.9rc1"
    with pytest.raises(ValueError, match="no version"):
        version.set_version("next", tmp_path)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository with one commit of what is under version control here."""
    folder = tmp_path_factory.mktemp("release")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout
    if not names:
        pytest.skip("There is no repository here to make a release from.")
    for name in names.decode().split("\0")[:-1]:
        if name.startswith(("app/", "workers/", "migrations/", ".ci/")) or "/" not in name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "all")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def release(repository, out, *key):
    return subprocess.run(
        [repository / ".ci" / "release", out, *key], env={"PYTHON": sys.executable, "PATH": PATH}, check=True
    )


PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.mark.slow
def test_a_release_is_the_same_twice_and_signed(repository, tmp_path):
    assert shutil.which("minisign"), "This needs minisign, which is not on the PATH: apt-get install minisign"
    secret, public = tmp_path / "valiant.key", tmp_path / "valiant.pub"
    subprocess.run(["minisign", "-GW", "-s", secret, "-p", public], check=True, capture_output=True)
    first, second = tmp_path / "first", tmp_path / "second"
    release(repository, first, secret)
    for path in repository.rglob("*.py"):
        path.touch()  # the time of files is no part of it
    release(repository, second)
    sums = (first / "SHA256SUMS").read_text()
    assert sums == (second / "SHA256SUMS").read_text()
    assert {line.split()[1].split("-")[0] for line in sums.splitlines()} == {"valiant", "valiant_client"}
    assert "valiant-chart-" in sums
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=first, check=True)
    verify = ["minisign", "-V", "-q", "-p", public, "-m", first / "SHA256SUMS"]
    assert subprocess.run(verify, check=False).returncode == 0
    (first / "SHA256SUMS").write_text(sums.replace("a", "b", 1))
    assert subprocess.run(verify, check=False, capture_output=True).returncode != 0
    helm = pytest.importorskip("helm_python")
    (chart,) = first.glob("*.tgz")
    with helm.Chart.load_archive(chart.read_bytes()) as loaded:
        assert loaded.name == "valiant"
        assert "groups:" in loaded.render({"monitoring": {"enabled": True}})["valiant/templates/monitoring.yaml"]


@pytest.mark.slow
def test_every_file_of_an_environment_has_an_origin(tmp_path):
    """Of a small one, with one distribution; a file that nothing brought is named."""
    environment, origins = tmp_path / "environment", script("file_origins")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    copy = shutil.copytree(ROOT / "app" / "client", tmp_path / "client", ignore=shutil.ignore_patterns("__pycache__"))
    pip, quiet = [sys.executable, "-m", "pip"], ["--quiet", "--no-deps", "--no-index"]
    built = [*pip, "wheel", *quiet, "--no-build-isolation", "--wheel-dir", tmp_path, copy]
    subprocess.run(built, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([*pip, "--python", environment / "bin" / "python", "install", *quiet, wheel], check=True)
    document, lost = origins.bill(environment)
    assert lost == []
    (client,) = [each for each in document["components"] if each["name"] == "valiant-client"]
    assert client["purl"].startswith("pkg:pypi/valiant-client@")
    files = {each["name"].split("site-packages/")[-1]: each["hashes"] for each in client["components"]}
    assert {f"valiant/{path.name}" for path in (copy / "valiant").glob("*.py")} <= files.keys()
    (environment / "lib" / "stray.so").write_bytes(b"x")
    assert origins.main([str(environment), str(tmp_path / "bill.json")]) == 1
    assert origins.bill(environment)[1] == [environment / "lib" / "stray.so"]
    assert json.loads((tmp_path / "bill.json").read_text())["bomFormat"] == "CycloneDX"


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda path: path.stem)
def test_a_definition_of_ci_runs_what_there_is(file):
    jobs = yaml.safe_load(file.read_text())["jobs"]
    runs = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    for text in runs:
        assert subprocess.run(["bash", "-n", "-c", text], check=False).returncode == 0
    named = {
        word for text in runs for word in text.replace("$(", " ").replace(")", " ").split() if word.startswith(".ci/")
    }
    assert named
    assert all((ROOT / word).is_file() for word in named)


def test_every_python_that_is_supported_is_tried():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    tried = {jobs["everything"]["steps"][1]["with"]["python-version"], *jobs["plain"]["strategy"]["matrix"]["python"]}
    assert tried == {"3.11", "3.12", "3.13", "3.14"}
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"] == ">=3.11"


def test_the_image_has_labels_and_no_times_in_its_bytecode():
    dockerfile = (ROOT / "Dockerfile").read_text()
    for label in ("title", "description", "licenses", "version", "revision"):
        assert f"org.opencontainers.image.{label}=" in dockerfile
    installs = [line for line in dockerfile.splitlines() if "pip install" in line]
    assert all("--no-compile" in line for line in installs)
    assert "--invalidation-mode unchecked-hash" in dockerfile
