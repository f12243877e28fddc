"""Every supervised learner explains single predictions, and parts that are to add up do."""

import numpy as np
import pytest

from app.ml.contract.explanations import explains, explanations

NONE = {"harmonic"}
"""Learners of which no sum of parts explains a prediction."""


def test_every_supervised_learner_explains(all_cases):
    for case in all_cases:
        if case.algorithm.offered and case.task.record.target is not None:
            assert explains(case.algorithm) == (case.entry.name not in NONE), case


@pytest.mark.parametrize("name", ["linear", "ridge", "lasso", "logistic", "linear_sgd"])
def test_parts_of_columns_add_up_to_linear_scores(all_cases, name):
    for case in of_name(all_cases, name):
        adds_up(case)


def of_name(all_cases, *names):
    return [case for case in all_cases if case.entry.name in names]


def adds_up(case):
    data, state = case.data(), case.fitted.state
    form = case.algorithm.linear(state)
    for row, explained in zip(data.x, explanations(case.algorithm, case.params, state, data.x), strict=True):
        parts = np.sum([part["contribution"] for part in explained["contributions"]], axis=0)
        np.testing.assert_allclose(np.add(explained["intercept"], parts), (row @ form.coef + form.intercept).squeeze())


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_parts_of_machines_add_up_to_their_values(all_cases, kernel):
    for case in of_name(all_cases, "svm", "svr", "transductive_svm"):
        machines_add_up(case, kernel)


def machines_add_up(case, kernel):
    params, data = case.algorithm.params(kernel=kernel), case.data()
    state = case.fit(data, params).state
    outputs = case.algorithm.outputs
    value = outputs["decision"].compute if "decision" in outputs else case.algorithm.predict
    values = value(params, state, data.x).reshape(len(data.x), -1)
    for row, explained in zip(values, explanations(case.algorithm, params, state, data.x), strict=True):
        for expected, machine in zip(row, explained.get("machines", [explained]), strict=True):
            parts = machine.get("support_vectors") or machine["contributions"]
            total = machine["intercept"] + sum(part["contribution"] for part in parts) + machine.get("others", 0.0)
            assert total == pytest.approx(expected, abs=1e-9)
            sizes = [abs(part["contribution"]) for part in machine.get("support_vectors", [])]
            assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("kernel", ["rbf", "matern52", "matern32"])
def test_gradients_of_a_process_add_up_to_its_mean(all_cases, kernel):
    (case,) = of_name(all_cases, "gaussian_process")
    params, data = case.algorithm.params(kernel=kernel, n_init=1), case.data()
    state = case.fit(data, params).state
    predicted, centre = case.predict(state, data.x[:8], params), case.predict(state, data.x.mean(axis=0)[None], params)
    for value, explained in zip(predicted, explanations(case.algorithm, params, state, data.x[:8]), strict=True):
        parts = sum(part["contribution"] for part in explained["contributions"])
        assert explained["base"] == pytest.approx(centre[0])
        assert explained["score"] == pytest.approx(value)
        assert explained["base"] + parts + explained["remainder"] == pytest.approx(value)
        assert abs(explained["remainder"]) < 1e-3 * np.ptp(data.y)


def test_parts_of_a_linear_process_are_those_of_the_plane(all_cases):
    """With nothing but a plane to learn, each column adds its slope times its way."""
    (case,) = of_name(all_cases, "gaussian_process")
    x = np.random.default_rng(0).normal(size=(40, 2))
    params = case.algorithm.params(kernel="rbf", length_scale=1e4, sigma=1e-6, n_init=1)
    data = case.of(x, x @ [2.0, -1.0] + 3)
    state = case.fit(data, params).state
    (explained,) = explanations(case.algorithm, params, state, np.array([[1.0, 2.0]]))
    parts = [part["contribution"] for part in explained["contributions"]]
    np.testing.assert_allclose(parts, ([1.0, 2.0] - x.mean(axis=0)) * [2.0, -1.0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_integrated_gradients_add_up_to_the_output(all_cases, activation):
    for case in of_name(all_cases, "mlp"):
        gradients_add_up(case, activation)


def gradients_add_up(case, activation):
    params, data = case.algorithm.params(activation=activation, epochs=20), case.data()
    state = case.fit(data, params).state
    predicted = case.predict(state, data.x, params)
    for row, explained in zip(predicted, explanations(case.algorithm, params, state, data.x), strict=True):
        parts = sum(part["contribution"] for part in explained["contributions"])
        assert explained["base"] + parts + explained["remainder"] == pytest.approx(explained["score"])
        assert abs(explained["remainder"]) < (1e-6 if activation == "tanh" else 1e-2) * (1 + abs(explained["score"]))
        if np.ndim(row):
            assert explained["class"] == row.argmax()
        else:
            assert explained["score"] == pytest.approx(row)
