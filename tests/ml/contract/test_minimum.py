"""The objective of a fit is minimal: under drawn parameters and rows, nothing near the prediction is lower.

Near means two small steps, both ways along random directions through all numbers of the state. The smaller step is
where a wrong slope shows most: below it rounding hides the gain, above it curvature does.
"""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

STEPS = (1e-3, 3e-6)
DIRECTIONS = 12
SLACK = 1e-10


def nudged(state, step, rng):
    """Both neighbours of a state along one random direction; what is no real number stays."""
    moves = [rng.normal(size=np.shape(value)) * step * _size(value) if _real(value) else None for value in state]
    pairs = list(zip(state, moves, strict=True))
    return [type(state)(*(v if m is None else np.asarray(v) + sign * m for v, m in pairs)) for sign in (1, -1)]


def _real(value):
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def _size(value):
    array = np.asarray(value)
    return max(1e-3, np.abs(array[np.isfinite(array)]).max(initial=0.0))


@settings(settings.get_profile("contract"), max_examples=40)
@given(choice=st.data())
def test_nothing_near_is_lower(case, choice):
    if case.algorithm.objective is None:
        return  # test_documented demands a doctest instead
    params = choice.draw(case.drawn_params(solving=False))
    rows = choice.draw(st.integers(20, 60))
    data = case.data(
        rows=rows,
        columns=choice.draw(st.integers(1, 5)),
        classes=choice.draw(st.integers(2, 4)),
        seed=choice.draw(st.integers(0, 10**6)),
        weights=choice.draw(st.sampled_from([None, np.geomspace(0.2, 5, rows)])),
    )
    fit = case.fit(data, params)
    assume(fit.converged)
    found = case.algorithm.objective(params, fit.state, data)
    rng = np.random.default_rng(0)
    for step in STEPS:
        for _ in range(DIRECTIONS):
            for neighbour in nudged(fit.state, step, rng):
                value = case.algorithm.objective(params, neighbour, data)
                assert value >= found - SLACK * max(abs(found), 1e-12), (step, found - value)


def test_the_default_fit_gets_there(case):
    """So that a fit that never converges cannot pass the test above by never being looked at."""
    assert case.fitted.converged


def test_a_nudged_prediction_is_worse(case):
    """The objective depends on the state: a clear step away costs something."""
    if case.algorithm.objective is None:
        return
    data = case.data()
    state = case.fitted.state
    found = case.algorithm.objective(case.params, state, data)
    values = [case.algorithm.objective(case.params, n, data) for n in nudged(state, 0.3, np.random.default_rng(0))]
    assert max(values) > found
