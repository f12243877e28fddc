"""Candidates of a search."""

import math

import pytest

from app.base.errors import InvalidRequest
from app.ml.training.search import candidates
from app.ml.training.search.candidates import SearchSpec


def spec(**change):
    return SearchSpec.model_validate({"target": "y", "algorithm": {"name": "ridge"}, **change})


def tried(**change):
    return candidates.candidates(spec(**change))


def faults(**change):
    with pytest.raises(InvalidRequest) as refused:
        tried(**change)
    return {(fault.pointer, fault.code) for fault in refused.value.faults}


def test_nothing_to_vary_is_one_candidate():
    (one,) = tried()
    assert one.settings == {}
    assert one.spec.algorithm == spec().algorithm


def test_grids_are_combined_the_last_changing_fastest():
    grid = [
        {"pointer": "/algorithm/l2", "values": [0.1, 1]},
        {"pointer": "/preprocessing/scaling", "values": ["none", "standard"]},
    ]
    found = tried(grid=grid)
    assert [(one.spec.algorithm.l2, one.spec.preprocessing.scaling) for one in found] == [
        (0.1, "none"), (0.1, "standard"), (1, "none"), (1, "standard"),
    ]  # fmt: skip
    assert found[1].settings == {"/algorithm/l2": 0.1, "/preprocessing/scaling": "standard"}


def test_alternatives_have_their_own_settings_and_share_the_preparation():
    found = tried(
        alternatives=[{"name": "knn"}, {"name": "linear"}],
        grid=[
            {"pointer": "/algorithm/l2", "values": [1, 2]},
            {"pointer": "/alternatives/0/n_neighbors", "values": [3, 5, 7]},
            {"pointer": "/preprocessing/imputation", "values": ["mean", "median"]},
        ],
    )
    assert [one.spec.algorithm.name for one in found] == ["ridge"] * 4 + ["knn"] * 6 + ["linear"] * 2
    assert [one.spec.algorithm.n_neighbors for one in found[4:10]] == [3, 3, 5, 5, 7, 7]
    assert {one.root for one in found} == {"/algorithm", "/alternatives/0", "/alternatives/1"}


def test_settings_reach_learners_within_learners():
    (one,) = tried(
        algorithm={"name": "bagging", "estimator": {"name": "ridge"}},
        grid=[{"pointer": "/algorithm/estimator/l2", "values": [4.5]}],
    )
    assert one.spec.algorithm.estimator.l2 == 4.5


def test_draws_lie_in_their_range_evenly_in_their_spacing():
    draws = [{"pointer": "/algorithm/l2", "low": 1e-4, "high": 1e4, "spacing": "log"}]
    found = tried(draws=draws, draw_count=400)
    values = [math.log10(one.spec.algorithm.l2) for one in found]
    assert len(values) == 400
    assert -4 <= min(values) < -3.8
    assert 3.8 < max(values) <= 4
    assert abs(sum(values) / 400) < 4 * (8 / math.sqrt(12)) / 20
    assert tried(draws=draws, draw_count=400) == found  # the same seed
    assert tried(draws=draws, draw_count=400, seed=1) != found


def test_whole_numbers_are_drawn_whole():
    draws = [{"pointer": "/algorithm/n_neighbors", "low": 1, "high": 9, "whole": True}]
    found = tried(algorithm={"name": "knn"}, draws=draws, draw_count=100)
    assert {one.spec.algorithm.n_neighbors for one in found} == set(range(1, 10))


def test_every_impossible_setting_is_named():
    assert faults(
        grid=[
            {"pointer": "/algorithm/l2", "values": [1, -1, "much"]},
            {"pointer": "/algorithm/nonsense", "values": [1]},
            {"pointer": "/alternatives/3/n_neighbors", "values": [1]},
            {"pointer": "/algorithm/l2", "values": [2]},
            {"pointer": "/algorithm/name", "values": ["knn"]},
        ],
        draws=[{"pointer": "/preprocessing/max_levels", "low": -5, "high": 100, "whole": True}],
    ) == {
        ("/grid/0/values/1", "invalid"),
        ("/grid/0/values/2", "invalid"),
        ("/grid/1/values/0", "invalid"),
        ("/grid/2/pointer", "invalid"),
        ("/grid/3/pointer", "duplicate"),
        ("/grid/4/pointer", "invalid"),
        ("/draws/0/low", "invalid"),
    }


def test_pointers_into_nothing():
    for pointer in ("/algorithm/l2/deeper", "/preprocessing/scaling/0/x"):
        assert faults(grid=[{"pointer": pointer, "values": [1]}])


def test_too_many_are_refused():
    grid = [{"pointer": "/algorithm/l2", "values": list(range(1, 1001))}]
    assert len(tried(grid=grid)) == 1000
    more = [*grid, {"pointer": "/preprocessing/scaling", "values": ["none", "standard"]}]
    assert faults(grid=more) == {("/grid", "too_large")}
