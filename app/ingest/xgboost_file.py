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
from app.ingest.xgboost_document import CheckedDocument, best_round, checked, column_count
from app.ml.contract.model_file_options import ALL, ModelFileOptions
from app.ml.models.parsed_model import ParsedColumn, ParsedModel
from app.ml.numerics.trees.foreign_trees import MAX_LEVELS, damaged, unsupported

CLASSIFYING = {"binary:logistic", "binary:hinge", "multi:softmax", "multi:softprob"}
NO_LEVELS: dict[str, list[Any]] = {"enc": [], "feature_segments": [], "sorted_idx": []}
MAX_ASCII = 0x7F


def parse(path: Path, options: ModelFileOptions = ALL) -> ParsedModel:
    """Raises ImportUnsupported and InvalidData."""
    import treelite  # noqa: PLC0415  as in treelite_trees

    document = _document(path.read_bytes())
    try:
        learner = document["learner"]
        if learner["gradient_booster"]["name"] == "gblinear":
            if options != ALL:
                where = "/learner/gradient_booster/name"
                raise unsupported("iterations", where, "A linear booster has no trees: leave iterations out.")
            return _linear(learner)
        written = checked(learner, document["version"], options)
        described = _described(learner, written)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
        raise damaged("The document is not that of a model of XGBoost.") from None
    return parsed(treelite.frontend.from_xgboost_json(written.text), described)


def _document(content: bytes) -> Any:
    if content.startswith(b"binf") or not content.lstrip()[:1] == b"{":
        raise damaged("Save the model as JSON or UBJSON: booster.save_model('model.ubj').")
    if content.lstrip()[1:].lstrip()[:1] in {b'"', b"}"}:
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise ubjson.malformed() from None
    return ubjson.parse(content)


def _described(learner: Any, written: CheckedDocument) -> Described:
    booster, objective = learner["gradient_booster"], str(learner["objective"]["name"])
    trees = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    return Described(
        library="xgboost",
        objective=objective[:200],
        classifies=objective in CLASSIFYING,
        columns=_columns(learner, trees, column_count(learner["learner_model_param"])),
        single=True,
        trees=written.trees,
        warnings=_warnings(learner, len(trees["trees"]), written),
    )


def _linear(learner: Any) -> ParsedModel:
    count, objective = column_count(learner["learner_model_param"]), str(learner["objective"]["name"])
    if not 0 < count < len(learner["gradient_booster"]["model"]["weights"]):  # before any memory is taken for names
        raise damaged("There are fewer weights than columns.")
    columns = _columns(learner, {}, count)
    if len(columns) != count or len({column.name for column in columns}) < count:
        raise damaged("The file does not name each of its columns, each differently.")
    return xgboost_linear_file.parse(learner, columns, classifies=objective in CLASSIFYING)


def _warnings(learner: Any, trees: int, written: CheckedDocument) -> tuple[str, ...]:
    best = best_round(learner)
    if best is None:
        return ()
    if written.trees == trees:
        warning = (
            f"All {trees} trees of the file are used, as Booster.predict uses them; its best_iteration is {best}, up "
            f"to which XGBClassifier and XGBRegressor predict. For those, import it with iterations: {best + 1}, or "
            "serve it with iterations: best."
        )
    else:
        warning = f"{written.trees} of the {trees} trees of the file are used; its best_iteration is {best}."
    return (warning,)


def _columns(learner: Any, trees: Any, count: int) -> tuple[ParsedColumn, ...]:
    names = [str(name) for name in learner.get("feature_names") or ()] or [f"f{j}" for j in range(count)]
    if len(names) != count:
        raise damaged("The file does not name each of its columns.")
    if not _has_levels(trees):
        return tuple(map(ParsedColumn, names))
    encoders = trees["cats"]["enc"]
    return tuple(_column(name, encoder) for name, encoder in zip(names, encoders, strict=True))


def _has_levels(trees: Any) -> bool:
    return any(len(encoder["values"]) for encoder in (trees.get("cats") or NO_LEVELS)["enc"])


def _column(name: str, encoder: Any) -> ParsedColumn:
    """Texts are one string of bytes, and offsets into it; others a list.

    Its writer cuts texts by characters and not by bytes: where a text has another letter than those of ASCII, all are
    cut wrongly, and the names are for the request to state.
    """
    values = np.asarray(encoder["values"])
    if not values.size:
        return ParsedColumn(name)
    if "offsets" not in encoder:
        return level_names(name, values.tolist())
    ends = np.asarray(encoder["offsets"]).tolist()
    if not 1 < len(ends) <= MAX_LEVELS + 1 or values.dtype.kind not in "iu":
        raise damaged("The categories of a column are not those of the file.")
    if ((values < 0) | (values > MAX_ASCII)).any():
        return ParsedColumn(name, tuple(map(str, range(len(ends) - 1))), "numeric", demands_names=True)
    if ends[0] != 0 or ends[-1] != values.size or any(start > end for start, end in pairwise(ends)):
        raise damaged("The categories of a column are not those of the file.")
    text = values.astype(np.uint8).tobytes().decode("ascii")
    return level_names(name, [text[start:end] for start, end in pairwise(ends)])
