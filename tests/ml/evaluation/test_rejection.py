"""Rejection: rows without a prediction, and what that is worth (LION 3, 3.3, 11.7, 11)."""

import numpy as np
import pytest

from app.ml.algorithms.self_training import SelfTraining, _surest
from app.ml.evaluation.costs import REJECTED, Costs, cheapest, cost_faults, cost_matrix, cost_report, threshold
from app.ml.evaluation.metrics import rejection
from app.ml.evaluation.rejection import Policy
from app.ml.numerics.ensembles import agreement
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.resampling import Rows


def rng(seed=0):
    return np.random.default_rng(seed)


def rows(n, weights=None):
    return Rows(Resamples.of(n, rng(1)), weights)


def two(second):
    second = np.asarray(second, float)
    return np.stack([1 - second, second], axis=1)


@pytest.fixture(scope="module")
def calibrated():
    """E15: p ~ U(0, 1), and the second class as often as it is reported to be."""
    p = (np.arange(200_000) + 0.5) / 200_000
    truth = rng(5).random(p.size) < p
    return p, truth


@pytest.mark.parametrize(("t", "rejected", "accuracy"), [(0.1, 0.20, 0.80), (0.3, 0.60, 0.90), (0.0, 0.0, 0.75)])
def test_the_curve_of_calibrated_probabilities(calibrated, t, rejected, accuracy):
    """E15: reject = 2T, accuracy = .75 + T/2."""
    p, truth = calibrated
    result = rejection(np.maximum(p, 1 - p), (p > 0.5) == truth, 2, rows(p.size))
    place = result.thresholds.index(0.5 + t)
    assert result.rejected[place] == pytest.approx(rejected, abs=1e-4)
    assert result.accuracy[place] == pytest.approx(accuracy, abs=5e-3)
    assert result.lower[place] <= accuracy <= result.upper[place]
    mask = Policy([0.5 + t]).accepts(two(p))
    assert 1 - mask.mean() == pytest.approx(result.rejected[place])
    assert ((p > 0.5) == truth)[mask].mean() == pytest.approx(result.accuracy[place])


def test_the_best_rule_is_one_half_and_any_other_may_be_set(calibrated):
    """E16, B8.1: class 1 if P > ½. A threshold t is the cheapest border where a false alarm costs t, a miss 1 − t."""
    p, truth = calibrated
    assigned = {t: Policy(threshold=t).assigned(two(p)) for t in (0.3, 0.5, 0.7)}
    right = {t: (codes == truth).mean() for t, codes in assigned.items()}
    assert max(right, key=right.get) == 0.5
    assert (assigned[0.5] == Policy().assigned(two(p))).all()
    for t, codes in assigned.items():
        assert (codes == Policy(costs=np.array([[0, t], [1 - t, 0]])).assigned(two(p))).all()
    assert [rule for rule, _ in Policy(threshold=0.5).faults(3)] == ["threshold"]
    assert [rule for rule, _ in Policy(threshold=0.5, costs=np.eye(2)).faults(2)] == ["threshold"]


def test_accuracy_grows_with_rejection(calibrated):
    """E15: monotone in T for calibrated scores, but for noise."""
    p, truth = calibrated
    result = rejection(np.maximum(p, 1 - p), (p > 0.5) == truth, 2, rows(p.size))
    assert np.diff(result.rejected).min() > 0
    assert np.diff(result.accuracy).min() > -0.004


def test_the_error_at_a_probability_is_what_is_left(calibrated):
    """E15: the Bayes error at p = .8 is .2."""
    p, truth = calibrated
    near = np.abs(p - 0.8) < 0.01
    assert 1 - ((p > 0.5) == truth)[near].mean() == pytest.approx(0.2, abs=0.02)


def test_where_nothing_is_accepted_accuracy_is_undefined():
    result = rejection(np.array([0.6, 0.7]), np.array([True, False]), 2, rows(2))
    assert (result.rejected[-1], result.accuracy[-1], result.lower[-1], result.display[-1]) == (
        1,
        None,
        None,
        "undefined",
    )
    assert result.accuracy[0] == 0.5


def test_weights_count():
    top, right, w = np.array([0.6, 0.9, 0.9]), np.array([False, True, False]), np.array([2.0, 3.0, 1.0])
    result = rejection(top, right, 2, rows(3, w))
    place = result.thresholds.index(0.7)
    assert result.rejected[place] == pytest.approx(2 / 6)
    assert result.accuracy[place] == pytest.approx(3 / 4)
    assert result.accuracy[0] == pytest.approx(3 / 6)


def test_scores_of_the_book_go_to_a_human():
    """B3.4: 0.4 to 0.6, the ends included."""
    p = two([0.39, 0.4, 0.5, 0.6, 0.61])
    assert Policy(band=(0.4, 0.6)).accepts(p).tolist() == [True, False, False, False, True]


def test_a_row_at_the_minimum_is_accepted():
    """E16: class 1 if and only if P > 1/2. A committee's minimum is accepted as well."""
    p = two([0.5, np.nextafter(0.5, 1), 0.75])
    assert p.argmax(axis=1).tolist() == [0, 1, 1]
    assert Policy([0.75]).accepts(p).tolist() == [False, False, True]
    assert Policy(min_margin=0.2).accepts(two([0.4])).tolist() == [True], "0.6 - 0.4 is less than 0.2 by rounding alone"
    assert Policy().accepts(p).all()


def test_each_class_may_have_its_own_threshold():
    p = two([0.3, 0.7, 0.95])
    assert Policy([0.6, 0.9]).accepts(p).tolist() == [True, False, True]


def test_the_best_must_lead():
    """E18 (d): mean probability of the best and its lead over the second have minima."""
    p = np.array([[0.5, 0.45, 0.05], [0.5, 0.25, 0.25], [0.4, 0.3, 0.3]])
    assert Policy([0.45], min_margin=0.2).accepts(p).tolist() == [False, True, False]
    assert Policy(min_margin=0.25).accepts(p).tolist() == [False, True, False], "a lead of as much is enough"
    assert Policy(min_margin=0.5).accepts(np.ones((2, 1))).tolist() == [True, True]


# unequal costs


def test_poison_is_assigned_on_small_suspicion():
    """B3.19: argminⱼ Σᵢ pᵢ Cᵢⱼ. A poisonous mushroom eaten costs 100, an edible one left costs 1."""
    cost = np.array([[0.0, 1.0], [100.0, 0.0]])
    assert threshold(cost) == pytest.approx(1 / 101)
    p = np.linspace(0, 1, 1001)
    assert (cheapest(two(p), cost) == (p > 1 / 101)).all()
    by_hand = [[sum(q[i] * cost[i, j] for i in range(2)) for j in range(2)] for q in two(p)]
    assert cheapest(two(p), cost).tolist() == np.argmin(by_hand, axis=1).tolist()


def test_equal_costs_are_the_most_probable_class():
    p = rng().dirichlet(np.ones(4), 50)
    assert (cheapest(p, 1 - np.eye(4)) == p.argmax(axis=1)).all()
    assert threshold(1 - np.eye(2)) == 0.5
    assert threshold(np.zeros((2, 2))) is None


def test_rejecting_at_a_price_is_rejecting_below_a_probability():
    """Chow (1970): with mistakes of cost 1 and rejections of cost d, reject where the largest p is below 1 − d."""
    p = rng().dirichlet(np.ones(3), 200)
    chosen = cheapest(p, 1 - np.eye(3), reject=0.3)
    assert ((chosen == REJECTED) == (p.max(axis=1) < 0.7)).all()


def test_what_decisions_cost():
    truth, p = np.array([0, 0, 1, 1]), two([0.1, 0.6, 0.3, 0.505])
    costs = Costs(classes=["good", "bad"], costs=[[0, 1], [10, 0]], reject=0.45)
    result = cost_report(truth, p.argmax(axis=1), p, rows(4), classes=["good", "bad"], costs=costs)
    assert cheapest(p, cost_matrix(costs, ["good", "bad"]), 0.45).tolist() == [REJECTED, 1, REJECTED, REJECTED]
    assert result.cost.value == pytest.approx((0.45 + 1 + 0.45 + 0.45) / 4)
    assert result.cost_of_most_probable.value == pytest.approx((0 + 1 + 10 + 0) / 4)
    assert result.rejected.value == 0.75
    assert result.confusion_matrix.counts == [[0, 1], [0, 0]]


def test_costs_are_named_by_class():
    costs = Costs(classes=[True, 1, "1"], costs=[[0, 1, 2], [3, 0, 4], [5, 6, 0]])
    assert cost_matrix(costs, ["1", True, 1.0]).tolist() == [[0, 5, 6], [2, 0, 1], [4, 3, 0]]
    assert list(cost_faults(costs, ["1", True, 1.0], "")) == []
    wrong = Costs(classes=["a", "a"], costs=[[0]])
    assert [fault.pointer for fault in cost_faults(wrong, ["a", "b"], "/c")] == ["/c/classes", "/c/costs", "/c/costs/0"]


def test_every_limit_is_inclusive_and_rounding_does_not_move_it():
    """0.1 + 0.2 is a little more than 0.3, and 1 - 0.7 a little more than it too: the same limit by one rule."""
    above, exact, below, beyond = two([0.1 + 0.2, 0.3, 1 - 0.7 - 1e-15, 0.3 + 1e-9])[:, None]
    for row in above, exact, below:
        assert Policy([0.7]).accepts(row).all()
        assert Policy(min_margin=0.4).accepts(row).all()
        assert not Policy(band=(0.1, 0.3)).accepts(row).any()
        assert not Policy(band=(0.3, 0.6)).accepts(row).any()
        assert Policy(threshold=0.3).assigned(row).tolist() == [1]
        assert Policy(costs=np.array([[0, 100], [100, 0]]), reject_cost=30).accepts(row).all()
        assert agreement.accepted(row, 0.7, 0.4).all(), "as in a committee"
        assert _surest(SelfTraining(min_probability=0.7), row.max(axis=1)).size, "and in self-training"
    assert not Policy([0.7]).accepts(beyond).any()
    assert not Policy(min_margin=0.4).accepts(beyond).any()
    assert Policy(band=(0.1, 0.3)).accepts(beyond).all()
    assert Policy(threshold=0.3 + 2e-9).assigned(beyond).tolist() == [0]
    assert not Policy(costs=np.array([[0, 100], [100, 0]]), reject_cost=30).accepts(beyond).any()
