"""Back-propagation against central differences, and the facts of networks in the textbook (LION 9)."""

import itertools

import numpy as np
import pytest

from app.ml.numerics.networks.back_propagation import BackPropagation, NetworkRows, OutputLoss
from app.ml.numerics.networks.epochs import _masks, penalties
from app.ml.numerics.networks.gradient_check import gradient_error
from app.ml.numerics.networks.network_layers import activate, layer_values, outputs, outputs_from, slopes, started
from app.ml.numerics.networks.network_training import NetworkLoss, NetworkTask

ACTIVATIONS = ["tanh", "logistic", "relu", "identity"]
RNG = np.random.default_rng(3)
X, CODES = RNG.normal(size=(30, 4)), np.arange(30) % 3
WEIGHTS = RNG.uniform(0.5, 1.5, 30)


def rows_of(loss, width):
    if loss is OutputLoss.SQUARES:
        targets = np.sin(X @ RNG.normal(size=(4, width)))
    else:
        targets = np.eye(3)[CODES] if width == 3 else (CODES[:, None] > 0) * 1.0
    return NetworkRows(X, targets, WEIGHTS / WEIGHTS.mean())


def network_of(sizes, activation="tanh", seed=0):
    made = started(sizes, activation, (np.zeros(sizes[0]), np.ones(sizes[0])), np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    return made._replace(biases=tuple(rng.normal(size=bias.size) for bias in made.biases))


@pytest.mark.parametrize(
    ("activation", "loss", "width"), [*itertools.product(ACTIVATIONS, OutputLoss, [1, 3])], ids=str
)
def test_gradients_of_every_layer_are_central_differences(activation, loss, width):
    sizes = (4, 6, 5, width)
    task = NetworkTask(sizes=sizes, activation=activation, loss=loss)
    assert gradient_error(NetworkLoss(task, rows_of(loss, width), 0.03), network_of(sizes, activation).flat) < 1e-6


def test_a_wrong_gradient_is_found():
    task = NetworkTask(sizes=(4, 3, 1), activation="tanh", loss=OutputLoss.SQUARES)
    right = NetworkLoss(task, rows_of(OutputLoss.SQUARES, 1), 0.0)
    assert gradient_error(lambda point: (right(point)[0], 1.001 * right(point)[1]), network_of((4, 3, 1)).flat) > 5e-4


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_under_dropout_are_central_differences(activation):
    sizes, loss = (4, 6, 5, 1), OutputLoss.SQUARES
    rows, propagation = rows_of(loss, 1), BackPropagation(sizes, activation, loss, rows=30)
    masks = [mask.astype(float) for mask in _masks(0.4, sizes, np.random.default_rng(1))(30)]

    def mean(point):
        value = propagation(point, rows, 30.0, masks) / 30
        return value, propagation.gradient.copy()

    assert gradient_error(mean, network_of(sizes, activation).flat) < 1e-6


def test_the_gradient_of_a_batch_is_the_sum_of_those_of_its_rows():
    sizes, loss = (4, 5, 3), OutputLoss.LIKELIHOOD
    rows, point = rows_of(loss, 3), network_of(sizes).flat
    propagation, total = BackPropagation(sizes, "tanh", loss, rows=30), 0.0
    for row in range(30):
        propagation(point, rows.take(slice(row, row + 1)), 1.0)
        total = total + propagation.gradient.copy()
    propagation(point, rows, 1.0)
    np.testing.assert_allclose(propagation.gradient, total, rtol=1e-12, atol=1e-14)


def test_classes_without_rows_have_no_part():
    """The loss and the gradient are those of a network without their outputs."""
    sizes, rows = (4, 5, 3), rows_of(OutputLoss.LIKELIHOOD, 3)
    two = rows.take(CODES != 1)
    absent = np.array([False, True, False])
    task = NetworkTask(sizes=sizes, activation="tanh", loss=OutputLoss.LIKELIHOOD, absent=absent)
    network = network_of(sizes)
    small = network._replace(
        weights=(network.weights[0], network.weights[1][:, ~absent]),
        biases=(network.biases[0], network.biases[1][~absent]),
    )
    own = NetworkTask(sizes=(4, 5, 2), activation="tanh", loss=OutputLoss.LIKELIHOOD)
    value, gradient = NetworkLoss(task, two, 0.0)(network.flat)
    other, expected = NetworkLoss(own, two._replace(targets=two.targets[:, ~absent]), 0.0)(small.flat)
    assert value == pytest.approx(other, rel=1e-13)
    np.testing.assert_allclose(gradient[:25], expected[:25], rtol=1e-12, atol=1e-15)
    assert not gradient[25:].reshape(6, 3)[:, 1].any()


def test_frozen_layers_have_no_gradient():
    sizes = (4, 5, 3)
    tasks = [
        NetworkTask(sizes=sizes, activation="tanh", loss=OutputLoss.LIKELIHOOD, frozen=frozen) for frozen in (0, 1)
    ]
    free, frozen = (NetworkLoss(task, rows_of(task.loss, 3), 0.1)(network_of(sizes).flat)[1] for task in tasks)
    assert not frozen[:25].any()
    np.testing.assert_array_equal(frozen[25:], free[25:])


def test_the_logistic_function():
    """f(0) = ½, f(−a) = 1 − f(a), f′ = f(1 − f), finite at ±1000 (LION 9.0)."""
    a = np.array([0.0, 1.3, -1.3, 1000.0, -1000.0])
    f = activate(a.copy(), "logistic")
    assert f[0] == 0.5
    assert f[1] == pytest.approx(1 - f[2], rel=1e-15)
    assert f[1] == pytest.approx(1 / (1 + np.exp(-1.3)), rel=1e-15)
    assert (f[3], f[4]) == (1, 0)
    step = 1e-6
    slope = (activate(np.array([1.3 + step]), "logistic") - activate(np.array([1.3 - step]), "logistic")) / (2 * step)
    np.testing.assert_allclose(slopes(f[1:2], "logistic"), slope, rtol=1e-8)


def test_linear_layers_compose_to_one():
    network = network_of((4, 6, 5, 2), "identity")
    product = np.linalg.multi_dot(network.weights)
    one, two, three = network.biases
    shift = (one @ network.weights[1] + two) @ network.weights[2] + three
    np.testing.assert_allclose(outputs(network, "identity", X), X @ product + shift, atol=1e-10)


def test_outputs_from_a_layer_are_those_of_the_network():
    network = network_of((4, 6, 5, 2))
    for layer in (1, 2):
        again = outputs_from(network, "tanh", layer_values(network, "tanh", X, layer), layer)
        np.testing.assert_allclose(again, outputs(network, "tanh", X), rtol=1e-13, atol=1e-15)


def test_the_expected_sums_under_dropout_are_those_without():
    """All masks of three units: the mean over them, each with its probability, is the whole layer (LION 9.3.2)."""
    p, values, weights = 0.3, RNG.normal(size=3), RNG.normal(size=(3, 2))
    mean = sum(
        p ** (3 - sum(kept)) * (1 - p) ** sum(kept) * (values * kept / (1 - p) @ weights)
        for kept in itertools.product([0, 1], repeat=3)
    )
    np.testing.assert_allclose(mean, values @ weights, rtol=1e-13)
    (mask,) = _masks(p, (4, 50_000, 1), np.random.default_rng(0))(1)
    assert {*np.unique(mask)} == {0, np.float32(1 / (1 - p))}
    assert mask.mean() == pytest.approx(1, abs=0.02)


def test_slopes_vanish_through_layers_of_logistic_units():
    sizes = (4, *[8] * 6, 1)
    task = NetworkTask(sizes=sizes, activation="logistic", loss=OutputLoss.SQUARES)
    network = started(sizes, "logistic", (np.zeros(4), np.ones(4)), np.random.default_rng(0), 0.5)
    gradient = NetworkLoss(task, rows_of(task.loss, 1), 0.0)(network.flat)[1]
    assert np.abs(gradient[:40]).max() < 1e-3 * np.abs(gradient[-9:]).max()


def test_only_weights_are_penalised():
    np.testing.assert_array_equal(penalties((2, 1, 1), 0.5), np.float32([0.5, 0.5, 0, 0.5, 0]))
