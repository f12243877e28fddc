"""Jobs of drawn shapes, algorithms and memory limits: what their plans state, and what they take.

    python -m tests.ml.training.job_memory FIRST LAST

Prints a line of JSON for each: the case, the memory that the plan states, or the code of a refusal, and how the job
ended. Each runs in a fork with its limit, as a trainer does, of a process that has the imports of every job.
"""

import json
import os
import select
import signal
import sys
from typing import NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa

from app.base.errors import InvalidRequest
from app.ml.contract.columns import TableColumn
from app.ml.jobs.train import KIND, TrainRequest
from app.ml.kinds.job import Inputs, Sheet, Source
from app.ml.numerics.compiled_kernels import load_from_disk
from app.ml.operations import kinds
from app.ml.training.planning.plan import plan
from app.processes.process_memory import give_back, limit
from workers.mapped_dataset import spooled, spooled_rows
from workers.template import written

MIB = 1 << 20
CHUNK_ROWS = 10_000
LARGE, MANY_ROWS = 1000, 200_000
FITS = {
    "regression": {
        **{name: {} for name in ("ridge", "linear", "lasso", "decision_tree", "linear_sgd")},
        "random_forest": {"n_estimators": 4},
        "gradient_boosting": {"n_estimators": 5},
        "bagging": {"estimator": {"name": "decision_tree"}, "n_estimators": 3},
    },
    "classification": {
        **{name: {} for name in ("logistic", "ridge", "generative_bayes", "decision_tree", "perceptron")},
        "random_forest": {"n_estimators": 4},
        "gradient_boosting": {"n_estimators": 3},
        "adaboost": {"n_estimators": 3},
        "ecoc": {"estimator": {"name": "ridge"}},
    },
    "clustering": {"kmeans": {"n_clusters": 3, "n_init": 1, "max_iter": 3}},
    "projection": {"pca": {"n_components": 2}, "random_projection": {"n_components": 2}},
    "density": {"gaussian": {}, "gmm": {"n_components": 2, "n_init": 1, "max_iter": 2}},
}


class Shape(NamedTuple):
    rows: int
    numbers: int
    categories: int
    """Columns of 12 levels each."""
    classes: int
    missing: float


class Case(NamedTuple):
    task: str
    algorithm: dict[str, object]
    shape: Shape
    memory_bytes: int


def drawn(number: int) -> Case:
    """A case; from LARGE on of many rows, which memory holds whole."""
    rng = np.random.default_rng(number)
    task = str(rng.choice([*FITS], p=[0.4, 0.4, 0.08, 0.07, 0.05]))
    name = str(rng.choice([*FITS[task]]))
    numbers, categories = int(rng.integers(1, 30)), int(rng.choice([0, 0, 1, 3]))
    cells = 10 ** (rng.uniform(4, 6) if rng.random() < 0.8 else rng.uniform(6.5, 6.8))  # these are learned in parts
    rows = MANY_ROWS if number >= LARGE else int(max(60, cells / (numbers + 12 * categories)))
    shape = Shape(rows, numbers, categories, int(rng.choice([2, 2, 3, 8])), float(rng.choice([0, 0, 0.1])))
    memory_bytes = 4096 * MIB if number >= LARGE else int(rng.uniform(170, 330)) * MIB
    return Case(task, {"name": name, **FITS[task][name]}, shape, memory_bytes)


def columns_of(case: Case) -> tuple[TableColumn, ...]:
    rows, numbers, categories, classes, missing = case.shape
    sheet = [TableColumn(f"x{j}", "numeric", int(missing * rows), rows) for j in range(numbers)]
    sheet += [TableColumn(f"c{j}", "categorical", 0, 12) for j in range(categories)]
    if case.task == "classification":
        sheet.append(TableColumn("y", "categorical", 0, classes))
    elif case.task == "regression":
        sheet.append(TableColumn("y", "numeric", 0, rows))
    return tuple(sheet)


def batches_of(case: Case):
    for start in range(0, case.shape.rows, CHUNK_ROWS):
        rng = np.random.default_rng([start, case.shape.rows])
        rows = min(CHUNK_ROWS, case.shape.rows - start)
        x = rng.normal(size=(rows, case.shape.numbers))
        y = x.sum(axis=1) + rng.normal(size=rows)
        cells = {f"x{j}": pa.array(x[:, j], mask=rng.random(rows) < case.shape.missing) for j in range(x.shape[1])}
        for j in range(case.shape.categories):
            cells[f"c{j}"] = pa.array([f"level{code}" for code in rng.integers(0, 12, rows).tolist()])
        if case.task == "classification":
            codes = (np.arange(rows) if start == 0 else y.astype(int)) % case.shape.classes
            cells["y"] = pa.array([f"class{code}" for code in codes.tolist()])
        elif case.task == "regression":
            cells["y"] = pa.array(y)
        yield pa.table(cells)


def request_of(case: Case) -> TrainRequest:
    target = {"target": "y"} if case.task in ("regression", "classification") else {}
    spec = {"model": "m", "dataset": str(UUID(int=0)), "algorithm": case.algorithm, "task": case.task, **target}
    return TrainRequest.model_validate(spec)


class Ended(NamedTuple):
    state: str
    """"succeeded", "out_of_memory", or the message of another error."""
    peak: int
    """Bytes that count towards the limit of a job, at most."""


def ended(case: Case, imports: int) -> Ended:
    """A job of the request in a process as a trainer is, with its limit. imports: bytes before anything is done."""
    beyond = max(0, written() - imports)
    inlet, outlet = os.pipe()
    child = os.fork()
    if not child:
        os.close(inlet)
        os.write(outlet, json.dumps(_state(case, beyond)).encode())
        os._exit(0)
    os.close(outlet)
    peak = 0
    while not select.select([inlet], [], [], 0.002)[0]:
        peak = max(peak, written(child))
    state = os.read(inlet, 4096).decode()
    os.close(inlet)
    _, status = os.waitpid(child, 0)
    return Ended(json.loads(state) if state else signal.strsignal(os.WTERMSIG(status)), peak - beyond)


def _state(case: Case, beyond: int) -> str:
    limit(case.memory_bytes + beyond)
    sheet = Sheet("sha256:0", case.shape.rows, columns_of(case))
    try:
        source = Source(sheet, batches_of(case), spooled, spooled_rows)
        KIND.run(request_of(case), Inputs((source,), memory_bytes=case.memory_bytes), lambda *_: None)
    except MemoryError:
        return "out_of_memory"
    except Exception as error:  # noqa: BLE001 - it is the result
        return repr(error)[:300]
    return "succeeded"


def planned(case: Case):
    """The plan, or the code of the refusal."""
    try:
        return plan(request_of(case), columns_of(case), case.shape.rows, case.memory_bytes)
    except InvalidRequest as refusal:
        (code,) = {fault.code for fault in refusal.faults}
        return code


def compile_kernels() -> None:
    """Load the compiled code of all fits, as a template does; what is not on disk is compiled by a process before."""
    if not os.fork():
        for task, fits in FITS.items():
            for name, params in fits.items():
                tiny = Case(task, {"name": name, **params}, Shape(200, 4, 1, 2, 0.1), 1 << 40)
                assert _state(tiny, 0) == "succeeded", tiny
        os._exit(0)
    assert os.wait()[1] == 0
    for _ in load_from_disk():
        pass


def main(first: int, last: int) -> None:
    kinds()
    imports = written()
    compile_kernels()
    for number in range(first, last):
        case, line = drawn(number), {"number": number}
        made = planned(case)
        if isinstance(made, str):
            line |= {"refused": made}
        else:
            give_back()
            end = ended(case, imports)
            line |= {"estimate": made.memory_bytes, "batch_rows": made.batch_rows, **end._asdict()}
        sys.stdout.write(json.dumps(line | {"case": case}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
