"""Every kind of input that the catalogue declares is drawn by this folder: a new one fails here until it is."""

import pytest

from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Accepts
from app.ml.contract.task import TargetKind, TargetUse
from app.ml.evaluation.validation import Validation
from app.ml.training.planning.train_spec import TrainSpec
from tests.ml.contract import drawn_tables, test_relations, test_roles

UNPREPARED = {Accepts.MISSING, Accepts.CATEGORIES, Accepts.UNLABELLED}
"""Drawn by `Case.mixed`."""
ROLES = {"target", "item", "weights", "sigma", "exposure", "offset", "difficulty", "features"}
"""Columns that a request names, drawn or refused by name in `test_roles` and `drawn_tables`."""
OTHERS = {
    "task",
    "algorithm",
    "kinds",
    "preprocessing",
    "validation",
    "seed",
    "relations",
    "class_weight",
    "difficulty_stages",
}
"""Fields that name no column of their own."""


def not_drawn(declared, drawn):
    return sorted(map(str, set(declared) - set(drawn)))


def test_every_form_and_meaning_of_relations_is_drawn():
    declared = {
        (form, meaning)
        for entry in catalogue().values()
        for form, meanings in entry.algorithm.relations.items()
        for meaning in meanings
    }
    assert not_drawn(declared, test_relations.GIVEN) == []


def test_every_input_that_is_taken_unprepared_is_drawn():
    declared = {one for entry in catalogue().values() for one in entry.algorithm.accepts}
    drawn = UNPREPARED | test_relations.SQUARES
    drawn |= {Accepts.SPARSE, Accepts.INDICATORS}  # by test_sparse_rows and test_sparse_categories
    drawn |= {Accepts.OFFSET}  # by test_roles
    assert not_drawn(declared, drawn) == []


def test_every_role_of_a_column_is_drawn():
    assert not_drawn(TrainSpec.model_fields, ROLES | OTHERS) == []
    fields = {name for name in Validation.model_fields if Validation.model_fields[name].annotation == str | None}
    assert not_drawn(fields, {"group", "time"}) == []
    assert {"class_weight", "sigma", "target"} <= {*test_roles.LACKED}


def test_every_kind_and_use_of_a_target_is_drawn(all_cases):
    kinds = {case.algorithm.target(case.task) for case in all_cases} - {None}
    assert kinds == set(TargetKind)
    for case in all_cases:
        table = drawn_tables.plain(case).table
        given = table["y"].type
        assert (case.algorithm.target(case.task) is TargetKind.CLASSES) == (given == "string")
    assert {case.algorithm.target_use(case.task) for case in all_cases} <= set(TargetUse)


def test_a_kind_that_is_not_drawn_is_found():
    assert not_drawn({*UNPREPARED, Accepts.UNKNOWN_PAIRS}, UNPREPARED) == ["unknown_pairs"]
    with pytest.raises(AssertionError):
        assert not_drawn({("square", "distance")}, test_relations.GIVEN) == []
