"""Finding the algorithms."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from app.base.errors import AlgorithmNotFound
from app.base.other_names import OTHER_NAMES
from app.ml import algorithms
from app.ml.catalogue.algorithm_files import any_algorithm, catalogue, every_entry, find


def test_one_entry_a_file():
    (folder,) = algorithms.__path__
    assert list(every_entry()) == sorted(file.stem for file in Path(folder).glob("[a-z]*.py"))


def test_a_training_chooses_among_those_that_are_offered():
    assert set(every_entry()) - set(catalogue()) == {"imported_linear", "imported_onnx", "imported_trees"}
    with pytest.raises(ValidationError):
        TypeAdapter(any_algorithm()).validate_python({"name": "imported_trees"})


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(AlgorithmNotFound, match=r"logistic, .*pca, .*ridge"):
        find("crystal_ball")


def test_the_docstring_is_taken_apart():
    ridge = find("ridge")
    assert ridge.title == "Ridge: a straight-line fit that stays calm when inputs move together."
    assert ridge.method.startswith("Minimises")
    assert "References" not in ridge.method
    assert "Use when" not in ridge.method
    assert ridge.use_when.startswith("the target is")
    assert ridge.references[0] == "Hoerl & Kennard (1970), Technometrics 12:55"


def test_the_spec_is_the_parameters_and_a_name():
    spec = find("ridge").spec.model_validate({"name": "ridge", "l2": 2})
    assert spec.model_dump() == {"name": "ridge"} | find("ridge").algorithm.params(l2=2).model_dump()


def test_names_of_other_libraries_lead_to_algorithms_that_exist():
    assert set(OTHER_NAMES.values()) <= set(catalogue())
    assert not set(OTHER_NAMES) & set(catalogue())
