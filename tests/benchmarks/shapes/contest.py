"""Sides of a case in processes of their own that take turns, so that a busy machine troubles all alike.

The parent sends a line for each turn; the side replies with the seconds that it took and, once at its end, with its
measures and the peak of its resident memory above what was resident with the table drawn.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

TURNS, TURNS_OF_QUICK = 5, 3
SECONDS_OF_TURNS = 60.0
"""No further turn begins after so many seconds of one side."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Outcome(NamedTuple):
    seconds: float
    """Median of all turns: of the processor's time with one thread, else of the clock."""
    peak: int
    """Bytes."""
    work: Mapping[str, float]


class Contestant:
    """One side in a process of its own."""

    def __init__(self, family: str, case: str, side: str, threads: int) -> None:
        command = [sys.executable, "-m", "tests.benchmarks.shapes", "--side", side, "--family", family, "--case", case]
        environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.seconds: list[float] = []
        self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"The process ended with status {self._process.wait()}.")
        return json.loads(line)

    def _send(self, word: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        return self._read()

    def turn(self) -> None:
        self.seconds.append(self._send("turn"))

    def end(self) -> Outcome:
        last = self._send("end")
        self._process.wait()
        return Outcome(float(np.median(self.seconds)), last["peak"], last["work"])

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def compare(family: str, case: Any, threads: int, turns: int) -> Iterator[tuple[str, Outcome]]:
    """The outcome of ours, then of each rival."""
    contestants: dict[str, Contestant] = {}
    try:
        for side in ("ours", *case.rivals):
            contestants[side] = Contestant(family, case.name, side, threads)
        for _ in range(turns):
            for contestant in contestants.values():
                if sum(contestant.seconds) < SECONDS_OF_TURNS:
                    contestant.turn()
        for side, contestant in contestants.items():
            yield side, contestant.end()
    finally:
        for contestant in contestants.values():
            contestant.stop()


def serve(case: Any, side: str, draw: Any) -> None:
    """One side: takes turns as the parent requests them."""
    make = case.ours if side == "ours" else case.rivals[side]
    small = case.shape._replace(rows=min(case.shape.rows, 200), columns=min(case.shape.columns, 100))
    warm = make(draw(small))
    warm.work(warm.run())  # what is imported and compiled is so
    ready = make(draw(case.shape))
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, result = resident("VmRSS"), None
    threads = int(os.environ[THREAD_VARIABLES[0]])
    clock = time.process_time if threads == 1 else time.perf_counter
    peak = 0
    reply(None)
    for line in sys.stdin:
        if line.strip() == "end":
            reply({"peak": peak, "work": {name: float(value) for name, value in ready.work(result).items()}})
            return
        result = None
        begun = clock()
        result = ready.run()
        seconds = clock() - begun
        peak = max(peak, resident("VmHWM") - before)
        reply(seconds)


def reply(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))
