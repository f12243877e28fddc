"""Calculators of formulas give the numbers in print, agree with each other, and refuse what they cannot solve."""

import math

import numpy as np
import pytest
from pydantic import TypeAdapter
from scipy import stats

from app.base.errors import InvalidRequest
from app.ml.numerics.learning_theory.boosting_edges import boost_by_majority_bound
from app.ml.numerics.learning_theory.majority_votes import limit, wrong_and_tied
from app.ml.operations import calculator_entries
from app.ml.theory import no_free_lunch


def calculated(calculator, **request):
    query = calculator_entries()[calculator].query
    result = query.run(TypeAdapter(query.request).validate_python(request))
    return result, {one.name: one.value for one in result.values}


def values(calculator, **request):
    return calculated(calculator, **request)[1]


@pytest.mark.parametrize("name", calculator_entries())
def test_a_calculator_has_its_path(name):
    assert calculator_entries()[name].query.path == f"/v1/theory/{name}"
    assert calculator_entries()[name].query.tag == "theory"


def test_sample_size_in_print():
    """R2, P9: |H| = 1,000 and delta = 0.05 are 99.03 rows for epsilon = 0.1, and epsilon = .099035 for 100."""
    finite = {"class_size": 1000, "delta": 0.05}
    assert values("pac", **finite, epsilon=0.1)["rows"] == 100
    assert values("pac", **finite, rows=100)["epsilon"] == pytest.approx(0.099035, abs=5e-7)


def test_thresholds_are_learned_as_often_as_the_sample_size_states():
    """P9: of 2,000 samples at most a share delta misleads a learner of no training errors by more than epsilon."""
    rng, grid, epsilon, delta = np.random.default_rng(0), 100, 0.1, 0.05

    def misled(rows):
        count = 0
        for true in rng.integers(grid + 1, size=2000):
            x = rng.integers(grid, size=rows)
            least, most = max(x[x < true], default=-1) + 1, min(x[x >= true], default=grid)  # without training errors
            count += max(true - least, most - true) > epsilon * grid
        return count / 2000

    assert misled(int(values("pac", class_size=grid + 1, epsilon=epsilon, delta=delta)["rows"])) <= delta < misled(20)


@pytest.mark.parametrize("setting", ["realisable", "agnostic"])
@pytest.mark.parametrize("capacity", [{"class_size": 1e6}, {"log_class_size": 40.0}, {"vc_dimension": 7}])
def test_each_of_three_follows_from_the_others(setting, capacity):
    request = {"setting": setting, **capacity}
    rows = int(values("pac", **request, epsilon=0.07, delta=0.01)["rows"])
    epsilon = values("pac", **request, rows=rows, delta=0.01)["epsilon"]
    assert epsilon <= 0.07 < values("pac", **request, rows=rows - 1, delta=0.01)["epsilon"]
    assert values("pac", **request, rows=rows, epsilon=epsilon)["delta"] == pytest.approx(0.01, rel=1e-6)


def test_the_largest_class_for_which_rows_are_enough():
    size = values("pac", class_size=1000, epsilon=0.1, rows=100)["log_class_size"]
    assert size >= math.log(1000)
    assert values("pac", log_class_size=size, epsilon=0.1, delta=0.05)["rows"] >= 100


@pytest.mark.parametrize(
    ("request_", "pointers"),
    [
        ({}, {"/class_size", "/epsilon"}),
        ({"class_size": 2, "vc_dimension": 1, "rows": 5, "delta": 0.1}, {"/vc_dimension"}),
        ({"class_size": 2, "rows": 5, "delta": 0.1, "epsilon": 0.1}, {"/rows"}),
    ],
)
def test_a_sample_size_needs_one_capacity_and_two_of_three(request_, pointers):
    with pytest.raises(InvalidRequest) as refused:
        calculated("pac", **request_)
    assert {fault.pointer for fault in refused.value.faults} == pointers


@pytest.mark.parametrize(("rows", "h", "term"), [(1000, 10, 0.259548), (10000, 10, 0.095074), (1000, 3, 0.163978)])
def test_vc_bound_in_print(rows, h, term):
    """S3."""
    found = values("vc_bound", rows=rows, vc_dimension=h, empirical_risk=0.1)
    assert found["confidence_term"] == pytest.approx(term, abs=5e-7)
    assert found["risk_bound"] == pytest.approx(0.1 + term, abs=5e-7)


def test_structural_minimum_of_nested_classes():
    nested = [{"vc_dimension": h, "empirical_risk": risk} for h, risk in [(1, 0.4), (2, 0.1), (3, 0.09), (9, 0.0)]]
    result, found = calculated("vc_bound", rows=1000, vc_dimension=2, nested=nested)
    assert found["structural_minimum"] == 1
    assert found["structural_minimum_simple"] == 3
    risk, bound, _ = result.curves[1].series
    assert bound.y.index(min(bound.y)) == 1
    assert risk.y == [0.4, 0.1, 0.09, 0.0]
    with pytest.raises(InvalidRequest, match=r"nested\.1\.vc_dimension"):
        calculated("vc_bound", rows=10, vc_dimension=2, nested=nested[::-1][:2])


def test_a_vacuous_bound_is_named():
    result, found = calculated("vc_bound", rows=100, vc_dimension=100)
    assert found["risk_bound"] > 1
    assert "vacuous" in result.notes[0]


@pytest.mark.parametrize(("columns", "h"), [(100, 10), (5, 6), (None, 10)])
def test_margin_bound_in_print(columns, h):
    """S5."""
    found = values("margin_bound", radius=2, norm=1.5, columns=columns, rows=1000)
    assert found["vc_dimension"] == h
    assert found["risk_bound"] == values("vc_bound", rows=1000, vc_dimension=h)["risk_bound"]


@pytest.mark.parametrize(
    ("members", "error", "wrong"), [(5, 0.3, 0.16308), (21, 0.3, 0.02639), (11, 0.4, 0.246502), (101, 0.4, 0.020897)]
)
def test_majority_error_in_print(members, error, wrong):
    """E1."""
    found = values("majority_error", members=members, error=error)
    assert found["error"] == pytest.approx(wrong, abs=5e-7)
    assert found["limit"] == 0


@pytest.mark.parametrize(("members", "error", "correlation"), [(7, 0.3, 0.2), (10, 0.45, 0.5), (200, 0.1, 0.01)])
def test_correlated_votes_are_beta_binomial(members, error, correlation):
    size = 1 / correlation - 1
    peer = stats.betabinom(members, error * size, (1 - error) * size)
    wrong, tied = wrong_and_tied(members, error, correlation)
    assert wrong == pytest.approx(peer.sf(members // 2), rel=1e-9)
    assert tied == pytest.approx(peer.pmf(members // 2) if members % 2 == 0 else 0)
    assert wrong > wrong_and_tied(members, error)[0]


def test_ends_of_correlation():
    assert wrong_and_tied(11, 0.3, 1e-9)[0] == pytest.approx(wrong_and_tied(11, 0.3)[0], rel=1e-5)
    assert wrong_and_tied(11, 0.3, 1.0) == (0.3, 0.0)
    assert wrong_and_tied(10, 0.3)[1] == pytest.approx(stats.binom.pmf(5, 10, 0.3))
    assert limit(0.3, 0.2) == pytest.approx(wrong_and_tied(9999, 0.3, 0.2)[0], rel=1e-3)


def test_rounds_of_boosting_in_print():
    """J8: 30 rows and an edge of 1/6, so that the factor is 2 and 62 rounds are enough."""
    found = values("boosting_rounds", rows=30, edge=1 / 6)
    assert found["sufficient_rounds"] == 62
    assert found["factor"] == pytest.approx(2)
    assert found["bound"] < 1 / 30
    assert found["boost_by_majority_rounds"] <= 62
    assert boost_by_majority_bound(1 / 6, 3) == pytest.approx(stats.binom.cdf(1, 3, 2 / 3))


def test_the_product_bound_of_adaboost_is_below_the_exponential_one():
    """E8."""
    errors = [0.3, 0.2, 0.45, 0.1]
    found = values("boosting_rounds", rows=100, errors=errors)
    assert found["adaboost_bound"] == pytest.approx(math.prod(2 * math.sqrt(e * (1 - e)) for e in errors))
    assert found["adaboost_bound"] <= found["exponential_bound"]
    assert found["smallest_edge"] == pytest.approx(0.05)


def test_no_free_lunch_in_print():
    """P11: four points and two rows are .28125, whatever the learner, and each fails on some labelling."""
    found = values("no_free_lunch", points=4, rows=2)
    averages = [found[f"{learner}_average"] for learner in no_free_lunch.GUESSES]
    assert [found["average_error"], *averages] == pytest.approx([0.28125] * 4, rel=1e-12)
    assert min(found[f"{learner}_failure"] for learner in no_free_lunch.GUESSES) >= 1 / 7
    assert found["zero_best"] == 0


def test_without_rows_every_point_is_guessed():
    found = values("no_free_lunch", points=3, rows=0)
    assert [found[f"{learner}_average"] for learner in no_free_lunch.GUESSES] == [0.5, 0.5, 0.5]


def test_a_demonstration_has_a_limit():
    with pytest.raises(InvalidRequest, match=r"1,048,576 2\^points"):
        calculated("no_free_lunch", points=1000, rows=1)
    assert values("no_free_lunch", points=10**6, rows=10**6, demonstrate=False)["average_error"] == pytest.approx(
        math.exp(-1) / 2, rel=1e-5
    )


@pytest.mark.parametrize(
    ("function_class", "labellings"), [("thresholds", 2001), ("intervals", 1 + 2000 * 2001 // 2), ("sines", 2**2000)]
)
def test_the_bound_by_the_growth_function(function_class, labellings):
    """R4: √((ln Π(2n) + ln(4/δ))/n), .109469 of thresholds on 1,000 rows with δ = .05."""
    found = values("vc_dimension", function_class=function_class, rows=1000)
    assert found["growth_bound"] == pytest.approx(math.sqrt((math.log(labellings) + math.log(80)) / 1000))
    if function_class == "thresholds":
        assert found["growth_bound"] == pytest.approx(0.109469, abs=5e-7)
