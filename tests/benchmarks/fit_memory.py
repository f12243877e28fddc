"""Memory of a fit beyond its rows: run as a process of its own, it prints the peak and the size of the model.

    python tests/benchmarks/fit_memory.py [--kept] CLASSES ROWS COLUMNS NAME PARAMETERS [NAME PARAMETERS] …

CLASSES is 0 for numbers. --kept: with what the allocator keeps of arrays that were freed.

Bytes that were resident at most, less those before, so that arrays inside compiled code count too. Linux only.
"""

import os

os.environ["NUMPY_MADVISE_HUGEPAGE"] = "0"  # 2 MB pages would round every array up

import ctypes
import gc
import json
import sys
from pathlib import Path

import numpy as np

from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Data, Task
from app.ml.models import state_format
from workers.mapped_dataset import give_large_arrays_back


def drawn(classes: int, rows: int, columns: int) -> Data:
    """As many rows of each class, if not of numbers."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, columns))
    y = x[:, 0] + x[:, 1] * x[:, 2] + rng.normal(size=rows)
    if not classes:
        return Data.of(Task.REGRESSION, x, y)
    return Data.of(Task.CLASSIFICATION, x, np.searchsorted(np.quantile(y, np.arange(1, classes) / classes), y))


def peak(name: str, given: dict[str, object], data: Data) -> dict[str, int]:
    algorithm = find(name).algorithm
    params = algorithm.params.model_validate(given)
    algorithm.fit(params, data.take(np.arange(6000)), nested.context(0))  # what is compiled is compiled
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    state = algorithm.fit(params, data, nested.context(0)).state
    arrays: dict[str, np.ndarray] = {}
    most = resident("VmHWM") - before
    state_format.pack(state, "state", arrays)
    return {"peak": most, "model": sum(array.nbytes for array in arrays.values())}


def resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


if __name__ == "__main__":
    if "--kept" in sys.argv:
        sys.argv.remove("--kept")
    else:
        give_large_arrays_back()  # as workers do
    classes, rows, columns, *specs = sys.argv[1:]
    data = drawn(int(classes), int(rows), int(columns))
    fits = zip(specs[::2], map(json.loads, specs[1::2]), strict=True)
    sys.stdout.write(json.dumps([peak(name, params, data) for name, params in fits]))
