"""The shape and range of a prediction follow from the task; the extra functions keep to theirs."""

import json
import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ml.contract.algorithm import Accepts, Task


@settings(settings.get_profile("contract"), max_examples=12)
@given(choice=st.data())
def test_predictions_have_the_shape_of_their_task(case, shape_of_prediction, choice):
    params = choice.draw(case.drawn_params())
    fit = case.fit(case.data(), params)
    shape_of_prediction(case, case.predict(fit.state, case.data(rows=17, seed=2).x, params), rows=17)


def test_a_row_is_predicted_alike_alone_and_in_company(case):
    fit, x = case.fitted, case.data(rows=17, seed=2).x
    alone = np.concatenate([case.predict(fit.state, x[i : i + 1]) for i in range(len(x))])
    np.testing.assert_allclose(alone, case.predict(fit.state, x), rtol=1e-12, atol=1e-12 * np.abs(alone).max())


@settings(settings.get_profile("contract"), max_examples=6)
@given(choice=st.data())
def test_who_says_rowwise_gives_every_row_the_same_bits_in_any_company(case, choice):
    if not case.algorithm.rowwise:
        return
    shape = {"columns": choice.draw(st.sampled_from([2, 4, 31])), "classes": choice.draw(st.sampled_from([2, 3]))}
    fit, x = case.fit(case.data(**shape)), case.data(rows=70, seed=2, **shape).x
    together = case.predict(fit.state, x)
    for size in (1, 2, 3, 5, 8, 17, 64):
        start = choice.draw(st.integers(0, len(x) - size))
        some = case.predict(fit.state, x[start : start + size])
        assert some.tobytes() == np.ascontiguousarray(together[start : start + size]).tobytes()


def test_rows_far_from_all_others_are_predicted(case, shape_of_prediction):
    far = np.array([[1e150, -1e150, 1e150, 1e150], [-1e150, 0, 0, 1e-150], [0, 0, 0, 0]])
    fit = case.fitted
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shape_of_prediction(case, case.predict(fit.state, far), rows=3)


def test_no_rows_no_predictions(case):
    fit = case.fitted
    assert len(case.predict(fit.state, np.zeros((0, 4)))) == 0


def test_missing_and_categories_are_taken_as_declared(case, shape_of_prediction):
    data = case.mixed()
    fit = case.fit(data)
    shape_of_prediction(case, case.predict(fit.state, data.x), rows=len(data.x))
    if Accepts.MISSING in case.accepts:
        shape_of_prediction(case, case.predict(fit.state, np.full((3, 4), np.nan)), rows=3)
    if Accepts.CATEGORIES in case.accepts:
        unseen = data.x[~np.isnan(data.x).any(axis=1)][:3].copy()
        unseen[:, 1] = np.nan
        shape_of_prediction(case, case.predict(fit.state, unseen), rows=len(unseen))


def test_something_is_learned(case):
    """On rows not seen in the fit, a prediction beats the best constant one."""
    x, y = case.data(rows=200).x, case.data(rows=200).y
    fit = case.fit(case.of(x[:100], y[:100]))
    predicted = case.predict(fit.state, x[100:])
    if case.task is Task.REGRESSION:
        assert ((predicted - y[100:]) ** 2).mean() < 0.5 * y[100:].var()
    if case.task is Task.CLASSIFICATION:
        assert (predicted.argmax(axis=1) == y[100:]).mean() > 0.6
    if not case.task.supervised:
        assert len(np.unique(predicted, axis=0)) > 1


def test_extra_functions(case):
    algorithm, params, data = case.algorithm, case.params, case.mixed()
    state = case.fit(data).state
    n, predicted = len(data.x), case.predict(state, data.x)
    if algorithm.summary:
        json.dumps(algorithm.summary(params, state), allow_nan=False)
    if algorithm.explain:
        reasons = algorithm.explain(params, state, data.x)
        assert len(reasons) == n
        json.dumps(list(reasons), allow_nan=False)
    if algorithm.inverse:
        assert algorithm.inverse(params, state, predicted).shape == data.x.shape
    if algorithm.interval and case.task is Task.REGRESSION:
        bounds = algorithm.interval(params, state, data.x, 0.9)
        assert bounds.shape == (n, 2)
        assert (bounds[:, 0] <= predicted).all()
        assert (predicted <= bounds[:, 1]).all()
    if algorithm.objective:
        assert np.isfinite(algorithm.objective(params, state, data))
