"""JSON or UBJSON document of an XGBoost model: what treelite leaves out, and what it cannot read.

References: https://xgboost.readthedocs.io, "Introduction to Model IO".
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from app.ingest import ubjson, xgboost_linear_file
from app.ingest.lightgbm_file import level_names
from app.ingest.treelite_trees import Described, parsed
from app.ml.models.parsed_model import ParsedColumn, ParsedModel
from app.ml.numerics.trees.foreign_trees import damaged, unsupported

CLASSIFYING = {"binary:logistic", "binary:hinge", "multi:softmax", "multi:softprob"}
BOOSTERS = {"gbtree", "dart"}
NO_LEVELS: dict[str, list[Any]] = {"enc": [], "feature_segments": [], "sorted_idx": []}


def parse(path: Path) -> ParsedModel:
    """Raises ImportUnsupported and InvalidData."""
    import treelite  # noqa: PLC0415  as in treelite_trees

    content = path.read_bytes()
    document, is_text = _document(content)
    try:
        if document["learner"]["gradient_booster"]["name"] == "gblinear":
            return _linear(document["learner"])
        described, trees = _described(document)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise damaged("The document is not that of a model of XGBoost.") from None
    if _has_levels(trees):  # codes in the trees are places in these lists, which treelite refuses to read
        trees["cats"] = NO_LEVELS
        model = treelite.frontend.from_xgboost_json(json.dumps(document, default=_plain))
    else:
        model = treelite.frontend.load_xgboost_model(str(path), format_choice="json" if is_text else "ubjson")
    return parsed(model, described)


def _document(content: bytes) -> tuple[Any, bool]:
    """The document, and whether it is text."""
    if content.startswith(b"binf") or not content.lstrip()[:1] == b"{":
        raise damaged("Save the model as JSON or UBJSON: booster.save_model('model.ubj').")
    if content.lstrip()[1:].lstrip()[:1] in {b'"', b"}"}:
        try:
            return json.loads(content), True
        except (ValueError, RecursionError):
            raise ubjson.malformed() from None
    return ubjson.parse(content), False


def _described(document: Any) -> tuple[Described, dict[str, Any]]:
    learner = document["learner"]
    booster, objective = learner["gradient_booster"], str(learner["objective"]["name"])
    if booster["name"] not in BOOSTERS:
        detail = "The boosters gbtree, dart and gblinear can be imported."
        raise unsupported(str(booster["name"])[:40], "/learner/gradient_booster/name", detail)
    trees = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    columns = int(learner["learner_model_param"]["num_feature"])
    described = Described(
        library="xgboost",
        objective=objective[:200],
        classifies=objective in CLASSIFYING,
        columns=_columns(learner, trees, columns),
        single=True,
        warnings=_warnings(learner, len(trees["trees"])),
    )
    return described, trees


def _linear(learner: Any) -> ParsedModel:
    count, objective = int(learner["learner_model_param"]["num_feature"]), str(learner["objective"]["name"])
    if not 0 < count < len(learner["gradient_booster"]["model"]["weights"]):  # before any memory is taken for names
        raise damaged("There are fewer weights than columns.")
    columns = _columns(learner, {}, count)
    if len(columns) != count or len({column.name for column in columns}) < count:
        raise damaged("The file does not name each of its columns, each differently.")
    return xgboost_linear_file.parse(learner, columns, classifies=objective in CLASSIFYING)


def _warnings(learner: Any, trees: int) -> tuple[str, ...]:
    best = dict(learner.get("attributes") or {}).get("best_iteration")
    if best is None:
        return ()
    warning = (
        f"The file holds all {trees} trees, as Booster.predict uses them; its best_iteration is {int(best)}, up to "
        "which XGBClassifier and XGBRegressor predict. For those, save booster[: best_iteration + 1]."
    )
    return (warning,)


def _columns(learner: Any, trees: Any, count: int) -> tuple[ParsedColumn, ...]:
    names = [str(name) for name in learner.get("feature_names") or ()] or [f"f{j}" for j in range(count)]
    if not _has_levels(trees):
        return tuple(map(ParsedColumn, names))
    return tuple(
        level_names(name, levels) if levels else ParsedColumn(name)
        for name, levels in zip(names, map(_levels, trees["cats"]["enc"]), strict=True)
    )


def _has_levels(trees: Any) -> bool:
    return any(len(one["values"]) for one in (trees.get("cats") or NO_LEVELS)["enc"])


def _levels(encoder: Any) -> list[Any]:
    """Texts are one string of bytes, and offsets into it; others a list."""
    values = np.asarray(encoder["values"])
    if "offsets" not in encoder:
        return list(values.tolist())
    text, ends = values.astype(np.uint8).tobytes(), np.asarray(encoder["offsets"]).tolist()
    return [text[start:end].decode() for start, end in pairwise(ends)]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError
