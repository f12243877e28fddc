"""Guarantees are true at the stated rate, share their failure probability, and are withheld where premises fail."""

import numpy as np
import pytest

from app.ml.algorithms import decision_tree, logistic, perceptron, svm
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.contract.capacity import Capacity, Compression, GibbsRisk, Mistakes
from app.ml.evaluation.guarantees import Errors, Evidence, guarantees, without_holdout

CASES = {
    "logistic": (logistic, logistic.Logistic()),
    "decision_tree": (decision_tree, decision_tree.DecisionTree(max_depth=2)),
    "svm": (svm, svm.SVM(kernel="linear", cv=None)),
}


def rows(rng, n):
    """Two overlapping classes of two columns."""
    codes = rng.integers(2, size=n)
    return rng.normal(size=(n, 2)) + 1.2 * codes[:, None] * [1, 0], codes


def wrong(module, params, state, x, codes):
    return Errors(int((module.predict(params, state, x).argmax(axis=1) != codes).sum()), len(x))


def failures(module, params, times, *, n=40):
    """Simulations in which some bound was below the risk, which 20,000 further rows measure, and how many bounds."""
    rng = np.random.default_rng(0)
    many = rows(rng, 20_000)
    failed, given = 0, 0
    for _ in range(times):
        x, codes = rows(rng, n)
        train = Data.of(Task.CLASSIFICATION, x, codes)
        state = module.fit(params, train, Context.of(0)).state
        evidence = Evidence(
            test=wrong(module, params, state, *rows(rng, n)),
            train=wrong(module, params, state, x, codes),
            classes=2,
            capacity=module.ALGORITHM.capacity(params, state, train),
        )
        found = [one for one in guarantees(evidence).certificates if one.quantity == "error_rate"]
        risk = wrong(module, params, state, *many).share
        failed += any(one.bound < risk for one in found)
        given = max(given, len(found))
    return failed, given


@pytest.mark.parametrize("name", CASES)
def test_bounds_hold_together(name):
    failed, given = failures(*CASES[name], 60)
    assert given >= 2
    assert failed <= 8  # of 60, 3 on average at most: more than 8 has probability 0.002


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_bounds_hold_together_in_many_simulations(name):
    """At most 5 % of 2,000 fail: 100, and three standard deviations."""
    assert failures(*CASES[name], 2000)[0] <= 130


def test_bounds_share_the_failure_probability():
    evidence = Evidence(Errors(5, 100), Errors(20, 400), 2, Capacity(dimension=3, compression=Compression(10, 0)))
    found = guarantees(evidence)
    assert [one.delta for one in found.certificates] == pytest.approx([0.05 / 3] * 3)
    assert [one.bound for one in found.certificates] == sorted(one.bound for one in found.certificates)
    assert found.tightest == found.certificates[0].name
    assert found.withheld == []


def test_a_vacuous_bound_is_named_and_never_the_tightest():
    found = guarantees(Evidence(None, Errors(20, 40), 2, Capacity(dimension=30)))
    [only] = found.certificates
    assert only.vacuous
    assert only.bound > 1
    assert "promises nothing" in only.statement
    assert found.tightest is None


@pytest.mark.parametrize("field", ["dependent", "prepared"])
def test_premises_that_fail_are_reasons(field):
    evidence = Evidence(Errors(5, 100), Errors(20, 400), 2, Capacity(dimension=3))
    found = guarantees(evidence._replace(**{field: "Because."}))
    lost = {"dependent": {"holdout", "vc_dimension"}, "prepared": {"vc_dimension"}}[field]
    assert {one.name for one in found.withheld} == lost
    assert {one.reason for one in found.withheld} == {"Because."}


def test_planes_are_of_two_classes():
    found = guarantees(Evidence(Errors(5, 100), Errors(20, 400), 3, Capacity(dimension=3)))
    assert [one.name for one in found.certificates] == ["holdout"]
    assert [one.name for one in found.withheld] == ["training"]


def test_reuse_withdraws_the_bound_by_test_rows():
    found = guarantees(Evidence(Errors(5, 100), Errors(20, 400), 2, Capacity(dimension=3)))
    reused = without_holdout(found, 2)
    assert [one.name for one in reused.certificates] == ["vc_dimension"]
    assert reused.withheld[0].name == "holdout"
    assert "2 models" in reused.withheld[0].reason
    assert without_holdout(reused, 3) == reused


def test_mistakes_hold_whatever_the_data():
    found = guarantees(Evidence(None, None, 2, Capacity(mistakes=Mistakes(3, 9.7, 50)), dependent="Because."))
    [only] = found.certificates
    assert (only.bound, only.measured, only.delta, only.premise) == (9.7, 3.0, 0.0, "any_data")


def test_mistakes_of_a_perceptron_that_separates():
    """U2: at most (R/margin)²."""
    x = np.array([[1.0, 1.0], [2.0, 1.0], [-1.0, -1.0], [-2.0, -1.5]])
    params, data = perceptron.Perceptron(), Data.of(Task.CLASSIFICATION, x, [1, 1, 0, 0])
    state = perceptron.fit(params, data, Context.of(0)).state
    found = perceptron.capacity(params, state, data)
    assert found.dimension == 3
    assert found.mistakes.made <= found.mistakes.allowed <= (state.radius / state.margin) ** 2


def test_weights_of_a_machine_are_those_of_its_decision():
    """In the space of a linear kernel everything is known: values, and the length of the weights with the intercept."""
    x, codes = rows(np.random.default_rng(0), 60)
    data = Data.of(Task.CLASSIFICATION, x, codes)
    for cv in (None, 3):
        params = svm.SVM(kernel="linear", cv=cv)
        state = svm.fit(params, data, Context.of(0)).state
        found = svm.capacity(params, state, data).weights
        right = svm.predict(params, state, x).argmax(axis=1) == codes
        np.testing.assert_array_equal(found.values > 0, right)
        assert found.trace == pytest.approx(np.square(x).sum() + len(x))
        plane = np.linalg.lstsq(np.c_[x, np.ones(60)], np.where(codes == 1, found.values, -found.values))[0]
        assert found.norm == pytest.approx(np.linalg.norm(plane), rel=1e-6)


def test_support_vectors_alone_give_the_same_machine():
    x, codes = rows(np.random.default_rng(1), 80)
    params = svm.SVM(kernel="rbf", gamma=0.5, cv=None, tol=1e-6)
    data = Data.of(Task.CLASSIFICATION, x, codes)
    state = svm.fit(params, data, Context.of(0)).state
    kept = state.machine.places
    alone = svm.fit(params, data.take(kept), Context.of(0)).state
    np.testing.assert_allclose(svm.decision(params, alone, x), svm.decision(params, state, x), atol=1e-3)
    found = svm.capacity(params, state, data).compression
    assert (found.rows, found.mistakes) == (kept.size, 0)


def test_losses_are_of_all_members_or_none():
    assert GibbsRisk.of([0.1, 0.3], [30, 40], 2) == (pytest.approx(0.2), 30, 40)
    assert GibbsRisk.of([0.1], [30], 2) is None
    found = guarantees(Evidence(None, None, 3, gibbs=GibbsRisk(0.05, 400, 420)))
    assert [one.name for one in found.certificates] == ["vote"]
    assert 0.1 < found.certificates[0].bound < 0.3
