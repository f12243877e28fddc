"""Text of a LightGBM model: what treelite leaves out, and what it would misread without a warning.

References: https://lightgbm.readthedocs.io, "Advanced Topics"; `src/io/tree.cpp` of LightGBM 4.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from app.ingest.lightgbm_text import CheckedText, Lines, checked
from app.ingest.treelite_trees import Described, parsed
from app.ml.contract.algorithm import JSON
from app.ml.contract.model_file_options import ALL, ModelFileOptions
from app.ml.models.parsed_model import ParsedColumn, ParsedModel
from app.ml.numerics.trees.foreign_trees import damaged, unsupported

CLASSIFYING = {"binary", "multiclass", "multiclassova"}
ZERO = float(np.float32(1e-35))
"""`kZeroThreshold`: numbers up to it, of either sign, are 0 before they meet a tree."""
PANDAS = "pandas_categorical:"
SIGMOID = re.compile(r"sigmoid:([-+.\deE]{1,30})")


def parse(path: Path, options: ModelFileOptions = ALL) -> ParsedModel:
    """Raises ImportUnsupported and InvalidData."""
    import treelite  # noqa: PLC0415  as in treelite_trees

    text = checked(path.read_bytes(), options.rounds)
    described = _described(text)
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.text.encode())
        file.flush()
        return parsed(treelite.frontend.load_lightgbm_model(file.name), described)


def _described(text: CheckedText) -> Described:
    objective = text.head.get("objective", "")
    warnings = [] if objective else ["The file names no objective: predictions are raw sums of the trees (raw_margin)."]
    return Described(
        library="lightgbm",
        objective=objective[:200],
        classifies=objective.split(" ")[0] in CLASSIFYING,
        columns=tuple(_columns(text.head, _levels(text.tail))),
        single=False,
        trees=text.trees,
        zero=ZERO,
        sigmoid=_sigmoid(objective),
        warnings=tuple(warnings),
    )


def _sigmoid(objective: str) -> float | None:
    """The factor with all of its digits, of which treelite keeps 32 bits."""
    stated = SIGMOID.search(objective)
    try:
        return float(stated.group(1)) if stated else None
    except ValueError:
        raise damaged("The factor of the objective is not a number.") from None


def _levels(tail: str) -> list[list[JSON]]:
    """Levels of the columns of categories in pandas' table, in their order; empty: they were codes."""
    written = [line.removeprefix(PANDAS) for line in tail.split("\n") if line.startswith(PANDAS)] or ["null"]
    try:
        levels: Any = json.loads(written[-1])
    except (ValueError, RecursionError):
        raise damaged("The line pandas_categorical is not JSON.") from None
    if levels is None:
        return []
    if not isinstance(levels, list) or not all(isinstance(column, list) for column in levels):
        raise damaged("The line pandas_categorical holds no lists.")
    return levels


def _columns(head: Lines, levels: list[list[JSON]]) -> Iterator[ParsedColumn]:
    """A column of categories has codes with colons between them in `feature_infos`, and no brackets."""
    names, infos = head["feature_names"].split(" "), head["feature_infos"].split(" ")
    categorical = [not info.startswith("[") and info != "none" for info in infos]
    if levels and len(levels) != sum(categorical):
        detail = "Not every column of categories was used: name no categories by pandas, but give codes in training."
        raise unsupported("pandas_categorical", "/pandas_categorical", detail)
    remaining = iter(levels)
    for name, has in zip(names, categorical, strict=True):
        yield level_names(name, next(remaining)) if has and levels else ParsedColumn(name)


def level_names(name: str, levels: list[JSON]) -> ParsedColumn:
    """Numbers as the text by which they are categories here. Raises ImportUnsupported for a mixture of types."""
    if all(isinstance(level, str) for level in levels):
        return ParsedColumn(name, tuple(levels))
    if all(isinstance(level, bool) for level in levels):
        return ParsedColumn(name, tuple(str(level).lower() for level in levels), "boolean")
    if all(type(level) in {int, float} for level in levels):
        return ParsedColumn(name, tuple(map(_short, levels)), "numeric")
    raise unsupported("mixed_levels", "/pandas_categorical", "The categories of a column are of several types.")


def _short(level: float) -> str:
    return str(int(level)) if float(level).is_integer() and abs(level) < 1e15 else repr(float(level))
