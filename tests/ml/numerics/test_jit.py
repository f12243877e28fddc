"""Kernels: numba only when called, no stale code from disk, and a place to keep it wherever we run."""

import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from app.ml.numerics import jit
from app.ml.numerics.compiled_kernels import all_compiled, compile_all
from app.ml.numerics.decoding import json_numbers
from app.ml.numerics.jit import TEXT, inner, kernel
from app.ml.operations import kinds

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


def test_a_mark_says_that_all_kernels_are_on_disk(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(jit, "_kernels", [running])
    assert not all_compiled()
    compile_all()
    assert running.ready
    assert all_compiled()
    monkeypatch.setattr(jit, "_kernels", [running, kernel("f8(f8)")(lambda value: value + STEP)])
    assert not all_compiled()


def test_every_kernel_of_the_catalogue_is_in_its_file():
    kinds()
    origins = [(file, name) for file, name in jit.origins() if "tests" not in file.parts]
    assert len(origins) > 30
    assert all(f"def {name.partition('-')[0]}(" in file.read_text() for file, name in origins)


def test_a_frozen_process_that_holds_the_lock_holds_up_nobody(nowhere, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(nowhere))
    monkeypatch.setattr(jit, "COMPILING_SECONDS", 0.1)
    with jit._alone("kernel"), jit._alone("kernel"):
        pass  # each opens the file anew, so that the second waits, as another process would


def test_catalogue_costs_no_numba():
    code = "import sys; from app.ml.catalogue import catalogue; catalogue(); sys.exit('numba' in sys.modules)"
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
        "from app.ml.numerics.jit import cache_folder, kernel\n"
        "@kernel('i8(i8)')\n"
        "def twice(value): return 2 * value\n"
        "assert cache_folder() is None and twice(21) == 42"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": "/dev/null"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_what_the_environment_says_comes_first(nowhere, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(nowhere / "caches"))
    assert jit.cache_folder() == nowhere / "caches" / "valiant"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(nowhere / "given"))
    assert jit.cache_folder() == nowhere / "given"
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null/given")
    assert jit.cache_folder() == nowhere / "caches" / "valiant"


def test_without_a_home_it_is_where_temporary_files_go(nowhere, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(nowhere))
    folder = jit.cache_folder()
    assert folder == nowhere / f"valiant-{os.getuid()}"
    assert folder.stat().st_mode & 0o077 == 0


def test_a_folder_that_others_may_write_to_is_not_used(nowhere, monkeypatch):
    """Compiled code is run: whoever writes it is us."""
    monkeypatch.setattr(tempfile, "tempdir", str(nowhere))
    planted = nowhere / f"valiant-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    folder = jit.cache_folder()
    assert folder not in {None, planted}
    assert folder.stat().st_mode & 0o077 == 0
