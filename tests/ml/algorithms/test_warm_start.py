"""Warm starts: fits that start from the state of another fit, in other units of the columns."""

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from app.ml.algorithms import kmeans, linear_sgd, logistic, perceptron
from app.ml.contract.algorithm import ColumnUnits, Context, Data, Task

RNG = np.random.default_rng(11)
X = RNG.normal(size=(300, 4))
UNITS = ColumnUnits(np.array([1.0, -2.0, 0.0, 5.0]), np.array([0.5, 4.0, 1.0, 0.1]))
SAME = ColumnUnits(np.zeros(4), np.ones(4))
CODES = (X @ [1.0, -1.0, 0.5, 0.0] + RNG.normal(size=300) > 0).astype(float)
THREE = CODES + (X[:, 3] > 0.5)
NUMBERS = X @ [1.0, 2.0, -1.0, 0.0] + 3.0 + 0.1 * RNG.normal(size=300)


def classes(codes, x=X):
    return Data.of(Task.CLASSIFICATION, x, codes)


CASES = {
    "logistic": (logistic, logistic.Logistic(), classes(CODES)),
    "logistic of three classes": (logistic, logistic.Logistic(), classes(THREE)),
    "logistic by L-BFGS": (logistic, logistic.Logistic(solver="lbfgs"), classes(THREE)),
    "logistic loss": (linear_sgd, linear_sgd.LinearSGD(l2=0.01, tol=1e-5), classes(CODES)),
    "softmax": (linear_sgd, linear_sgd.LinearSGD(l2=0.01, tol=1e-6), classes(THREE)),
    "squares": (linear_sgd, linear_sgd.LinearSGD(l2=0.01), Data.of(Task.REGRESSION, X, NUMBERS)),
    "squares at a rate": (
        linear_sgd,
        linear_sgd.LinearSGD(learning_rate=0.1, tol=1e-4),
        Data.of(Task.REGRESSION, X, NUMBERS),
    ),
}


def fit(module, params, data, state=None):
    if state is None:
        return module.fit(params, data, Context.of(0))
    return module.ALGORITHM.warm_start.fit(params, state, data, Context.of(0))


@pytest.mark.parametrize("case", CASES)
def test_a_fit_that_starts_at_its_minimum_ends_there_with_the_same_bytes(case):
    module, params, data = CASES[case]
    whole = fit(module, params, data)
    again = fit(module, params, data, module.ALGORITHM.warm_start.moved(whole.state, SAME))
    assert whole.converged
    assert again.converged
    assert (again.iterations, whole.iterations > 0) == (0, True)
    assert again.state.coef.tobytes() == whole.state.coef.tobytes()
    assert again.state.intercept.tobytes() == whole.state.intercept.tobytes()


@pytest.mark.parametrize("case", CASES)
def test_a_start_near_the_minimum_saves_iterations_on_the_way_to_it(case):
    module, params, data = CASES[case]
    cold = fit(module, params, data)
    near = fit(module, params, data.take(np.arange(299)))
    warm = fit(module, params, data, near.state)
    assert warm.converged
    assert 0 < warm.iterations < cold.iterations
    assert module.objective(params, warm.state, data) == pytest.approx(
        module.objective(params, cold.state, data), rel=1e-7
    )


@pytest.mark.parametrize(
    "case", ["logistic", "logistic of three classes", "softmax", "squares", "perceptron", "kmeans"]
)
def test_a_state_predicts_the_same_in_other_units(case):
    more = {
        "perceptron": (perceptron, perceptron.Perceptron(average="never", epochs=5), classes(THREE)),
        "kmeans": (kmeans, kmeans.KMeans(n_clusters=3), Data.of(Task.CLUSTERING, X)),
    }
    module, params, data = (CASES | more)[case]
    state = fit(module, params, data).state
    moved = module.ALGORITHM.warm_start.moved(state, UNITS)
    if case == "kmeans":
        np.testing.assert_allclose(UNITS.values(state.centres), moved.centres)
    elif case == "perceptron":  # its shares are in units of the longest row
        wide = np.column_stack([UNITS.values(X), np.ones(len(X))])
        np.testing.assert_allclose(wide @ moved.coef.T, np.column_stack([X, np.ones(len(X))]) @ state.coef.T)
    else:
        np.testing.assert_allclose(
            module.predict(params, moved, UNITS.values(X)), module.predict(params, state, X), rtol=1e-9
        )


def test_weights_that_separate_the_rows_are_the_last_ones():
    data = classes((X[:, 0] > 0.0).astype(float), X + 0.2 * np.sign(X))
    whole = fit(perceptron, perceptron.Perceptron(), data)
    again = fit(perceptron, perceptron.Perceptron(), data, whole.state)
    assert whole.state.mistakes > 0 == again.state.mistakes
    assert again.iterations == 1 < whole.iterations
    assert again.state.coef.tobytes() == whole.state.coef.tobytes()
    assert np.isnan(again.state.bound)


def test_online_steps_are_those_of_scikit_learn_from_the_same_coefficients():
    start = linear_sgd.State(np.array([[0.5, -1.0, 0.0, 2.0]]), np.array([0.3]), np.ones(2, bool), 0.0, 1.0, 0)
    params = linear_sgd.LinearSGD(
        solver="online", class_loss="hinge", learning_rate=0.05, schedule="constant", epochs=1, shuffle=False, l2=0.0
    )
    found = fit(linear_sgd, params, classes(CODES), start).state
    peer = SGDClassifier(
        loss="hinge", alpha=0.0, learning_rate="constant", eta0=0.05, max_iter=1, tol=None, shuffle=False
    )
    peer.fit(X, CODES, coef_init=start.coef, intercept_init=start.intercept)
    np.testing.assert_allclose(found.coef, peer.coef_, rtol=1e-9)
    np.testing.assert_allclose(found.intercept, peer.intercept_, rtol=1e-9)


def test_a_loss_whose_minimum_needs_no_start_reports_so():
    params = linear_sgd.LinearSGD(loss="absolute")
    data = Data.of(Task.REGRESSION, X, NUMBERS)
    whole = fit(linear_sgd, params, data)
    again = fit(linear_sgd, params, data, whole.state)
    assert again.state.coef.tobytes() == whole.state.coef.tobytes()
    assert linear_sgd.NO_START in again.warnings


def test_rows_without_a_class_of_the_start_start_anew():
    start = fit(logistic, logistic.Logistic(), classes(THREE)).state
    two = Data.of(Task.CLASSIFICATION, X, CODES, classes=3)
    found = fit(logistic, logistic.Logistic(), two, start)
    assert logistic.OTHER_CLASSES in found.warnings
    assert found.state.coef.tobytes() == fit(logistic, logistic.Logistic(), two).state.coef.tobytes()
