"""Closed forms of an algorithm, in place of many fits."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.data import Data


class LeaveOneOut(NamedTuple):
    """A closed form for what each row is predicted by a fit of all the others."""

    predict: Callable[[Any, Data], NDArray[np.float64]]
    """Maps (params, data) to predictions as those of `Algorithm.predict`; NaN in rows that need a fit without them."""
    unscaled: Callable[[Any], bool]
    """Maps params to True if shifting and scaling single columns leaves the predictions unchanged."""
