"""The first fit and the first prediction of every algorithm on iris, in one process without servers.

`python -m tests.first_fits` prints JSON: processor seconds of each, the kernels that were used, by predictions and at
all, and those that were compiled.
"""

import json
import sys
import time
from contextlib import contextmanager

from app.ml.contract.algorithm import Task
from app.ml.models.golden import check_golden
from app.ml.models.model import decode
from app.ml.numerics import jit
from tests.ml.training.test_train import CASES, IRIS, run, with_target

FLOWERS = IRIS.drop_columns(["target"])


def of(algorithm, task):
    """Iris, and the part of a request that makes this task of it."""
    if task is Task.REGRESSION:
        return FLOWERS, {"target": "petal width (cm)"}
    _, spec = with_target(algorithm, task)
    return IRIS if "target" in spec else FLOWERS, spec


@contextmanager
def nothing_loaded(used):
    """Kernels are as they are in a process that begins; afterwards `used` has those that were called."""
    before = {kernel: (kernel._compiled, kernel.lean) for kernel in jit.kernels()}
    for kernel in before:
        kernel._compiled, kernel.lean = None, kernel._first
    yield
    used |= {kernel for kernel in jit.kernels() if kernel.ready}
    for kernel, (compiled, lean) in before.items():
        if compiled is not None:
            kernel._compiled, kernel.lean = compiled, lean


def measure(algorithm, task, predicting):
    """Processor seconds of the fit, with its evaluation, and of the predictions of the model that is read back."""
    table, spec = of(algorithm, task)
    begun = time.process_time()
    trained = run(table, algorithm, **spec)
    fitted = time.process_time()
    with nothing_loaded(predicting):
        check_golden(decode(trained.blob), trained.golden)
    return fitted - begun, time.process_time() - fitted


def is_compiled_here(kernel):
    return any(kernel.compiled.stats.cache_misses.values())


def name(kernel):
    return f"{kernel.__module__}.{kernel.__name__}"


def main():
    predicting = set()
    seconds = {f"{algorithm} {task}": measure(algorithm, task, predicting) for algorithm, task in CASES}
    used = [kernel for kernel in jit.kernels() if kernel.ready]
    names = {"used": used, "predicting": predicting, "compiled": filter(is_compiled_here, used)}
    json.dump({"seconds": seconds} | {key: sorted(map(name, value)) for key, value in names.items()}, sys.stdout)


if __name__ == "__main__":
    main()
