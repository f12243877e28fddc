"""The class that each score of a classifier is of: all classes, those with training rows, or the second of two."""

from collections.abc import Sequence

import numpy as np

from app.ml.contract.algorithm import Labels
from app.ml.contract.labels import Class


def score_labels(classes: Sequence[Class], codes: Labels, scores: int) -> list[Class | None] | None:
    """codes: of the training rows. Null: a score that is of no class; None: the classes of the scores are not known."""
    if not classes:
        return [None] if scores == 1 else None
    seen = [classes[code] for code in np.unique(codes)]
    if scores in {len(classes), len(seen)}:
        return [*(classes if scores == len(classes) else seen)]
    return [seen[1]] if scores == 1 and len(seen) == 2 else None
