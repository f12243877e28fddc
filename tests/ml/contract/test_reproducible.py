"""Same parameters, same rows, same seed: same bytes. And nobody's arrays are touched."""

import copy
import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st


@settings(settings.get_profile("contract"), max_examples=12)
@given(choice=st.data())
def test_two_fits_have_the_same_bytes(case, same_bytes, choice):
    params, seed = choice.draw(case.drawn_params()), choice.draw(st.integers(0, 2**63 - 1))
    one, other = (case.fit(case.mixed(), params, seed) for _ in range(2))
    same_bytes(one.state, other.state)
    assert (one.converged, one.iterations, one.warnings) == (other.converged, other.iterations, other.warnings)
    assert {k: list(v) for k, v in one.curves.items()} == {k: list(v) for k, v in other.curves.items()}
    x = case.mixed().x
    assert case.predict(one.state, x, params).tobytes() == case.predict(other.state, x, params).tobytes()


def test_the_state_is_the_one_declared(case):
    assert type(case.fitted.state) is case.algorithm.state


def test_watching_does_not_change_the_fit(case, same_bytes):
    seen = []
    watched = case.fit(case.data(), progress=lambda fraction, **measures: seen.append((fraction, measures)))
    same_bytes(watched.state, case.fitted.state)
    fractions = [fraction for fraction, _ in seen]
    assert fractions == sorted(fractions)
    assert all(0 <= fraction <= 1 for fraction in fractions)
    assert all(np.isfinite(value) for _, measures in seen for value in measures.values())


def test_inputs_are_left_alone(case):
    data = case.mixed()
    before = {
        field.name: np.copy(getattr(data, field.name))
        for field in dataclasses.fields(data)
        if isinstance(getattr(data, field.name), np.ndarray)
    }
    state = case.fit(data).state
    x = data.x.copy()
    case.predict(state, x)
    np.testing.assert_array_equal(x, data.x)
    for name, array in before.items():
        assert not getattr(data, name).flags.writeable, name
        np.testing.assert_array_equal(getattr(data, name), array, err_msg=name)


def test_predicting_leaves_the_state_alone(case, same_bytes):
    state = case.fit(case.data()).state
    before = copy.deepcopy(state)
    for value in state:
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    case.predict(state, case.data().x)
    same_bytes(state, before)
