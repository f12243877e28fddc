"""Faults of data that would make a job fail are refused by the plan, where a data sheet shows them."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import InvalidData, InvalidRequest
from app.ml.contract.columns import TableColumn
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

ROWS = 40
NUMBERS = {
    "x": np.linspace(-1, 1, ROWS),
    "area": np.linspace(0, 9, ROWS),
    "zero": np.r_[0.0, np.linspace(1, 2, ROWS - 1)],
    "gaps": np.r_[np.nan, np.linspace(1, 2, ROWS - 1)],
    "tiny": np.r_[1e-200, np.linspace(1, 2, ROWS - 1)],
    "good": np.linspace(0.5, 2, ROWS),
    "price": np.linspace(0, 100, ROWS),
}
TABLE = pa.table({name: pa.array(values, from_pandas=True) for name, values in NUMBERS.items()}).append_column(
    "kind", pa.array([f"k{i % 3}" for i in range(ROWS)])
)
SHEET = [
    *(
        TableColumn(
            name,
            "numeric",
            int(np.isnan(values).sum()),
            ROWS,
            minimum=float(np.nanmin(values)),
            maximum=float(np.nanmax(values)),
        )
        for name, values in NUMBERS.items()
    ),
    TableColumn("kind", "categorical", 0, 3),
]


def spec(**more):
    expected = {"target": "price", "features": ["x", "area"], "algorithm": {"name": "ridge"}}
    return TrainSpec.model_validate(expected | more | {"validation": {"test_fraction": 0}})


def formula(text, **more):
    return {"preprocessing": {"basis": [{"kind": "expression", "expression": text}], **more}}


FAIL = {
    "zero weights": ({"weights": "zero"}, "/weights", "bad_weight"),
    "missing weights": ({"weights": "gaps"}, "/weights", "missing_weight"),
    "missing errors": ({"sigma": "gaps"}, "/sigma", "missing_weight"),
    "errors out of proportion": ({"sigma": "tiny"}, "/sigma", "bad_weight"),
    "a logarithm of zeros": ({"preprocessing": {"target": "log"}}, "/preprocessing/target", "undefined"),
    "a reciprocal of zeros": ({"preprocessing": {"target": "reciprocal"}}, "/preprocessing/target", "undefined"),
    "a formula of zeros": (formula("log(area)"), "/preprocessing/basis/0/expression", "undefined"),
    "a formula of negative numbers": (formula("2 + sqrt(x)"), "/preprocessing/basis/0/expression", "undefined"),
    "priors for other classes": (
        {"target": "kind", "algorithm": {"name": "generative_bayes", "priors": [0.5, 0.5]}},
        "/algorithm/priors",
        "wrong_length",
    ),
    "codewords for other classes": (
        {"target": "kind", "algorithm": {"name": "ecoc", "code_words": [[0], [1]]}},
        "/algorithm/code_words",
        "wrong_length",
    ),
    "priors of a member": (
        {
            "target": "kind",
            "algorithm": {
                "name": "committee",
                "estimators": [{"name": "knn"}, {"name": "generative_bayes", "priors": [0.5, 0.5]}],
            },
        },
        "/algorithm/estimators/1/priors",
        "wrong_length",
    ),
}


@pytest.mark.parametrize(("more", "pointer", "code"), FAIL.values(), ids=FAIL)
def test_what_would_fail_for_its_data_is_refused_before_any_row_is_read(more, pointer, code):
    with pytest.raises(InvalidRequest) as refusal:
        plan(spec(**more), SHEET, ROWS)
    assert [(fault.pointer, fault.code) for fault in refusal.value.faults] == [(pointer, code)]
    unknown = [column._replace(minimum=None, maximum=None, missing=0, distinct=None) for column in SHEET[:-1]]
    blind = [*unknown, SHEET[-1]._replace(distinct=0)]
    with pytest.raises(InvalidData):  # the job does fail, where the sheet does not show it
        train(plan(spec(**more), blind, TABLE.num_rows), TABLE, data_digest="sha256:0")


@pytest.mark.parametrize(
    "more",
    [
        {"weights": "good"},
        {"sigma": "good"},
        {"preprocessing": {"target": "sqrt"}},
        {"preprocessing": {"target": "log1p"}},
        formula("sqrt(area)"),
        formula("exp(-1 / area ** 2)"),
        formula("log(area)", undefined="impute"),
        formula("log(area / (2 + x))"),  # of two columns: no row need hold the extremes of both
    ],
)
def test_what_the_sheet_does_not_speak_against_is_accepted(more):
    plan(spec(**more), SHEET, ROWS)


def test_weights_of_rows_without_a_target_do_not_matter():
    """They may be missing or 0: these rows are not learned from."""
    sheet = [column._replace(missing=1) if column.name == "price" else column for column in SHEET]
    for weights in ("zero", "gaps"):
        plan(spec(weights=weights), sheet, ROWS)
