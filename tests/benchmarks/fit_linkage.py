"""CPU seconds and peak memory of our linkages beside scipy's, fastcluster's and scikit-learn's, on one thread.

Needs fastcluster, and Linux for the memory: the resident size at its highest less that before. Run
`python tests/benchmarks/fit_linkage.py`; a ratio is ours over the best of theirs. A goal is the largest ratio of the
CPU seconds: average and complete linkage no slower than the faster of scipy and fastcluster, single linkage at most
half of scikit-learn, which computes it from the rows as ours does.
"""

import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them
os.environ["NUMPY_MADVISE_HUGEPAGE"] = "0"  # pages of 2 MB would round every array up

import fastcluster
import numpy as np
import scipy.cluster.hierarchy
from sklearn.cluster import AgglomerativeClustering

from app.ml.numerics.clustering.linkage import linkage

ROWS, COLUMNS = 10_000, 10
TIMES = 3
RIVALS = {"single": ["scikit-learn"], "average": ["scipy", "fastcluster"], "complete": ["scipy", "fastcluster"]}
"""Those that a goal compares with; of Ward's linkage all."""
GOALS = {"single": 0.5, "average": 1.0, "complete": 1.0}


class Cost(NamedTuple):
    """Of the best run in CPU seconds, and the largest in bytes."""

    seconds: float
    memory: float


def contestants(kind: Any, x: Any) -> Mapping[str, Callable[[], Any]]:
    return {
        "ours": partial(linkage, x, np.ones(len(x)), kind, 2.0),
        "scipy": partial(scipy.cluster.hierarchy.linkage, x, kind),
        "fastcluster": partial(fastcluster.linkage, x, kind),
        "scikit-learn": partial(AgglomerativeClustering(linkage=kind).fit, x),
    }


def cost(run: Callable[[], Any]) -> Cost:
    costs = [_once(run) for _ in range(TIMES)]
    return Cost(min(one.seconds for one in costs), max(one.memory for one in costs))


def _once(run: Callable[[], Any]) -> Cost:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the highest resident size is that of now
    before, begun = resident("VmRSS"), time.process_time()
    run()
    return Cost(time.process_time() - begun, resident("VmHWM") - before)


def resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


def line(kind: str, costs: Mapping[str, Cost]) -> str:
    theirs = [costs[name] for name in RIVALS.get(kind, [name for name in costs if name != "ours"])]
    ratios = [costs["ours"][i] / min(one[i] for one in theirs) for i in range(2)]
    shown = "".join(f" {one.seconds:8.3f} s {one.memory / 2**20:5.0f} MiB" for one in costs.values())
    goal = f"(goal {GOALS[kind]})" if kind in GOALS else ""
    return f"{kind:9}{shown} {ratios[0]:6.2f} {ratios[1]:6.2f} {goal}\n"


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    sys.stdout.write(f"{'':9}{''.join(f' {name:>20}' for name in contestants('ward', x))}   time memory\n")
    for kind in ("single", "average", "complete", "ward"):
        for run in contestants(kind, x[:50]).values():
            run()  # what is compiled or loaded at the first call is not counted
        sys.stdout.write(line(kind, {name: cost(run) for name, run in contestants(kind, x).items()}))
