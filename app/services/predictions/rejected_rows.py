"""Rows that a classifier rejects, and requests to file them where none can be."""

import numpy as np

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.formats.prediction import Extras, decided
from app.ml.contract.algorithm import Labels
from app.ml.models.model import Predicted
from app.services.predictions.predictions import Served


def check_review(served: Served, extras: Extras) -> None:
    """Raises InvalidRequest for a version that rejects no row."""
    model = served.model
    if model.classes is None or model.target is None:
        raise InvalidRequest(faults=[Fault("/query/review", "Only classifiers reject rows.")])
    if extras.policy is None and model.algorithm.known is None:
        detail = "Nothing rejects a row: add a rule, such as min_probability=0.8."
        raise InvalidRequest(faults=[Fault("/query/review", detail, "no_rejection")])


def rejected(predicted: Predicted, extras: Extras) -> Labels:
    """Places of the rows that the model, or the policy of the request, rejects."""
    if extras.policy is not None:
        _, decisions = decided(predicted, extras.policy)
        return np.flatnonzero(np.array(decisions) == "rejected")
    return np.zeros(0, np.intp) if predicted.unknown is None else predicted.unknown
