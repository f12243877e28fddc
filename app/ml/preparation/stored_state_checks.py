"""Checks of a preparation that was read from storage: whether its parts fit together."""

import numpy as np

from app.ml.contract.columns import ColumnKind
from app.ml.preparation.arrow_columns import UNSEEN
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.target_encoding import Encoding


def checked(preparation: Preparation) -> Preparation:
    """The same; raises ValueError where its parts do not fit together."""
    inputs, learned, layout = preparation.inputs, preparation.learned, preparation.layout
    shape = (len(inputs) + layout.basis.width,)
    if any(part.shape != shape for part in learned) or (learned.scale == 0).any():
        raise ValueError("the parts of a preparation do not fit together")
    if not _fillable(preparation):
        raise ValueError("what stands for missing values does not fit the inputs")
    if any(column.levels is None and not ColumnKind(column.kind).measured for column in inputs):
        raise ValueError("a categorical input has no levels")
    numbers = {column.name for column in inputs if column.levels is None}
    if any(not function.columns or not numbers.issuperset(function.columns) for function in preparation.functions):
        raise ValueError("a function reads what is no number")
    if any(not _fits(encoding, preparation) for encoding in preparation.encodings):
        raise ValueError("an encoding does not fit its input")
    if preparation.codes.vocabularies and layout.names:  # levels that are no texts are found now, not at a prediction
        return preparation
    raise ValueError("a preparation without inputs")


def _fillable(preparation: Preparation) -> bool:
    """True if the replacements of missing values are numbers and codes."""
    fills, codes = preparation.fills, preparation.codes
    if fills is None:
        return True
    if fills.shape != (len(preparation.inputs),) or fills.dtype != np.float64 or np.isinf(fills).any():
        return False
    level_fills = fills[codes.categorical]
    counts = codes.counts[codes.categorical]
    return bool(
        (
            np.isnan(level_fills)
            | ((level_fills == np.floor(level_fills)) & (level_fills >= UNSEEN) & (level_fills < counts))
        ).all()
    )


def _fits(encoding: Encoding, preparation: Preparation) -> bool:
    codes = preparation.codes
    inside = 0 <= encoding.place < len(preparation.inputs) and bool(codes.categorical[encoding.place])
    return inside and encoding.is_sound(int(codes.counts[encoding.place]))
