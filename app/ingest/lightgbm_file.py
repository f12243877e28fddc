"""Text of a LightGBM model: what treelite leaves out, and what it would misread without a warning.

References: https://lightgbm.readthedocs.io, "Advanced Topics"; `src/io/tree.cpp` of LightGBM 4.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.ingest.treelite_trees import Described, parsed
from app.ml.contract.algorithm import JSON
from app.ml.models.parsed_model import ParsedColumn, ParsedModel
from app.ml.numerics.trees.foreign_trees import damaged, unsupported

MISSING_BITS, ZERO = 2, 1
"""Bits 2 and 3 of `decision_type` state what is missing: nothing, zeros, or NaN."""
CLASSIFYING = {"binary", "multiclass", "multiclassova"}
SPLITS = re.compile(rb"^decision_type=(.*)$", re.MULTILINE)
LINEAR = re.compile(rb"^is_linear=1\s*$", re.MULTILINE)
TREES, END = re.compile(rb"^Tree=", re.MULTILINE), re.compile(rb"^end of trees\s*$", re.MULTILINE)
PANDAS = b"\npandas_categorical:"


def parse(path: Path) -> ParsedModel:
    """Raises ImportUnsupported and InvalidData."""
    import treelite  # noqa: PLC0415  as in treelite_trees

    content = path.read_bytes()
    described = _described(content)
    return parsed(treelite.frontend.load_lightgbm_model(str(path)), described)


def _described(content: bytes) -> Described:
    head = _head(content)
    _demand_all_trees(content, head)
    if LINEAR.search(content):
        raise unsupported("linear_tree", "/trees", "Leaves hold linear models: train without linear_tree.")
    for line in SPLITS.finditer(content):
        if any(int(kind) >> MISSING_BITS & 3 == ZERO for kind in _whole(line.group(1))):
            detail = "Zeros count as missing: train without zero_as_missing, with NaN for missing values."
            raise unsupported("zero_as_missing", "/trees", detail)
    objective = head.get("objective", "")
    warnings = [] if objective else ["The file names no objective: predictions are raw sums of the trees (raw_margin)."]
    return Described(
        library="lightgbm",
        objective=objective,
        classifies=objective.split(" ")[0] in CLASSIFYING,
        columns=tuple(_columns(head, _levels(content))),
        single=False,
        warnings=tuple(warnings),
    )


def _head(content: bytes) -> dict[str, str]:
    """The lines `name=value` before the first tree."""
    if not content.startswith(b"tree\n") and not content.startswith(b"tree\r\n"):
        raise damaged("The text of a LightGBM model begins with a line that holds the word tree alone.")
    try:
        lines = content.partition(b"\nTree=")[0].decode().splitlines()
    except UnicodeDecodeError:
        raise damaged("The names in the file are not UTF-8.") from None
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _demand_all_trees(content: bytes, head: dict[str, str]) -> None:
    """A file that was cut off is a model of fewer trees, which treelite reads as it stands."""
    stated = len(head["tree_sizes"].split()) if "tree_sizes" in head else None
    if END.search(content) is None or stated not in (None, len(TREES.findall(content))):
        raise damaged("The file ends before the last of its trees does.")


def _whole(values: bytes) -> Iterator[int]:
    for value in values.split():
        if not value.isdigit() or len(value) > 3:
            raise damaged("The kind of a split is not a number.")
        yield int(value)


def _levels(content: bytes) -> list[list[JSON]]:
    """Levels of the columns of categories in pandas' table, in their order; empty: they were codes."""
    found = content.rpartition(PANDAS)[2].partition(b"\n")[0] if PANDAS in content else b"null"
    try:
        levels: Any = json.loads(found)
    except (ValueError, RecursionError):
        raise damaged("The line pandas_categorical is not JSON.") from None
    if levels is None:
        return []
    if not isinstance(levels, list) or not all(isinstance(one, list) for one in levels):
        raise damaged("The line pandas_categorical holds no lists.")
    return levels


def _columns(head: dict[str, str], levels: list[list[JSON]]) -> Iterator[ParsedColumn]:
    """A column of categories has codes with colons between them in `feature_infos`, and no brackets."""
    names, infos = head.get("feature_names", "").split(" "), head.get("feature_infos", "").split(" ")
    if len(names) != len(infos):
        raise damaged("The file does not name each of its columns.")
    categorical = [not info.startswith("[") and info != "none" for info in infos]
    if levels and len(levels) != sum(categorical):
        detail = "Not every column of categories was used: name no categories by pandas, but give codes in training."
        raise unsupported("pandas_categorical", "/pandas_categorical", detail)
    own = iter(levels)
    for name, has in zip(names, categorical, strict=True):
        yield level_names(name, next(own)) if has and levels else ParsedColumn(name)


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
