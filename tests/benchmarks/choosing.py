"""Quality and training time of every supervised algorithm on six public tables, for the guide's page on choosing.

    python -m tests.benchmarks.choosing [--guide] [algorithm …]

Each has its default parameters and learns from four of five folds. The score is the mean over the folds with its
standard error: accuracy for classes, R² for numbers. The time is the median of the CPU time of a training, preparation
and report included. --guide writes the tables into the page, best mean rank first.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import math
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy import stats
from sklearn.datasets import load_digits
from statsmodels import datasets

from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Accepts, Task
from tests.benchmarks.quality.contest import fitted
from tests.benchmarks.quality.tables import BUNDLED, Split, Table, folded

PAGE = Path(__file__).parents[2] / "app" / "docs" / "choosing.md"


class Cell(NamedTuple):
    """An algorithm on a table."""

    score: float
    error: float
    """Standard error of the score, corrected for folds that share rows."""
    seconds: float


def digits() -> pa.Table:
    bunch = load_digits()
    columns = {name: bunch.data[:, place] for place, name in enumerate(bunch.feature_names)}
    return pa.table(columns | {"digit": bunch.target.astype(str)})


def anes96() -> pa.Table:
    frame = datasets.anes96.load_pandas().data.drop(columns="logpopul")
    frame["vote"] = np.where(frame["vote"] == 1, "Dole", "Clinton")
    return pa.table(frame.to_dict("list"))


def grunfeld() -> pa.Table:
    frame = datasets.grunfeld.load_pandas().data
    return pa.table(frame.to_dict("list"))


def star98() -> pa.Table:
    frame = datasets.star98.load_pandas().data
    above, below = frame.pop("NABOVE"), frame.pop("NBELOW")
    return pa.table(frame.assign(share=above / (above + below)).to_dict("list"))


TABLES: Mapping[str, Table] = {
    "breast_cancer": BUNDLED["breast_cancer"],
    "digits": folded(digits, "digit", classes=True),
    "anes96": folded(anes96, "vote", classes=True),
    "diabetes": BUNDLED["diabetes"],
    "grunfeld": folded(grunfeld, "invest", classes=False),
    "star98": folded(star98, "share", classes=False),
}


def measured(algorithm: str, name: str) -> Cell:
    table = TABLES[name]
    each = [(split, fitted(algorithm, table, split)) for split in table.splits()]
    scores = np.array([_score(table, split, fit.losses) for split, fit in each])
    error = float(scores.std(ddof=1)) * math.sqrt(1 / scores.size + table.shared)
    return Cell(float(scores.mean()), error, float(np.median([fit.seconds for _, fit in each])))


def _score(table: Table, split: Split, losses: Mapping[str, float]) -> float:
    if table.classes:
        return 1 - losses["error"]
    truth = split.test[table.target].to_numpy(zero_copy_only=False)
    return 1 - losses["RMSE"] ** 2 / float(truth.var())


def measurable(name: str, task: Task) -> bool:
    """True if it learns this task, and is more than its estimator where no target is missing."""
    algorithm = catalogue()[name].algorithm
    return task in algorithm.tasks and Accepts.UNLABELLED not in algorithm.accepts


def lines(task: Task, algorithms: list[str]) -> Iterator[str]:
    """A table in Markdown, best mean rank first."""
    names = [name for name, table in TABLES.items() if table.classes == (task is Task.CLASSIFICATION)]
    able = [name for name in algorithms if measurable(name, task)]
    cells = {algorithm: list(map(partial(measured, algorithm), names)) for algorithm in able}
    scores = np.array([[cell.score for cell in cells[algorithm]] for algorithm in able])
    ranks = stats.rankdata(-scores, axis=0).mean(axis=1)
    yield f"| algorithm | {' | '.join(f'{name} | s' for name in names)} |"
    yield f"|---|{'---|---|' * len(names)}"
    for algorithm in np.array(able)[np.argsort(ranks, kind="stable")]:
        found = " | ".join(map(_shown, cells[algorithm]))
        yield f"| [`{algorithm}`](../ml/algorithms/{algorithm}.py) | {found} |"


def _shown(cell: Cell) -> str:
    return f"{cell.score:.3f} ± {cell.error:.3f} | {cell.seconds:.{2 if cell.seconds < 10 else 0}f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.choosing", description=__doc__.split("\n")[0])
    parser.add_argument("--guide", action="store_true", help="write the tables into the guide")
    parser.add_argument("algorithms", nargs="*", choices=[*catalogue(), []], metavar="algorithm")
    given = parser.parse_args()
    for task in (Task.CLASSIFICATION, Task.REGRESSION):
        table = "\n".join(lines(task, given.algorithms or list(catalogue())))
        print(table, flush=True)
        if given.guide:
            marks = rf"(<!-- measured {task} -->\n).*?(<!-- /measured {task} -->)"
            PAGE.write_text(re.sub(marks, rf"\g<1>{table}\n\g<2>", PAGE.read_text(), flags=re.DOTALL))
