"""Kernels: numba only when called, no stale code from disk, and a place to keep it wherever we run."""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from app.base.errors import StartFailed
from app.ml.numerics import kernel_folders, kernel_locks, processor
from app.ml.numerics.decoding import json_numbers
from app.ml.numerics.jit import TEXT, inner, kernel

STEP = 1.0


@inner
def stepped(value):
    return value + STEP


@kernel("f8(f8[::1], f8[::1])", writes=["out"])
def running(values, out):
    total = 0.0
    for i in range(values.shape[0]):
        total += stepped(values[i])
        out[i] = total
    return total


def test_does_what_it_says():
    values, out = np.arange(5.0), np.zeros(5)
    values.setflags(write=False)
    assert running(values, out) == running.python(values, np.zeros(5)) == 15
    assert out.tolist() == [1, 3, 6, 10, 15]


def test_other_types_fail_rather_than_compile():
    with pytest.raises(TypeError):
        running(np.arange(5, dtype=np.float32), np.zeros(5))
    sealed = np.zeros(5)
    sealed.setflags(write=False)
    with pytest.raises(TypeError):
        running(np.arange(5.0), sealed)


def test_lean_calls_do_the_same(nowhere, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(nowhere))

    @kernel(f"i8({TEXT}, f8[::1])", writes=["out"], keep_gil=True)
    def longest(text, out):
        out[0] = text[0]
        return len(text)

    out = np.zeros(1)
    assert longest.lean(b"A" * 1000, out) == 1000  # which compiles it
    assert (longest.lean(b"BC", out), out.tolist()) == (2, [66])
    assert longest.lean is not longest.compiled
    for wrong in (out.astype(np.float32), [0.0], None):
        with pytest.raises(TypeError):
            longest.lean(b"A", wrong)
    values = np.arange(5.0)
    values.setflags(write=False)
    assert running.lean(values, np.zeros(5)) == running(values, np.zeros(5)) == 15


def test_only_who_says_so_keeps_the_gil():
    assert running.compiled.targetoptions["nogil"]
    assert not json_numbers.scan_small.compiled.targetoptions["nogil"]


def test_code_on_disk_is_keyed_by_all_it_depends_on(monkeypatch):
    before = running.digest()
    monkeypatch.setitem(globals(), "STEP", 2.0)
    assert running.digest() != before


def test_code_on_disk_is_found_by_other_processes():
    code = "from app.ml.numerics.decoding.json_numbers import scan_small; print(scan_small.digest())"
    run = [subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout for _ in range(2)]
    assert run[0] == run[1]


def test_processes_that_need_a_kernel_at_once_compile_it_once(tmp_path):
    """The second waits for the lock that the first holds, and writes nothing."""
    code = "from app.ml.numerics.clustering.compiled.seeding import remaining; stats = remaining.compiled.stats"
    run = [sys.executable, "-c", f"{code}; print(sum(stats.cache_misses.values()))"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    both = [subprocess.Popen(run, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sorted(int(each.communicate()[0]) for each in both) == [0, 1]


@pytest.mark.slow
def test_one_digest_whatever_python_hashes_names_to():
    """Of the kernels whose options are sets, and of code that has a set of names in it."""
    code = (
        "from app.ml.numerics import jit, kernel_digest\n"
        "from app.ml.numerics.clustering.compiled import bounds\n"
        "from app.ml.numerics.linear_models.compiled import row_sums\n"
        "from app.ml.numerics.neighbours.compiled import tiles\n"
        'within = kernel_digest.parts_of(compile(\'name in {"a", "bc", "def", "g"}\', \'here\', \'eval\'))\n'
        "print(*(kernel.digest() for kernel in jit.kernels()), *within)"
    )
    environments = [os.environ | {"PYTHONHASHSEED": str(seed)} for seed in range(10)]
    runs = [
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment)
        for environment in environments
    ]
    assert len({run.stdout for run in runs}) == 1
    assert len(set(runs[0].stdout.split())) > 10


def test_the_digest_depends_on_tables_and_refuses_what_it_cannot_see_into(monkeypatch):
    values = [np.arange(3), np.arange(3, dtype=np.int32), np.arange(4), {"a": 1}, frozenset({2, 1}), np.uint8(1), str]
    digests = set()
    for value in values:
        monkeypatch.setitem(globals(), "STEP", value)
        digests.add(running.digest())
    assert len(digests) == len(values)
    monkeypatch.setitem(globals(), "STEP", os.getcwd)
    with pytest.raises(TypeError, match="cannot depend on"):
        running.digest()


def test_a_frozen_process_that_holds_the_lock_holds_up_nobody(nowhere, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(nowhere))
    monkeypatch.setattr(kernel_locks, "COMPILING_SECONDS", 0.1)
    path = running.lock_path(nowhere)
    with kernel_locks.compiling_alone(path, bool), kernel_locks.compiling_alone(path, bool):
        pass  # each opens the file anew, so that the second waits, as another process would


def test_catalogue_costs_no_numba():
    code = (
        "import sys; from app.ml.catalogue.algorithm_files import catalogue; catalogue(); "
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No cache folder given, none for the user, none for temporary files."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")  # not even root makes a folder there
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null")
    return tmp_path


def test_works_where_nothing_can_be_written():
    code = (
        "import tempfile, numpy as np; tempfile.tempdir = '/dev/null'\n"
        "from app.ml.numerics.jit import kernel\nfrom app.ml.numerics.kernel_folders import cache_folder\n"
        "@kernel('i8(i8)')\n"
        "def twice(value): return 2 * value\n"
        "assert cache_folder() is None and twice(21) == 42"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": "/dev/null"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_what_the_environment_says_comes_first(nowhere, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(nowhere / "caches"))
    assert kernel_folders.cache_folder() == nowhere / "caches" / "valiant"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(nowhere / "given"))
    assert kernel_folders.cache_folder() == nowhere / "given"
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null/given")
    assert kernel_folders.cache_folder() == nowhere / "caches" / "valiant"


def test_without_a_home_it_is_where_temporary_files_go(nowhere, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(nowhere))
    folder = kernel_folders.cache_folder()
    assert folder == nowhere / f"valiant-{os.getuid()}"
    assert folder.stat().st_mode & 0o077 == 0


def test_a_folder_that_others_may_write_to_is_not_used(nowhere, monkeypatch):
    """Compiled code is run: whoever writes it is us."""
    monkeypatch.setattr(tempfile, "tempdir", str(nowhere))
    planted = nowhere / f"valiant-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    folder = kernel_folders.cache_folder()
    assert folder not in {None, planted}
    assert folder.stat().st_mode & 0o077 == 0


COUNTED = """
import numpy as np
from app.ml.numerics import jit
from app.ml.numerics.clustering.compiled.seeding import remaining
_ = remaining.compiled
print(jit.compilations(), remaining.on_disk or "")
"""


def compiled_by_another_process(**environment):
    """Number of kernels that a process compiles which needs one, and the folder that it is in afterwards."""
    run = subprocess.run(
        [sys.executable, "-c", COUNTED], check=True, capture_output=True, text=True, env=os.environ | environment
    )
    count, _, folder = run.stdout.strip().partition(" ")
    return int(count), Path(folder)


@pytest.mark.slow
def test_compiled_code_is_a_hint_from_trusted_owners_alone(tmp_path):
    """Shipped code is read, whatever the processor is named; damaged code and code that others may change is not."""
    built, cache = tmp_path / "built", tmp_path / "cache"
    pinned = {
        "VALIANT_PROCESSOR": "x86-64-v2",
        "NUMBA_CACHE_DIR": str(built),
        "VALIANT_KERNELS": str(tmp_path / "none"),
    }
    assert compiled_by_another_process(**pinned)[0] == 1
    (folder,) = built.iterdir()
    shipped = pinned | {"VALIANT_KERNELS": str(built), "NUMBA_CACHE_DIR": str(cache), "NUMBA_CPU_NAME": "skylake"}
    assert compiled_by_another_process(**shipped) == (0, folder)
    built.chmod(0o777)
    count, read = compiled_by_another_process(**shipped)
    assert (count, read.parent) == (1, cache)
    built.chmod(0o755)
    for file in [*folder.glob("*.nbc"), *read.glob("*.nbc")]:
        file.write_bytes(file.read_bytes()[:100])
    assert compiled_by_another_process(**shipped) == (1, folder)
    assert compiled_by_another_process(**shipped) == (0, folder)  # from the cache, which was mended


def test_modes_of_files_matter_where_others_can_reach_them(tmp_path):
    folder = tmp_path / "root" / kernel_folders.tag()
    folder.mkdir(mode=0o700, parents=True)
    for file in kernel_folders.kernel_files(folder, "name", 1):
        file.touch()
        file.chmod(0o664)
    assert kernel_folders.holds_kernel(folder, "name", 1)
    folder.chmod(0o755)
    assert not kernel_folders.holds_kernel(folder, "name", 1)
    file.chmod(0o644)
    assert not kernel_folders.holds_kernel(folder, "name", 1)
    kernel_folders.kernel_files(folder, "name", 1)[0].chmod(0o644)
    assert kernel_folders.holds_kernel(folder, "name", 1)
    assert not kernel_folders.holds_kernel(folder, "name", 2)
    folder.chmod(0o775)
    assert not kernel_folders.holds_kernel(folder, "name", 1)


def test_linux_and_llvm_see_the_same_instructions(monkeypatch):
    classes = frozenset().union(*processor.X86_CLASSES.values())
    by_linux = processor._instructions() & classes
    monkeypatch.setattr(processor, "CPUINFO", Path("/dev/null/none"))
    assert processor._instructions() & classes == by_linux


def test_the_processor_is_the_highest_class_or_the_one_that_is_named(monkeypatch):
    every = {name for names in processor.X86_CLASSES.values() for name in names}
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    classes = {"": "x86-64-v4", "avx512vl": "x86-64-v3", "fma": "x86-64-v2", "cx16": "x86-64"}
    for lacking, highest in classes.items():
        monkeypatch.setattr(processor, "_instructions", lambda lacking=lacking: every - {lacking})
        assert processor.highest_class() == highest
    monkeypatch.setenv("VALIANT_PROCESSOR", "x86-64-v3")
    with pytest.raises(StartFailed, match=r"none of x86-64-v3, it lacks cx16. Set `auto`, or x86-64,"):
        processor.demand_processor()
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert processor.highest_class() == "generic"
