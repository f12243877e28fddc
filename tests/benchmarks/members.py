"""Gain of a second slot for a learner of many members: CPU time of the trainer, alone and with a fork beside it.

    python tests/benchmarks/members.py [rows]

The trainer's own CPU time is what it waits for on a machine with a core for each; wall time tells how busy this one is.
"""

import os
import resource
import socket
import sys
import time

import numpy as np

from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Data, Task
from workers.parallel_fits import TAKEN, Group


def main(rows: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 20))
    data = Data.of(Task.CLASSIFICATION, x, (x[:, 0] * x[:, 1] + x[:, 2] + rng.normal(size=rows) > 0) * 1.0)
    for name in "random_forest", "bagging", "random_subspace", "stacking":
        measured(name, data)
        alone = measured(name, data)
        shared = measured(name, data, forks=1)
        sys.stdout.write(
            f"{name:16} alone {alone[0]:6.2f} s CPU, with one fork {shared[0]:6.2f} + {shared[1]:6.2f} s CPU: "
            f"{alone[0] / shared[0]:.2f} times as fast; by the clock {alone[2]:6.2f} and {shared[2]:6.2f} s\n"
        )


def measured(name: str, data: Data, forks: int = 0) -> tuple[float, float, float]:
    """Seconds: CPU of this process, CPU of forks, wall."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    slots = []

    def lend(expected: int) -> None:
        for _ in range(expected * 100):  # each for a slice; all of them are the same slot
            slot, end = os.pipe()
            slots.append(slot)
            try:
                socket.send_fds(ours, [TAKEN], [end])
            except BlockingIOError:
                os.close(end)
                return
            os.close(end)

    ours.setblocking(False)
    context = nested.context(0, each=Group(theirs, forks, lend))
    algorithm = find(name).algorithm
    begun, before = time.monotonic(), usage()
    algorithm.fit(algorithm.params(), data, context)
    own, children = (b - a for a, b in zip(before, usage(), strict=True))
    return own, children, time.monotonic() - begun


def usage() -> tuple[float, float]:
    who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    own, children = (sum(resource.getrusage(one)[:2]) for one in who)
    return own, children


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
