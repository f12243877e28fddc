"""A model that was written and read back is the same model, to the last bit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ml.contract.algorithm import Accepts, Task
from app.ml.contract.columns import InputColumn
from app.ml.models.model import Model, decode, encode
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.state import PreparationState


def stored(case, data, params):
    """A model whose preparation leaves the numbers as they are."""
    d = data.x.shape[1]
    inputs = tuple(
        InputColumn(name=f"x{j}", kind="categorical", levels=[str(i) for i in range(size)])
        if (size := int(data.levels[j]))
        else InputColumn(name=f"x{j}", kind="numeric")
        for j in range(d)
    )
    learned = PreparationState(np.zeros(d), np.zeros(d), np.ones(d), np.zeros(d, bool), np.zeros(d, bool))
    accepts = case.accepts
    return Model(
        name=case.entry.name,
        task=case.task,
        params=params,
        state=case.fit(data, params).state,
        preparation=Preparation(inputs, learned, Accepts.MISSING in accepts, Accepts.CATEGORIES in accepts),
        target="y" if case.task.supervised else None,
        classes=("a", "b", "c") if case.task is Task.CLASSIFICATION else None,
        receipt={"seed": 0},
    )


@settings(settings.get_profile("contract"), max_examples=12)
@given(choice=st.data())
def test_survives_storage(case, same_bytes, choice):
    data, params = case.mixed(), choice.draw(case.drawn_params())
    model = stored(case, data, params)
    blob = encode(model)
    again = decode(blob)
    assert again.params == params
    same_bytes(again.state, model.state)
    assert encode(again) == blob
    one, other = model.predict_raw(data.x), again.predict_raw(data.x)
    assert one.values.tobytes() == other.values.tobytes()
    assert (one.probabilities is None) == (other.probabilities is None)
    if one.probabilities is not None:
        assert one.probabilities.tobytes() == other.probabilities.tobytes()


def test_what_it_says_of_itself_survives_too(case):
    data = case.mixed()
    model = stored(case, data, case.params)
    again = decode(encode(model))
    for tell in (
        case.algorithm.summary,
        case.algorithm.explain and (lambda p, s: case.algorithm.explain(p, s, data.x)),
    ):
        if tell:
            assert tell(model.params, model.state) == tell(again.params, again.state)
