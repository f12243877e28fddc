"""Checks of a model that a parser has made of a file, whichever format it had."""

import math
from collections.abc import Iterable

import numpy as np

from app.ml.contract.labels import Class
from app.ml.models.parsed_model import ParsedModel
from app.ml.numerics.trees.foreign_trees import damaged, unsupported

MAX_NAME_LENGTH = 1000


def demand_storable(parsed: ParsedModel) -> None:
    """Raises InvalidData for names that no version can have, and ImportUnsupported for sums that overflow."""
    levels = [level for column in parsed.columns for level in column.levels or ()]
    labels = parsed.classes or ()
    texts = [column.name for column in parsed.columns] + levels + [label for label in labels if isinstance(label, str)]
    _demand_names([*texts, parsed.params.objective, parsed.parser])
    if any(column.levels is not None and len(set(column.levels)) < len(column.levels) for column in parsed.columns):
        raise damaged("A column has the same category twice.")
    if any(isinstance(label, float) and not math.isfinite(label) for label in labels) or _repeated(labels):
        raise damaged("It does not name each of its classes, each differently.")
    if parsed.trees:
        _demand_finite_sums(parsed)


def _demand_names(names: Iterable[str]) -> None:
    for name in names:
        if "\0" in name or len(name) > MAX_NAME_LENGTH or any("\ud800" <= letter <= "\udfff" for letter in name):
            raise damaged(f"A name in it has more than {MAX_NAME_LENGTH} letters, or one that no text may have.")


def _repeated(labels: tuple[Class, ...]) -> bool:
    return len({(type(label), label) for label in labels}) < len(labels)


def _demand_finite_sums(parsed: ParsedModel) -> None:
    """Refuse trees whose largest leaves overflow in sum: the library predicts no number, and no class."""
    trees, base = parsed.trees.trees, parsed.trees.base
    is_leaf = trees.column < 0
    leaf = np.zeros(trees.column.size)
    leaf[is_leaf] = np.abs(trees.values[trees.left[is_leaf], 0])
    with np.errstate(over="ignore"):
        largest = np.maximum.reduceat(leaf, trees.root).sum() + np.abs(base).max()
    if not largest <= np.finfo(parsed.params.arithmetic).max:
        raise unsupported(
            "overflow", "/trees", "The sums of its leaves are not finite: the library predicts no number."
        )
