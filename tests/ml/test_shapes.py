"""The benchmark over shapes of tables compares equal work, and fails where ours is worse."""

import subprocess
import sys

import pytest

from tests.benchmarks.shapes.__main__ import cases_of, family_names, show
from tests.benchmarks.shapes.case import Case, Measure
from tests.benchmarks.shapes.contest import Outcome
from tests.benchmarks.shapes.tables import KINDS, Shape, draw

CASE = Case("ridge", Shape("dense", 10, 3), None, {"peer": None}, {"objective": Measure(1e-6)})


def shown(ours, rival, case=CASE):
    return show(case, 1, {"ours": Outcome(ours[0], 0, ours[1]), "peer": Outcome(rival[0], 0, rival[1])})


@pytest.mark.parametrize(
    ("ours", "rival", "expected"),
    [
        ((1.0, 5.0), (2.0, 5.0), (False, False)),
        ((2.0, 5.0), (1.0, 5.0), (False, True)),
        ((1.0, 5.1), (2.0, 5.0), (True, False)),
        ((1.0, float("nan")), (2.0, 5.0), (True, False)),
        ((2.0, 5.0), (1.0, 5.1), (False, False)),
    ],
    ids=["faster", "slower", "worse", "no number", "rival did less"],
)
def test_equal_work_is_compared(ours, rival, expected):
    seconds, values = zip(ours, rival, strict=True)
    sides = [(s, {"objective": value}) for s, value in zip(seconds, values, strict=True)]
    assert shown(*sides) == expected


def test_a_reason_excuses_a_ratio_but_no_worse_result():
    excused = CASE._replace(exception="it also computes standard errors")
    assert shown((2.0, {"objective": 5.0}), (1.0, {"objective": 5.0}), excused) == (False, False)
    assert shown((2.0, {"objective": 6.0}), (1.0, {"objective": 5.0}), excused) == (True, False)


def test_number_of_coefficients_must_be_equal():
    case = CASE._replace(measures={"nonzeros": Measure(0, "equal")})
    assert shown((1.0, {"nonzeros": 3}), (2.0, {"nonzeros": 5}), case) == (True, False)
    assert shown((1.0, {"nonzeros": 5}), (2.0, {"nonzeros": 3}), case) == (True, False)


@pytest.mark.slow
def test_names_of_cases_are_different_and_each_has_a_measure():
    for family in family_names():
        cases = cases_of(family)
        assert len({case.name for case in cases}) == len(cases)
        assert all(case.measures and case.rivals for case in cases)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_drawn_the_same_again(kind):
    one, other = (draw(Shape(kind, 60, 100)) for _ in range(2))
    assert len(one.x) == 60
    assert (one.y == other.y).all()
    assert 10 < one.classes.sum() < 50


@pytest.mark.slow
def test_a_family_runs():
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.shapes",
        "linear",
        "--quick",
        "--kind",
        "dense",
        "--rows",
        "1000",
    ]
    run = subprocess.run([*command, "--columns", "3"], capture_output=True, text=True, check=False)
    assert "linear fit dense 1,000 x 3" in run.stdout, run.stderr
    assert "2 cases: 0 with a worse result" in run.stdout
    assert run.returncode == 0
