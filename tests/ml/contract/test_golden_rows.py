"""Golden rows hold the outputs beside the predictions: a version whose outputs changed does not go live."""

import copy

import numpy as np
import pytest

from app.base.errors import GoldenMismatch
from app.ml.models.cluster_description import offered_outputs
from app.ml.models.golden import ROWS, check_golden
from app.ml.models.model import decode
from app.ml.training.train import train
from tests.ml.contract.drawn_tables import plain


def test_a_changed_output_is_noticed(case):
    offered = offered_outputs(case.algorithm, case.task)
    if not any(output.applies(case.params) for output in offered.values()):
        return
    request = plain(case)
    made = train(request.planned(), request.table, data_digest="sha256:0")
    model, recorded = decode(made.blob), made.golden["outputs"]
    assert recorded.keys() <= offered.keys()
    assert recorded, "an output that is a number or several is recorded"
    for name, values in recorded.items():
        assert len(values) == ROWS
        changed = copy.deepcopy(made.golden)
        changed["outputs"][name][0] = np.add(values[0], 1e-6).tolist()
        with pytest.raises(GoldenMismatch):
            check_golden(model, changed)
    check_golden(model, made.golden)
