"""Kernels are compiled beforehand: which of them, in which order, and who says what is left."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import app
from app.base.settings import Settings
from app.cli import main
from app.commands.machine_checks import check_machine
from app.ml.catalogue.algorithm_files import catalogue, seconds_to_compile
from app.ml.numerics import kernel_folders
from app.ml.numerics.compiled_kernels import SERVING, describe, is_serving, kernels, missing
from app.services.kernels import warming


@pytest.fixture
def nothing_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("VALIANT_KERNELS", str(tmp_path / "kernels"))
    return kernel_folders.tagged_folder()


def test_a_check_names_what_is_missing(nothing_compiled, capsys):
    assert main(["warm", "--check"]) == 1
    assert "app.ml.numerics.trees.compiled.growth.grow" in capsys.readouterr().err


def test_the_doctor_counts_what_is_compiled_and_misses_nothing(nothing_compiled, tmp_path):
    (result,) = [one for one in check_machine(Settings(data=tmp_path)) if one.name == "kernels"]
    (_, count), tag = warming.count_compiled(), kernel_folders.tag()
    others = "a worker compiles the others beside its jobs, and `valiant warm` at once"
    assert result.detail == f"0 of {count} are compiled for {tag}; {others}"
    assert result.remedy is None


def test_predictions_come_first_and_trees_last_but_for_whom_a_job_waits(nothing_compiled):
    warming._import_kernels(serving=False)
    order = missing()
    first = [kernel for kernel in order if is_serving(kernel)]
    assert order[: len(first)] == first
    assert {kernel.__module__ for kernel in first} == set(SERVING)
    assert {(kernel.family, kernel.__name__) for kernel in order[-2:]} == {("trees", "grow")}
    assert str(describe(order)).startswith("compiling (once on this machine) 1/")
    wanted = next(kernel for kernel in kernels() if kernel.family == "linear_models")
    wanted.want()
    assert missing()[0].family == "linear_models"


def test_a_linear_model_waits_for_no_trees():
    assert seconds_to_compile(["ridge"]) == 0
    assert 0 < seconds_to_compile(["lasso"]) < seconds_to_compile(["random_forest", "lasso"])
    assert seconds_to_compile(["no such algorithm"]) == 0


@pytest.mark.slow
def test_processes_compile_everything_that_predictions_need_and_readers_compile_nothing(nothing_compiled):
    left = [str(step) for step in warming.warm(niceness=0, serving=True)]
    assert left[0].startswith("compiling (once on this machine)")
    assert list(warming.warm(serving=True)) == []
    read = (
        "from app.services.kernels import warming; warming._import_kernels(serving=True)\n"
        "from app.ml.numerics import jit\n"
        "from app.ml.numerics.compiled_kernels import is_serving\n"
        "assert all(kernel.read() for kernel in jit.kernels() if is_serving(kernel))\n"
        "assert jit.compilations() == 0"
    )
    nothing_compiled.chmod(0o500)
    subprocess.run([sys.executable, "-c", read], check=True)


def warmed_modules():
    """Names of the modules whose kernels `valiant warm` compiles."""
    program = (
        "from app.services.kernels import warming; warming._import_kernels(serving=False)\n"
        "from app.ml.numerics import jit\n"
        "print(*{kernel.__module__ for kernel in jit.kernels()})"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


@pytest.mark.slow
def test_every_file_with_kernels_is_warmed():
    root = Path(app.__file__).parent
    files = [file for file in root.rglob("*.py") if "\n@kernel(" in file.read_text()]
    assert {".".join(file.relative_to(root.parent).with_suffix("").parts) for file in files} == warmed_modules()


@pytest.fixture
def shipped(tmp_path):
    """Environment of a process with all kernels in a folder that it can only read, and an empty cache."""
    subprocess.run([sys.executable, "-P", "-m", "app.cli", "warm"], check=True)
    warming._import_kernels(serving=False)
    folder, empty = tmp_path / "kernels" / kernel_folders.tag(), tmp_path / "empty"
    folder.mkdir(parents=True)
    empty.mkdir(mode=0o555)
    for kernel in kernels():
        if kernel.__module__.startswith("app."):
            for file in kernel_folders.kernel_files(kernel.on_disk, kernel.file_name, len(kernel._signatures)):
                shutil.copyfile(file, folder / file.name)
                (folder / file.name).chmod(0o444)
    for read_only in (folder, folder.parent):
        read_only.chmod(0o555)
    own = {"VALIANT_KERNELS": str(folder.parent), "NUMBA_CPU_NAME": "skylake", "TMPDIR": str(tmp_path)}
    yield os.environ | own | dict.fromkeys(("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"), str(empty))
    assert not list(empty.iterdir())
    assert not list(tmp_path.glob("valiant-*"))


@pytest.mark.slow
def test_first_fits_of_all_algorithms_and_first_predictions_compile_nothing(shipped, capsys):
    """Kernels are shipped, the cache is empty, and whatever could be written to is read-only.

    What predictions use, a process that only predicts compiles before it is ready.
    """
    run = [sys.executable, "-m", "tests.first_fits"]
    root = Path(__file__).parents[3]
    result = json.loads(subprocess.run(run, check=True, capture_output=True, text=True, cwd=root, env=shipped).stdout)
    assert result["compiled"] == []
    assert len(result["seconds"]) == sum(len(entry.algorithm.tasks) for entry in catalogue().values())
    assert "app.ml.numerics.trees.compiled.growth.grow" in result["used"]
    assert {kernel.rpartition(".")[0] for kernel in result["predicting"]} <= set(SERVING)
    slowest = sorted(result["seconds"].items(), key=lambda item: -item[1][0])[:10]
    with capsys.disabled():
        print("\nProcessor seconds of the slowest first fits, and of their first predictions:")  # noqa: T201
        for name, (fit, predictions) in slowest:
            print(f"{name:40} {fit:6.2f} {predictions:6.3f}")  # noqa: T201
