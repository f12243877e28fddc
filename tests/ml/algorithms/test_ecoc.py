"""Error-correcting output codes: what becomes of a requested length."""

import numpy as np
import pytest

from app.ml.algorithms import ecoc
from app.ml.catalogue import nested
from app.ml.contract.algorithm import Data, Task


@pytest.mark.parametrize(
    ("bits", "length", "sentence"),
    [
        (40, 7, "there are no more ways to divide them"),  # 2³ − 1 ways to divide four classes in two
        (1, 2, "fewer cannot distinguish them"),
        (5, 5, None),
    ],
)
def test_a_code_of_another_length_than_requested_is_reported(bits, length, sentence):
    y = np.arange(40) % 4
    params = ecoc.ECOC(code="random", bits=bits, estimator={"name": "ridge"})
    data = Data.of(Task.CLASSIFICATION, np.random.default_rng(0).normal(size=(40, 2)) + y[:, None], y)
    fit = ecoc.fit(params, data, nested.context(0))
    assert ecoc.summary(params, fit.state)["bits"] == length
    expected = [] if sentence is None else [f"The code of 4 classes has {length} bits, not {bits}: {sentence}."]
    assert list(fit.warnings) == expected
