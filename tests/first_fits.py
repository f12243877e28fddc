"""The first fit and the first prediction of every algorithm on iris, in one process without servers.

`python -m tests.first_fits` prints JSON: processor seconds of each, and the kernels that were compiled.
"""

import json
import sys
import time

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


def measure(algorithm, task):
    """Processor seconds of the fit, with its evaluation, and of the predictions of the model that is read back."""
    table, spec = of(algorithm, task)
    begun = time.process_time()
    trained = run(table, algorithm, **spec)
    fitted = time.process_time()
    check_golden(decode(trained.blob), trained.golden)
    return fitted - begun, time.process_time() - fitted


def is_compiled_here(kernel):
    return any(kernel.compiled.stats.cache_misses.values())


def name(kernel):
    return f"{kernel.__module__}.{kernel.__name__}"


def main():
    seconds = {f"{algorithm} {task}": measure(algorithm, task) for algorithm, task in CASES}
    used = [kernel for kernel in jit.kernels() if kernel.ready]
    compiled = [name(kernel) for kernel in used if is_compiled_here(kernel)]
    json.dump({"seconds": seconds, "used": list(map(name, used)), "compiled": compiled}, sys.stdout)


if __name__ == "__main__":
    main()
