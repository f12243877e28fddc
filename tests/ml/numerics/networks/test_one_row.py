"""The way of one row through a network against that of several rows."""

import numpy as np
import pytest

from app.ml.numerics.linear_models.softmax import probabilities
from app.ml.numerics.networks.compiled.one_row import KINDS, row_shares, standard_inputs, unit_values
from app.ml.numerics.networks.network_layers import FARTHEST_INPUT, activate, outputs, started

RNG = np.random.default_rng(0)


def test_inputs_are_standardised_and_cut_off():
    row, shift = np.array([1.0, 5.0, 1e9, -1e9]), np.array([0.5, 5.0, 0.0, 0.0])
    scale, found = np.array([2.0, np.inf, 1.0, 1.0]), np.empty(4)
    standard_inputs(row, shift, scale, FARTHEST_INPUT, found)
    assert found.tolist() == [0.25, 0.0, FARTHEST_INPUT, -FARTHEST_INPUT]


@pytest.mark.parametrize("activation", KINDS)
@pytest.mark.parametrize("size", [1.0, 1e3, 1e300])
def test_values_of_a_layer(activation, size):
    values, weights, bias, found = size * RNG.normal(size=7), RNG.normal(size=(7, 5)), RNG.normal(size=5), np.empty(5)
    unit_values(values, weights, bias, KINDS[activation], found)
    np.testing.assert_allclose(found, activate(values @ weights + bias, activation), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("scores", [[0.0, 0.0], [8e307, -8e307, 1.0], [-np.inf, 3.0, -700.0], [5.0]])
def test_shares_of_classes(scores):
    found = np.array(scores)
    row_shares(found)
    np.testing.assert_allclose(
        found, probabilities(np.array([scores, scores]))[0] if len(scores) > 1 else 1.0, rtol=1e-15
    )


@pytest.mark.parametrize("hidden", [(), (3,), (6, 4)])
@pytest.mark.parametrize("activation", KINDS)
def test_a_row_alone_has_the_outputs_it_has_among_others(activation, hidden):
    columns = RNG.normal(size=5), RNG.uniform(1, 2, 5)
    network, x = started((5, *hidden, 3), activation, columns, RNG), RNG.normal(size=(4, 5))
    alone = np.concatenate([outputs(network, activation, row[None]) for row in x])
    np.testing.assert_allclose(alone, outputs(network, activation, x), rtol=1e-12, atol=1e-14)
