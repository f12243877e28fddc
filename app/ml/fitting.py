"""One fit of some rows of a table, from preparation to judgement."""

from typing import Any, NamedTuple

import numpy as np

from app.ml.contract import Data, Fit, Labels, Learned, Progress, silent
from app.ml.evaluation import Evaluation, evaluate
from app.ml.material import Material
from app.ml.preparation import Preparation


class Fitted(NamedTuple):
    preparation: Preparation
    """Learned from the same rows."""
    data: Data
    fit: Fit[Any]
    learned: Learned


def fit_rows(material: Material, rows: Labels, seed: int, progress: Progress = silent) -> Fitted:
    """Everything learned from these rows, which may repeat, and from no other."""
    preparation = material.prepare(rows)
    data = material.data(preparation, rows)
    return Fitted(preparation, data, *material.fit(data, seed, progress))


def judge(material: Material, fitted: Fitted, rows: Labels, rng: np.random.Generator | None) -> Evaluation:
    """What these rows say of the fit; without error bars if there is no `rng`."""
    if not rows.size:
        return Evaluation([])
    data = material.data(fitted.preparation, rows)
    return evaluate(fitted.learned, data, fitted.data, material.classes, rng)
