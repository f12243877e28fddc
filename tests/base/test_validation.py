"""Validation errors: our own sentence for each type of error, with the closest names and no value."""

import re
from contextvars import copy_context

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic_core._pydantic_core import list_all_errors

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.suggestions import MAX_NAME_LENGTH, closest, compare_at_most, did_you_mean, one_of, quoted
from app.base.validation import TEXTS, in_document_order, sentence, validation_faults
from app.ml.jobs.train import TrainRequest
from app.ml.queries.metrics import MetricsRequest

ID = "0198c0de-0000-7000-8000-000000000000"
VALID = {
    "model": "m",
    "dataset": ID,
    "target": "y",
    "features": ["a"],
    "algorithm": {"name": "stacking", "estimators": [{"name": "ridge", "l2": 1.0}, {"name": "knn"}]},
    "preprocessing": {"basis": [{"kind": "polynomial", "degree": 2}, {"kind": "expression", "expression": "a"}]},
    "validation": {"method": "kfold", "folds": 3},
}
ERRORS = {error["type"]: error for error in list_all_errors()}
TEMPLATES = [
    re.sub(r"\\{.*?\\}", ".*", re.escape(error["message_template_python"]))
    for kind, error in ERRORS.items()
    if kind not in {"value_error", "assertion_error"}
]


def faults_of(kind, body):
    with pytest.raises(ValidationError) as raised:
        kind.model_validate(body)
    return validation_faults([{**one, "loc": ("body", *one["loc"])} for one in raised.value.errors()], kind)


def no_words_of_pydantic(text):
    return not any(re.search(template, text) for template in TEMPLATES) and "Input should" not in text


@pytest.mark.parametrize("kind", sorted(ERRORS.keys() - {"value_error", "assertion_error"}))
def test_every_type_of_error_has_a_sentence_of_our_own(kind):
    context = ERRORS[kind]["example_context"] or {}
    context = context | ({"expected": "'a' or 'b'"} if "expected" in context else {})
    context = context | ({"expected_tags": "'a', 'b'"} if "expected_tags" in context else {})
    error = {"type": kind, "loc": ("body", "x"), "msg": ERRORS[kind]["message_template_python"], "ctx": context}
    text = sentence(error)
    assert text.endswith(".")
    assert "{" not in text
    assert no_words_of_pydantic(text)


@pytest.mark.parametrize(
    "kind",
    [
        "missing", "model_type", "dict_type", "list_type", "string_type", "string_too_short", "string_too_long",
        "string_pattern_mismatch", "bool_type", "bool_parsing", "int_type", "int_parsing", "int_parsing_size",
        "int_from_float", "float_type", "float_parsing", "finite_number", "greater_than", "greater_than_equal",
        "less_than", "less_than_equal", "too_short", "too_long", "uuid_type", "uuid_parsing", "union_tag_not_found",
    ],
)  # fmt: skip
def test_what_our_schemas_raise_is_not_left_to_the_general_sentence(kind):
    assert kind in TEXTS


def places(value, at=()):
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield from places(inner, (*at, step))


def changed(value, at, new):
    if not at:
        return new
    copy = value.copy()
    copy[at[0]] = changed(value[at[0]], at[1:], new)
    return copy


@given(
    at=st.sampled_from(list(places(VALID))), new=st.sampled_from([None, "canary 7f3a9", -1.5, [], {"canary_7f3a9": 1}])
)
def test_no_sentence_of_pydantics_and_no_value_reaches_a_caller(at, new):
    try:
        TrainRequest.model_validate(changed(VALID, at, new))
    except ValidationError as error:
        found = validation_faults([{**one, "loc": ("body", *one["loc"])} for one in error.errors()], TrainRequest)
        assert found
        assert len({fault.pointer for fault in found}) == len(found)
        for fault in found:
            assert no_words_of_pydantic(fault.detail)
            assert "canary" not in fault.detail


def test_closest_names_of_fields_algorithms_parameters_and_values():
    body = VALID | {
        "taks": "regression",
        "task": "regresion",
        "algorithm": {"name": "stacking", "estimators": [{"name": "rigde"}, {"name": "ridge", "selecton": 1}]},
    }
    found = {fault.pointer: fault.detail for fault in faults_of(TrainRequest, body)}
    assert found.keys() == {"/taks", "/task", "/algorithm/estimators/0/name", "/algorithm/estimators/1/selecton"}
    assert found["/taks"].endswith("did you mean 'task'?")
    assert found["/task"].endswith("did you mean 'regression'?")
    assert found["/algorithm/estimators/0/name"].endswith("did you mean 'ridge'?")
    assert found["/algorithm/estimators/1/selecton"].endswith("did you mean 'selection'?")


def test_a_tag_is_no_step_of_a_place():
    body = {"task": "regression", "truth": [1.0], "predicted": 1, "wieghts": []}
    assert {fault.pointer for fault in faults_of(MetricsRequest, body)} == {"/predicted", "/wieghts"}
    assert [fault.pointer for fault in faults_of(MetricsRequest, {"task": "regresion"})] == ["/task"]


@pytest.mark.parametrize(
    ("class_weight", "faults"),
    [
        ("even", [("/class_weight", "Must be balanced; or must be an object, not a string.")]),
        ({"a": 0, "b": 1}, [("/class_weight/a", "Must be greater than 0.")]),
    ],
)
def test_a_value_of_the_type_of_one_alternative_has_the_faults_of_that(class_weight, faults):
    assert [fault[:2] for fault in faults_of(TrainRequest, VALID | {"class_weight": class_weight})] == faults


def test_faults_are_in_the_order_of_the_document_and_each_is_reported_once():
    body = {"b": [0, {"x": 1, "y": 2}], "a/b": 1}
    expected = [Fault(at, "") for at in ("/query/limit", "/b/0", "/b/1/x", "/b/1/y", "/a~1b", "/missing")]
    assert in_document_order([*reversed(expected), *expected], body) == expected


def test_the_detail_of_a_problem_says_what_is_wrong():
    one = Fault("/target", "Is required.")
    assert InvalidRequest(faults=[one]).detail == "target: Is required."
    assert InvalidRequest(faults=[one, one]).detail == "2 problems; the first: target: Is required."


def test_suggestions_are_bounded_and_clean():
    assert closest("x" * (MAX_NAME_LENGTH + 1), ["x" * MAX_NAME_LENGTH]) is None
    assert did_you_mean("zzz", ["price"]) == "."
    assert quoted("a\n\x1bb") == "'a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b'"
    assert len(quoted("x" * 1000)) == MAX_NAME_LENGTH + 3


def test_a_context_compares_no_more_names_than_it_may():
    def compared(limit):
        compare_at_most(limit)
        return [closest(name, ["price", "area"]) for name in ("pricee", "aera", "prise")]

    assert copy_context().run(compared, 4) == ["price", "area", None]

    def listed(limit):
        compare_at_most(limit)
        return [one_of(name, ["price", "area"]) for name in ("pricee", "aera", "prise")]

    assert copy_context().run(listed, 4) == [
        "; did you mean 'price'?",
        "; did you mean 'area'?",
        "; known are price, area.",
    ]
    assert closest("prise", ["price", "area"]) == "price"
