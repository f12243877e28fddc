"""Reports have names beside numbers: a list as long as there are columns or classes stands beside their names."""

import numpy as np

from app.ml.contract.algorithm import ColumnUnits
from app.ml.contract.named_numbers import Names, named
from app.ml.training.reporting.reporting import finite

COLUMNS = tuple(f"column {j}" for j in range(7))
CLASSES = tuple(f"class {j}" for j in range(6))
NAMED = {"column": COLUMNS, "columns": COLUMNS, "class": CLASSES, "classes": CLASSES, "then": CLASSES}
COMPONENTS = {
    f"representation.summary.{name}" for name in ("loadings", "explained_variance", "explained_variance_ratio")
}
MACHINES = {"dual_coefficients", "intercepts"}
COUNTS = {
    "autoencoder": {"layer_sizes"}, "mlp": {"layer_sizes"}, "transductive_svm": MACHINES, "two_step": COMPONENTS,
}  # fmt: skip
"""Lists whose length is that of something else: of machines, which are listed with their classes, or components."""


def summaries(case):
    params = case.params
    data = case.data(rows=72, columns=len(COLUMNS), classes=len(CLASSES))
    state = case.fit(data, params).state
    if case.algorithm.summary is not None:
        yield case.algorithm.summary(params, state)
    if case.algorithm.in_units is not None:
        yield case.algorithm.in_units(params, state, ColumnUnits(np.zeros(7), np.ones(7)))


def positions(value, names, path):
    """Paths to numbers that have a place in place of a name. names: lengths of the lists of names above."""
    if isinstance(value, list):
        if value and not isinstance(value[0], dict | str):
            yield from [path] if len(value) in {len(COLUMNS), len(CLASSES)} - names else []
        for part in value:
            yield from positions(part, names, f"{path}[]")
    elif isinstance(value, dict):
        names = names | {len(value[key]) for key in ("columns", "classes") if isinstance(value.get(key), list)}
        for key, part in value.items():
            if key in NAMED and not holds_objects(part) and not is_name(part, NAMED[key]):
                yield f"{path}.{key} = {part}"
            else:
                yield from positions(part, names, f"{path}.{key}")


def holds_objects(value):
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def is_name(value, names):
    return all(is_name(part, names) for part in value) if isinstance(value, list) else value in {None, *names}


def test_a_summary_has_names_beside_numbers(case):
    names = Names(COLUMNS.__getitem__, CLASSES.__getitem__)
    for summary in summaries(case):
        found = list(positions(finite(named(finite(summary), names)), frozenset(), ""))
        assert [path for path in found if path.strip(".") not in COUNTS.get(case.entry.name, ())] == []


def test_a_place_is_seen():
    wrong = {"columns": [*COLUMNS], "deep": {"mean": [0.0] * 7, "shares": [[0.0] * 6]}, "column": 3}
    assert list(positions(wrong, frozenset(), "")) == [".deep.shares[]", ".column = 3"]
