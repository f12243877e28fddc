"""Prior probabilities of the classes as parameters give them: by a word, or one number for each class."""

from collections.abc import Iterator
from typing import Annotated, TypeAlias

import numpy as np
from pydantic import Field

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.algorithm import Vector

Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]


def prior_faults(priors: str | list[Share], classes: int) -> Iterator[Fault]:
    """Faults of a list. classes: k, or 0 where it is not known."""
    if isinstance(priors, str):
        return
    if classes and len(priors) != classes:
        yield Fault("/priors", f"There are {classes} classes, and {len(priors)} priors.")
    if not sum(priors) > 0:
        yield Fault("/priors", "At least one prior must be above 0.")


def class_priors(priors: str | list[Share], counts: Vector) -> Vector:
    """(k,) probabilities of sum 1, zero for a class without rows. counts: (k,) rows of each class.

    Raises InvalidData for a list of another length.
    """
    if isinstance(priors, list) and len(priors) != counts.size:
        raise InvalidData(f"There are {counts.size} classes, and {len(priors)} priors.")
    present = np.asarray(counts > 0)
    wanted = counts if priors == "learned" else np.ones(counts.size) if priors == "uniform" else np.array(priors)
    present_priors = np.where(present, wanted, 0.0)
    return np.asarray(present_priors / present_priors.sum() if present_priors.any() else present / present.sum())
