"""Grids of inputs, and tangents against calculus."""

import numpy as np
import pytest

from app.ml.contract.algorithm import Task
from app.ml.models.raw_rows import grid
from app.ml.queries import linearise


@pytest.fixture(scope="module")
def made(trained):
    from app.ml.models.model import decode

    return lambda *args, **how: decode(trained(*args, **how).blob)


def raw(model, length, width):
    """A row with these numbers and no category."""
    row = np.full((1, len(model.inputs)), -1.0)
    for place, column in enumerate(model.inputs):
        row[0, place] = {"length": length, "width": width}.get(column.name, 0.0)
    return row


def place(model, name):
    return [column.name for column in model.inputs].index(name)


def test_the_grid_has_every_combination_the_last_axis_fastest():
    base = np.array([[1.0, 2.0, 3.0]])
    got = grid(base, [(2, np.array([7.0, 8.0])), (0, np.array([4.0, 5.0, 6.0]))])
    assert got.tolist() == [[4, 2, 7], [5, 2, 7], [6, 2, 7], [4, 2, 8], [5, 2, 8], [6, 2, 8]]


def test_of_a_line_the_tangent_is_the_line_everywhere(made):
    model = made(algorithm="ridge", target="length")
    base, where = raw(model, 0, 1.3), np.array([place(model, "width")])
    found = linearise.tangent(model, base, where, relative_step=1e-5, tolerance=1e-6)
    _, scales = model.preparation.scaling.units
    column = model.preparation.layout.names.index("width")
    assert found.slopes[0, 0] == pytest.approx(model.state.coef.ravel()[column] / scales[column], rel=1e-9)
    inputs = model.inputs[where[0]]
    assert found.trusted[0].tolist() == [inputs.minimum, inputs.maximum]


def test_of_probabilities_the_slope_is_that_of_calculus(made):
    model = made(algorithm="logistic", target="species")
    assert model.task is Task.CLASSIFICATION
    base, where = raw(model, 5.9, 1.3), np.array([place(model, "length"), place(model, "width")])
    found = linearise.tangent(model, base, where, relative_step=1e-5, tolerance=0.1)
    # dp_k/dx = p_k (w_k - Σ_j p_j w_j), w read off the log odds of two far points on the line of log p.
    p = linearise.outputs(model, base)[0]
    for i, at in enumerate(where):
        moved = base.copy()
        moved[0, at] += 1.0
        w = np.log(linearise.outputs(model, moved)[0] / p)  # up to a constant, which cancels below
        np.testing.assert_allclose(found.slopes[i], p * (w - p @ w), rtol=1e-6)
        low, high = found.trusted[i]
        assert low < base[0, at] < high
        assert (low, high) != (model.inputs[at].minimum, model.inputs[at].maximum)  # a sigmoid is no line


def test_of_steps_the_slope_is_zero_and_the_output_varies(made):
    model = made(algorithm="decision_tree", target="species")
    base, where = raw(model, 5.9, 1.3), np.array([place(model, "width")])
    found = linearise.tangent(model, base, where, relative_step=1e-5, tolerance=0.1)
    assert not found.slopes.any()
    assert found.varies.any()


def test_trust_ends_where_the_tangent_first_fails():
    holds = np.array([True, False, True, True, False, True])
    assert linearise._around(holds, 2) == [2, 3]
    assert linearise._around(holds, 3) == [2, 3]
    assert linearise._around(np.array([True, True]), 0) == [0, 1]
    assert linearise._around(np.array([False, False, False]), 1) == [1, 1]
