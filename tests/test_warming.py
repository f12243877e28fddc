"""Kernels are compiled beforehand: which of them, in which order, and who says what is left."""

import subprocess
import sys

import pytest

from app import warming
from app.cli import main
from app.ml.catalogue import seconds_to_compile
from app.ml.numerics import kernel_folders
from app.ml.numerics.compiled_kernels import SERVING, describe, is_serving, kernels, missing


@pytest.fixture
def nothing_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("VALIANT_KERNELS", str(tmp_path / "kernels"))
    return kernel_folders.tagged_folder()


def test_a_check_names_what_is_missing(nothing_compiled, capsys):
    assert main(["warm", "--check"]) == 1
    assert "app.ml.numerics.trees.compiled.growth.grow" in capsys.readouterr().err


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
        "from app import warming; warming._import_kernels(serving=True)\n"
        "from app.ml.numerics import jit\n"
        "assert all(kernel.read() for kernel in jit.kernels())\n"
        "assert jit.compilations() == 0"
    )
    nothing_compiled.chmod(0o500)
    subprocess.run([sys.executable, "-c", read], check=True)
