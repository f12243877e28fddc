"""Compiles kernels in processes of its own, side by side and behind whatever else runs.

python -m app.services.kernels.warming [--check]: `valiant warm`, for whatever processor VALIANT_PROCESSOR names
python -m app.services.kernels.warming PARENT NICENESS all|serving: one of its processes, which ends with its parent
"""

import fcntl
import importlib
import os
import pkgutil
import platform
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from app.base.errors import StartFailed
from app.ml import numerics
from app.ml.numerics.compiled_kernels import (
    SERVING,
    Compiling,
    compile_missing,
    describe,
    is_serving,
    missing,
    seconds_of,
)
from app.ml.numerics.jit import Kernel, kernels
from app.ml.numerics.kernel_folders import PACKAGED, PINNED, tagged_folder
from app.ml.numerics.processor import SHIPPED_CLASSES, processor
from app.processes.parent_process import die_with

COMPILED_SUFFIXES = {".nbi", ".nbc"}
LOOK_SECONDS = 0.5
"""Time between two looks at what is on disk."""
NICENESS = 10
"""Niceness of processes that compile kernels for later."""
_INHERITED = ("HOME", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TMPDIR", *PINNED)
"""Variables that a process that compiles gets of the environment: no address, no password."""


def warm(*, niceness: int = NICENESS, serving: bool = False) -> Generator[Compiling, None, None]:
    """Compile all that is not on disk, and yield what remains every half a second, until nothing does.

    One caller at a time does so on a machine, with as many processes as there are processors; others wait for it.
    serving: only what predictions may need.
    """
    with ExitStack() as undo:
        left, children, lock = _left(serving=serving), list[subprocess.Popen[bytes]](), undo.enter_context(_lock_file())
        begun, work = time.monotonic(), sum(map(seconds_of, left))
        while left and (not children or any(child.poll() is None for child in children)):
            if not children and _locked(lock):
                children = [_start(niceness, serving=serving) for _ in range(min(_processors(), len(left)))]
                undo.callback(_end, children)
            done = work - sum(map(seconds_of, left))
            pace = (time.monotonic() - begun) / done if done > 0 else 1 / _processors()
            compiling = describe(left, pace=pace)
            if compiling is not None:
                yield compiling
            time.sleep(LOOK_SECONDS)
            left = _left(serving=serving)


def warm_here() -> None:
    """Compile for this processor, into the folder that other commands read, and print what remains."""
    for left in warm(niceness=0):
        _print(str(left))
    check(None)


def warm_into(folder: Path) -> None:
    """Compile for each class of processors that is shipped, into a folder that all may read; `Path()`: the package's.

    Raises StartFailed where a kernel could not be compiled.
    """
    folder = PACKAGED if folder == Path() else folder
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    for name in SHIPPED_CLASSES.get(platform.machine(), ()):
        _print(name)
        _run(folder, name)
    for tagged in filter(Path.is_dir, folder.iterdir()):
        tagged.chmod(0o755)
        for file in tagged.iterdir():
            if file.suffix in COMPILED_SUFFIXES:
                file.chmod(0o644)
            else:
                file.unlink()  # locks, of no use to readers
    check(folder)


def check(folder: Path | None) -> None:
    """Raises StartFailed, with their names, if kernels are missing: for this process, or in a folder for a class."""
    if folder is not None:
        folder = PACKAGED if folder == Path() else folder
        for name in SHIPPED_CLASSES.get(platform.machine(), ()):
            _run(folder, name, "--check")
        return
    names = [f"{kernel.__module__}.{kernel.__name__}" for kernel in _left(serving=False)]
    if names:
        raise StartFailed(f"Kernels are not compiled for {processor().name}, {len(names)}: {', '.join(names)}.")


def count_compiled() -> tuple[int, int]:
    """Number of kernels that are on disk for this processor, and of all."""
    left = len(_left(serving=False))
    return len(kernels()) - left, len(kernels())


def _run(folder: Path, name: str, *options: str) -> None:
    """Run this command for another class of processors: what is compiled for it is not run."""
    variables = {"VALIANT_PROCESSOR": name, "NUMBA_CACHE_DIR": str(folder), "VALIANT_KERNELS": str(folder)}
    command = [sys.executable, "-P", "-m", "app.services.kernels.warming", *options]
    if subprocess.run(command, env=os.environ | variables, check=False).returncode:  # noqa: S603 - our own module
        raise StartFailed(f"Kernels are not compiled for {name}.")


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _left(*, serving: bool) -> Sequence[Kernel[..., object]]:
    _import_kernels(serving=serving)
    return [kernel for kernel in missing() if is_serving(kernel) or not serving]


def _import_kernels(*, serving: bool) -> None:
    """Import the modules of kernels: of predictions alone, or all, which a process that only serves does without."""
    for name in SERVING:
        importlib.import_module(name)
    if not serving:
        importlib.import_module("app.ml.operations").kinds()
        for module in pkgutil.walk_packages(numerics.__path__, f"{numerics.__name__}."):
            if ".compiled." in module.name:  # of online learners, which no job uses
                importlib.import_module(module.name)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _start(niceness: int, *, serving: bool) -> subprocess.Popen[bytes]:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return subprocess.Popen(  # noqa: S603 - our own module, and numbers
        [
            sys.executable,
            "-P",
            "-m",
            "app.services.kernels.warming",
            str(os.getpid()),
            str(niceness),
            "serving" if serving else "all",
        ],
        env=inherited | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C in a terminal is for the parent
    )


def _end(children: Sequence[subprocess.Popen[bytes]]) -> None:
    for child in children:
        child.kill()
    for child in children:
        child.wait()


def _lock_file() -> IO[str]:
    folder = tagged_folder()
    return (Path(os.devnull) if folder is None else folder / "warming.lock").open("w")


def _locked(file: IO[str]) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def main() -> int:
    if len(sys.argv) < 4:  # by `_run`
        try:
            check(None) if "--check" in sys.argv else warm_here()
        except StartFailed as error:
            _print(str(error))
            return 1
        return 0
    parent, niceness, what = sys.argv[1:]
    die_with(int(parent))
    os.nice(int(niceness))
    _import_kernels(serving=what == "serving")
    compile_missing(serving=what == "serving")
    return 0


if __name__ == "__main__":
    sys.exit(main())
