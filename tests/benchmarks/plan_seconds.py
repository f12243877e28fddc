"""Time of a training that the dry run expects, beside the CPU time that it takes.

    python tests/benchmarks/plan_seconds.py [longest seconds] [algorithm or option] …

A dozen tables of different shapes: the dry run is to be right within a factor of three. A ratio above 1 is an estimate
that is too long. Each training runs in a process of its own, which is stopped after `longest` seconds of CPU time (30
unless given): its ratio is then an upper bound, and marked by <. Compiled code is compiled before. Both times have the
quarter of a second that the start of any training takes. Boosting by majority ends where a tree has too small an edge,
which no dry run can tell: its estimate is that of its first attempt, whole.
"""

import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.linalg
from threadpoolctl import threadpool_limits

from app.base.errors import InvalidData, InvalidRequest
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.columns import TableColumn
from app.ml.training.planning.cost import BASE_SECONDS
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

TREE = {"name": "decision_tree"}
SPECS: dict[str, dict[str, Any]] = {name: {"name": name} for name in sorted(catalogue())} | {
    "lasso best": {"name": "lasso", "selection": "lowest_error"},
    "ecoc of trees": {"name": "ecoc", "estimator": TREE},
    "bagging of trees": {"name": "bagging", "estimator": TREE},
}
WITHOUT_TARGET = "clustering", "density", "projection"
FORK = multiprocessing.get_context("fork")
"""A child has what its parent has compiled."""


class Shape(NamedTuple):
    rows: int
    numbers: int
    categories: int = 0
    """Columns of 20 levels each."""
    classes: int = 2
    missing: float = 0.0
    """Share of the numbers."""


SHAPES = {
    "tiny": Shape(60, 4),
    "small": Shape(500, 10),
    "narrow": Shape(5_000, 3),
    "middling": Shape(5_000, 20),
    "categories": Shape(5_000, 5, 5),
    "gaps": Shape(5_000, 20, 1, missing=0.1),
    "classes": Shape(5_000, 20, classes=12),
    "square": Shape(1_000, 300),
    "wide": Shape(200, 2_000),
    "long": Shape(50_000, 10),
    "large": Shape(50_000, 60),
    "longest": Shape(300_000, 8),
}


def main(longest: float, names: list[str]) -> None:
    ratios = list(printed(longest, names or list(SPECS)))
    within = sum(1 / 3 <= ratio <= 3 for ratio in ratios)
    sys.stdout.write(f"{within} of {len(ratios)} estimates are within a factor of three.\n")


def printed(longest: float, names: list[str]) -> Iterator[float]:
    for name in names:
        for task in "regression", "classification", *WITHOUT_TARGET:
            for title, shape in SHAPES.items():
                measured = seconds(SPECS[name], task, shape, longest)
                if measured is None:
                    continue
                foreseen, taken = measured
                bound = "<" if taken >= longest else " "
                ratio = foreseen / taken
                flag = "" if 1 / 3 <= ratio <= 3 or (foreseen > longest and bound == "<") else "  !"
                sys.stdout.write(
                    f"{name:26} {task:15} {title:11} {foreseen:9.2f} / {taken:8.2f} = {bound}{ratio:6.2f}{flag}\n"
                )
                sys.stdout.flush()
                if bound == " ":
                    yield ratio


def seconds(algorithm: dict[str, Any], task: str, shape: Shape, longest: float) -> tuple[float, float] | None:
    """Foreseen and taken; None if the dry run refuses it."""
    table, columns = drawn(shape, task)
    expected = {"algorithm": algorithm, "task": task} | ({} if task in WITHOUT_TARGET else {"target": "y"})
    spec = TrainSpec.model_validate(expected)
    try:
        planned = plan(spec, columns, table.num_rows)
    except InvalidRequest:
        return None
    if task in WITHOUT_TARGET and shape.classes > 2:
        return None
    warm, _ = drawn(shape._replace(rows=min(shape.rows, 120), numbers=min(shape.numbers, 6)), task)
    reduced = [column for column in columns if column.name in warm.column_names]
    train(plan(spec, reduced, warm.num_rows), warm, data_digest="sha256:0")  # compiled for the children to come
    return planned.seconds + planned.halvings, child_seconds(spec, table, columns, longest)


def child_seconds(spec: TrainSpec, table: pa.Table, columns: list[TableColumn], longest: float) -> float:
    """CPU time of a training in a process of its own, at most about `longest`."""
    ours, theirs = FORK.Pipe(duplex=False)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(longest) + 1, int(longest) + 2))
        begun = time.process_time()
        try:
            train(plan(spec, columns, table.num_rows), table, data_digest="sha256:0")
        except InvalidData as error:
            sys.stdout.write(f"{spec.algorithm.name} fails: {error.detail}\n")
        theirs.send(time.process_time() - begun)

    child = FORK.Process(target=work)
    child.start()
    theirs.close()
    try:
        taken = ours.recv()
    except EOFError:  # stopped by its limit
        taken = longest
    child.join()
    return float(taken) + BASE_SECONDS


def drawn(shape: Shape, task: str) -> tuple[pa.Table, list[TableColumn]]:
    rng = np.random.default_rng(0)
    rows, numbers, categories, classes, missing = shape
    x = rng.normal(size=(rows, numbers))
    y = x[:, 0] + x[:, 1] * x[:, 2] + (x[:, 1] > 0) + rng.normal(size=rows)
    gaps = rng.random(x.shape) < missing
    levels = rng.integers(0, 20, (rows, categories))
    y += rng.normal(size=(20, max(1, categories)))[levels, np.arange(categories)].sum(axis=1)
    cut = np.searchsorted(np.quantile(y, np.arange(1, classes) / classes), y)
    cells = {f"x{j}": pa.array(column, mask=gap) for j, (column, gap) in enumerate(zip(x.T, gaps.T, strict=True))}
    cells |= {f"c{j}": pa.array([f"level{code}" for code in column]) for j, column in enumerate(levels.T.tolist())}
    sheet = [TableColumn(f"x{j}", "numeric", int(gaps[:, j].sum()), rows) for j in range(numbers)]
    sheet += [TableColumn(f"c{j}", "categorical", 0, 20) for j in range(categories)]
    if task == "classification":
        cells["y"] = pa.array([f"class{code}" for code in cut.tolist()])
        sheet.append(TableColumn("y", "categorical", 0, classes))
    elif task == "regression":
        cells["y"] = pa.array(y)
        sheet.append(TableColumn("y", "numeric", 0, rows))
    return pa.table(cells), sheet


if __name__ == "__main__":
    scipy.linalg.lapack  # noqa: B018  its threads are limited only once it is loaded
    with threadpool_limits(1):
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0, sys.argv[2:])
