"""Networks: facts of the textbook (LION 9), logistic regression as a case, and scikit-learn's networks as peers."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.neural_network import MLPClassifier, MLPRegressor

from app.ml.algorithms import autoencoder, logistic, mlp
from app.ml.contract.algorithm import ColumnUnits, Context, Data, Inputs, Size, Task
from app.ml.contract.difficulty_stages import Curriculum
from app.ml.numerics.networks.network_layers import layer_values

RNG = np.random.default_rng(8)
X = RNG.normal(size=(200, 3))
CODES = (X @ [1.0, -1.0, 0.5] + RNG.normal(size=200) > 0).astype(float)
CLASSES = Data.of(Task.CLASSIFICATION, X, CODES)
NUMBERS = Data.of(Task.REGRESSION, X, np.sin(2 * X[:, 0]) + X[:, 1])
EXACT = {"optimizer": "lbfgs", "l2": 0.0, "tol": 1e-7, "max_iter": 2000}


def fit(data, seed=0, start=None, **params):
    own = mlp.MLP(**params)
    if start is None:
        return own, mlp.fit(own, data, Context.of(seed))
    return own, mlp.fit_from(own, start, data, Context.of(seed))


def mse(own, state, data):
    return np.mean((mlp.predict(own, state, data.x) - data.y) ** 2)


def test_without_hidden_layers_it_is_logistic_regression():
    own, found = fit(CLASSES, hidden_layers=[], **EXACT)
    peer = logistic.Logistic(l2=1e-12, tol=1e-12)
    expected = logistic.predict(peer, logistic.fit(peer, CLASSES, Context.of(0)).state, X)
    np.testing.assert_allclose(mlp.predict(own, found.state, X), expected, atol=1e-5)
    squared, other = fit(CLASSES, hidden_layers=[], class_loss="squared", **EXACT)
    assert found.state.network.sizes == other.state.network.sizes
    assert np.abs(mlp.predict(squared, other.state, X) - expected).max() > 1e-3


def test_identity_layers_fit_a_plane():
    own, found = fit(NUMBERS, hidden_layers=[4, 3], activation="identity", **EXACT)
    design = np.column_stack([X, np.ones(200)])
    expected = design @ np.linalg.lstsq(design, NUMBERS.y, rcond=None)[0]
    np.testing.assert_allclose(mlp.predict(own, found.state, X), expected, atol=1e-4)


def test_twenty_units_fit_a_sine():
    x = np.linspace(0, 2 * np.pi, 100)[:, None]
    data = Data.of(Task.REGRESSION, x, np.sin(x[:, 0]))
    own, found = fit(data, hidden_layers=[20], optimizer="lbfgs", l2=0)
    assert mse(own, found.state, data) < 1e-3


@pytest.mark.parametrize("optimizer", ["lbfgs", "conjugate_gradient", "one_step_secant", "bold_driver", "adam", "sgd"])
def test_every_optimizer_beats_a_plane(optimizer):
    own, found = fit(
        NUMBERS, optimizer=optimizer, hidden_layers=[20], learning_rate=0.01 if optimizer == "adam" else None
    )
    design = np.column_stack([X, np.ones(200)])
    plane = np.mean((design @ np.linalg.lstsq(design, NUMBERS.y, rcond=None)[0] - NUMBERS.y) ** 2)
    assert mse(own, found.state, NUMBERS) < 0.6 * plane
    assert found.curves["loss"][-1] < found.curves["loss"][0]


@pytest.mark.parametrize("optimizer", ["gradient_descent", "sgd"])
def test_a_rate_that_is_too_large_is_reported(optimizer):
    own, found = fit(NUMBERS, optimizer=optimizer, learning_rate=1e4, activation="relu")
    assert not found.converged
    assert any("is too large" in warning for warning in found.warnings)
    assert np.isfinite(mlp.predict(own, found.state, X)).all()


def test_dropout_of_zero_is_none_and_predictions_are_drawn_from_nothing():
    plain, without = fit(NUMBERS), fit(NUMBERS, dropout=0.0)
    assert plain[1].state.network.flat.tobytes() == without[1].state.network.flat.tobytes()
    own, found = fit(NUMBERS, dropout=0.5)
    assert found.state.network.flat.tobytes() != plain[1].state.network.flat.tobytes()
    assert mlp.predict(own, found.state, X).tobytes() == mlp.predict(own, found.state, X).tobytes()


def test_a_curriculum_of_one_stage_is_a_fit_as_ever():
    difficulty = np.abs(X[:, 0])
    whole = fit(NUMBERS, epochs=5)[1]
    one = fit(replace(NUMBERS, curriculum=Curriculum(difficulty, 1)), epochs=5)[1]
    three = fit(replace(NUMBERS, curriculum=Curriculum(difficulty, 3)), epochs=5)[1]
    assert one.state.network.flat.tobytes() == whole.state.network.flat.tobytes()
    assert three.iterations == 15
    assert len(three.curves["loss"]) == 15


@pytest.mark.parametrize("optimizer", ["adam", "lbfgs"])
def test_an_early_stop_keeps_the_best_iteration(optimizer):
    _, found = fit(CLASSES, optimizer=optimizer, early_stopping=True, validation_fraction=0.3, l2=0, learning_rate=0.05)
    history = found.curves["validation_loss"]
    assert f"iteration {int(np.argmin(history)) + 1}." in found.warnings[-1]
    assert len(history) < 200


def test_vanishing_slopes_are_reported():
    deep = {"hidden_layers": [8] * 6, "activation": "logistic", "init_range": 0.5, "epochs": 2}
    _, found = fit(NUMBERS, **deep)
    assert any("vanish" in warning for warning in found.warnings)
    assert not any("vanish" in warning for warning in fit(NUMBERS, epochs=2)[1].warnings)
    summary = mlp.summary(mlp.MLP(**deep), found.state)
    assert len(summary["start_gradient_norms"]) == len(summary["saturation"]) + 1 == 7


def test_a_fit_starts_from_the_layers_of_another_target_and_frozen_ones_stay():
    _, donor = fit(NUMBERS, hidden_layers=[10, 6])
    other = Data.of(Task.CLASSIFICATION, X, CODES)
    _, found = fit(other, start=donor.state, hidden_layers=[10, 6], frozen_layers=2, epochs=5)
    for layer in range(2):
        np.testing.assert_allclose(found.state.network.weights[layer], donor.state.network.weights[layer], rtol=1e-6)
    _, free = fit(other, start=donor.state, hidden_layers=[10, 6], epochs=5)
    assert np.abs(free.state.network.weights[0] - donor.state.network.weights[0]).max() > 1e-4
    _, anew = fit(other, start=donor.state, hidden_layers=[7, 6], epochs=5)
    assert any("started anew" in warning for warning in anew.warnings)


def test_hidden_values_are_the_codes_of_the_autoencoder_that_it_starts_from():
    coder = autoencoder.Autoencoder(hidden_layers=[8], n_components=3)
    codes = autoencoder.fit(coder, Data.of(Task.PROJECTION, X), Context.of(0))
    own = {"hidden_layers": [8, 3], "frozen_layers": 2, "optimizer": "lbfgs", "max_iter": 3}
    _, found = fit(NUMBERS, start=codes.state, **own)
    np.testing.assert_array_equal(
        layer_values(found.state.network, "tanh", X, 2), autoencoder.predict(coder, codes.state, X)
    )


def test_a_moved_state_predicts_the_same_in_other_units():
    units = ColumnUnits(np.array([1.0, -2.0, 0.0]), np.array([0.5, 4.0, 1.0]))
    own, found = fit(NUMBERS, epochs=5)
    moved = mlp.moved(found.state, units)
    np.testing.assert_allclose(mlp.predict(own, moved, units.values(X)), mlp.predict(own, found.state, X), rtol=1e-10)


def test_an_update_lowers_the_loss_of_a_stream():
    own, found = fit(NUMBERS.take(np.arange(60)), hidden_layers=[20], epochs=5)
    state, before = found.state, mse(own, found.state, NUMBERS)
    for _ in range(40):
        state = mlp.update(own, state, NUMBERS, Context.of(0)).state
    assert mse(own, state, NUMBERS) < 0.7 * before


@pytest.mark.parametrize("task", [Task.CLASSIFICATION, Task.REGRESSION])
def test_held_out_errors_are_within_a_standard_error_of_scikit_learn(task):
    classes = task is Task.CLASSIFICATION
    table = (load_breast_cancer if classes else load_diabetes)()
    x, y = (table.data - table.data.mean(axis=0)) / table.data.std(axis=0), table.target.astype(float)
    train = np.arange(len(x)) % 2 == 0
    own, found = fit(Data.of(task, x[train], y[train]))
    predicted = mlp.predict(own, found.state, x[~train])
    if classes:
        peer = MLPClassifier(random_state=0).fit(x[train], y[train]).predict(x[~train])
        losses = [(one != y[~train]) * 1.0 for one in (predicted.argmax(axis=1), peer)]
    else:
        scale = y[train].std()
        peer = MLPRegressor(random_state=0, max_iter=500).fit(x[train], (y[train] - y[train].mean()) / scale)
        losses = [
            ((one - y[~train]) / scale) ** 2 for one in (predicted, peer.predict(x[~train]) * scale + y[train].mean())
        ]
    ours, theirs = losses
    assert ours.mean() <= theirs.mean() + theirs.std() / np.sqrt(len(theirs))


def test_faults_name_the_parameter():
    inputs = Inputs({}, Size(10, 2))
    found = mlp.faults(mlp.MLP(dropout=0.5, optimizer="lbfgs", frozen_layers=3), inputs)
    assert [fault.pointer for fault in found] == ["/dropout", "/frozen_layers"]
