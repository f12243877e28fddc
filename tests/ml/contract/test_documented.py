"""An algorithm says what it is, when to use it, where it comes from, and what each parameter does."""

import doctest
import importlib
import re

from app.ml.contract.algorithm import Symmetry


def test_the_file_says_what_it_is(entry):
    assert re.fullmatch(r"[a-z][a-z0-9_]*", entry.name)
    name, colon, purpose = entry.title.partition(": ")
    assert name, "the docstring begins with the name"
    assert colon, "the first line is “Name: what it is for.”"
    assert purpose.endswith(".")
    assert entry.gist.endswith("."), "a paragraph “In short: ….”"
    assert len(re.findall(r"[.?!](?= |$)", entry.gist)) <= 3, "the gist is three sentences"
    assert len(entry.method) > 100, "how it works, in a paragraph"
    assert ">>>" not in entry.method, "examples stay in the file"
    assert entry.method.endswith("."), "in sentences"
    assert entry.use_when.endswith("."), "a paragraph “Use when: ….”"
    assert entry.references, "a paragraph “References: …; ….”"
    assert all(re.search(r"\d{4}|ch\.", reference) for reference in entry.references), "with year or chapter"


def test_every_parameter_has_default_bounds_and_sentence(entry):
    entry.algorithm.params()  # every parameter has a default
    for name, schema in entry.algorithm.params.model_json_schema().get("properties", {}).items():
        assert schema.get("description", "").endswith("."), f"{name} has no sentence"
        options = schema.get("anyOf", [schema])
        for option in options if {"type": "string"} not in options else ():  # else a label, no quantity
            if option.get("type") in {"number", "integer"}:
                assert {"minimum", "exclusiveMinimum"} & set(option), f"{name} has no lower bound"
            if option.get("type") == "integer":  # a count beyond reason is work without end
                assert {"maximum", "exclusiveMaximum"} & set(option), f"{name} has no upper bound"


def test_parameters_are_written_once(entry):
    assert "name" not in entry.algorithm.params.model_fields, "`name` tells the algorithms apart in a request"
    assert entry.spec.model_fields["name"].is_required()
    assert set(entry.spec.model_fields) == {*entry.algorithm.params.model_fields, "name"}


def test_exemptions_have_reasons(entry):
    for symmetry, reason in entry.algorithm.breaks.items():
        assert symmetry in Symmetry
        assert len(reason.split()) >= 4, f"why does {symmetry} not hold?"


def test_evidence_of_correctness(entry):
    """An objective to be minimal, or a published number in a doctest."""
    module = importlib.import_module(f"app.ml.algorithms.{entry.name}")
    examples = [test for test in doctest.DocTestFinder().find(module) if test.examples]
    assert entry.algorithm.objective or examples, "neither an objective nor a doctest"
    for test in examples:
        assert doctest.DocTestRunner().run(test).failed == 0, test.name
