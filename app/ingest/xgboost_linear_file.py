"""Weights of a linear model of XGBoost (booster `gblinear`), which treelite does not read.

Its sums are those of `src/gbm/gblinear.cc`: the constant of the output and the base score, then the product of each
known input and its weight, in the order of the columns and with 32 bits. A missing input counts for nothing. Every
output begins at the first base score, also where the file has one for each class.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ml.algorithms.imported_linear import ImportedLinear, State
from app.ml.contract.algorithm import Matrix, TargetKind, Task
from app.ml.models.parsed_model import ParsedColumn, ParsedModel, Probes
from app.ml.numerics.class_probabilities.link_functions import linked
from app.ml.numerics.trees.foreign_trees import damaged, unsupported

TRANSFORMS = {
    "reg:squarederror": "identity",
    "reg:absoluteerror": "identity",
    "reg:pseudohubererror": "identity",
    "reg:quantileerror": "identity",
    "reg:logistic": "sigmoid",
    "binary:logistic": "sigmoid",
    "binary:hinge": "step",
    "multi:softmax": "softmax",
    "multi:softprob": "softmax",
    "count:poisson": "exponential",
    "reg:gamma": "exponential",
    "reg:tweedie": "exponential",
    "rank:pairwise": "identity",
    "rank:ndcg": "identity",
    "rank:map": "identity",
}
MARGINS: dict[str, Callable[[float], Any]] = {
    "sigmoid": lambda score: np.log(score / (1 - score)),
    "exponential": np.log,
}
"""Sum of which the transform makes the base score; others have the score itself."""
PROBES, CELLS = 1000, 2**22
"""Probe rows, fewer of very many columns so that they have so many cells at most."""
DRAWN = 20261128
"""Seed of the probe rows."""


def parse(learner: Any, columns: tuple[ParsedColumn, ...], *, classifies: bool) -> ParsedModel:
    """Raises ImportUnsupported and InvalidData; KeyError, TypeError and ValueError for what is no such document."""
    objective = str(learner["objective"]["name"])
    if objective not in TRANSFORMS:
        raise unsupported(objective[:40], "/learner/objective/name", "The transform of its sums is not known here.")
    params = ImportedLinear.model_validate({
        "library": "xgboost", "objective": objective, "transform": TRANSFORMS[objective], "arithmetic": "float32",
    })  # fmt: skip
    d, k = len(columns), max(1, int(learner["learner_model_param"]["num_class"]))
    if (k > 1) != (params.transform == "softmax"):
        raise damaged("The number of classes is not one of the objective.")
    if int(learner["learner_model_param"].get("num_target", 1)) > 1:
        raise unsupported("several_outputs", "/learner", "The model predicts several numbers at once.")
    weights = np.array(learner["gradient_booster"]["model"]["weights"], np.float32)
    if weights.shape != ((d + 1) * k,) or not np.isfinite(weights).all():
        raise damaged("The weights are not one for each column and output, and a constant for each output.")
    coef = np.ascontiguousarray(weights.reshape(d + 1, k))
    start = coef[-1] + _base(learner["learner_model_param"]["base_score"], params.transform)
    if not np.isfinite(start).all():
        raise damaged("A sum begins at what is not finite.")
    rows = _rows(d)
    sums = _sums(rows, coef[:-1], start)
    task = Task.of_target(TargetKind.CLASSES if classifies else TargetKind.NUMBERS)
    with np.errstate(over="ignore"):
        probes = Probes(rows, sums, linked(params, sums))
    state = State(coef[:-1].astype(np.float64), start.astype(np.float64), max(2, k) if classifies else 0)
    named = tuple(column._replace(fill=0.0) for column in columns)
    return ParsedModel("imported_linear", params, state, task, named, probes, "the equations of XGBoost")


def _base(written: Any, transform: str) -> np.float32:
    """The first of "[0.5]" or "0.5", as a sum."""
    score = float(str(written).strip("[]").split(",")[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.float32(MARGINS[transform](score) if transform in MARGINS else score)


def _rows(d: int) -> Matrix:
    """(n, d) rows in all directions, long and short, with gaps; the last is empty."""
    rng, n = np.random.default_rng(DRAWN), max(2, min(PROBES, CELLS // d))
    rows = rng.normal(size=(n, d)) * np.exp(rng.normal(0, 2, size=(n, 1)))
    rows[rng.random(rows.shape) < 0.05] = np.nan
    rows[-1] = np.nan
    return rows.astype(np.float32).astype(np.float64)


def _sums(rows: Matrix, coef: NDArray[np.float32], start: NDArray[np.float32]) -> Matrix:
    """(n, k) one term after the other, with 32 bits."""
    sums = np.tile(start, (len(rows), 1))
    for column, weights in zip(rows.astype(np.float32).T, coef, strict=True):
        sums += np.where(np.isnan(column), np.float32(0), column)[:, None] * weights
    return sums.astype(np.float64)
