"""Guarantees are true at the stated rate, share their failure probability, and are withheld where premises fail."""

import numpy as np
import pytest

from app.ml.algorithms import bagging, decision_tree, logistic, perceptron, random_forest, svm
from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.contract.capacity import Capacity, Compression, GibbsRisk, Mistakes
from app.ml.evaluation.guarantees import Errors, Evidence, guarantees, without_holdout
from app.ml.numerics.sampling.content_order import in_content_order
from app.ml.numerics.trees.forest import total

catalogue()  # which says what a learner may be
CASES = {
    "logistic": (logistic, logistic.Logistic(), {"holdout", "vc_dimension"}),
    "decision_tree": (decision_tree, decision_tree.DecisionTree(max_depth=2), {"holdout", "labellings"}),
    "svm": (
        svm,
        svm.SVM(kernel="linear", cv=None, C=0.1),
        {"holdout", "vc_dimension", "margin", "compression"},
    ),
    "rbf": (svm, svm.SVM(gamma=0.1, cv=None), {"holdout", "margin", "compression"}),
    "random_forest": (random_forest, random_forest.RandomForest(n_estimators=5), {"holdout", "vote"}),
    "perceptron": (perceptron, perceptron.Perceptron(epochs=20), {"holdout", "vc_dimension", "mistakes"}),
}
"""Algorithm, its parameters, and the bounds that it has."""


def rows(rng, n):
    """Two overlapping classes of two columns."""
    codes = rng.integers(2, size=n)
    return rng.normal(size=(n, 2)) + 1.2 * codes[:, None] * [1, 0], codes


def wrong(module, params, state, x, codes):
    return Errors(int((module.predict(params, state, x).argmax(axis=1) != codes).sum()), len(x))


def failures(name, times, *, n=40):
    """Simulations in which a bound was below the risk, which 20,000 further rows measure: of each bound that may fail
    in 5 % of them, and of any where all of them together may.
    """
    module, params, expected = CASES[name]
    rng, failed = np.random.default_rng(0), dict.fromkeys([*expected, "any"], 0)
    many = rows(rng, 20_000)
    for _ in range(times):
        x, codes = rows(rng, n)
        train = Data.of(Task.CLASSIFICATION, x, codes)
        fit = module.fit(params, train, Context.of(0))
        find = module.ALGORITHM.capacity
        evidence = Evidence(
            test=wrong(module, params, fit.state, *rows(rng, n)),
            train=wrong(module, params, fit.state, x, codes),
            classes=2,
            capacity=None if find is None else find(params, fit.state, train),
            gibbs=fit.gibbs,
        )
        together = guarantees(evidence).certificates
        risk = wrong(module, params, fit.state, *many).share
        failed["any"] += any(fails(one, risk) for one in together)
        for one in guarantees(evidence, 0.05 * sum(one.delta > 0 for one in together)).certificates:
            assert one.delta == pytest.approx(0.05 * (one.name != "mistakes"))
            failed[one.name] += fails(one, risk)
    return failed


def fails(one, risk):
    return one.bound < (risk if one.quantity == "error_rate" else one.measured)


@pytest.mark.parametrize("name", CASES)
def test_bounds_hold(name):
    failed = failures(name, 40)
    assert max(failed.values()) <= 7  # of 40, 2 on average at most: more than 7 has probability 0.0007
    assert failed.get("mistakes", 0) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_bounds_hold_in_many_simulations(name):
    """At most 5 % of 2,000 fail: 100, and three standard deviations."""
    failed = failures(name, 2000)
    assert max(failed.values()) <= 130, failed
    assert failed.get("mistakes", 0) == 0


def test_losses_of_trees_are_those_of_their_unseen_rows():
    """Against the trees themselves: each row by the trees that have not drawn it."""
    x, codes = rows(np.random.default_rng(3), 60)
    data = in_content_order(Data.of(Task.CLASSIFICATION, x, codes))
    x, codes = data.x, data.codes
    params = bagging.Bagging.model_validate({"n_estimators": 7, "voting": "hard"})
    fit = bagging.fit(params, data, nested.context(4))
    losses, sizes = [], []
    for seed, member in zip(nested.context(4).rng.integers(2**63, size=7).tolist(), fit.state.members, strict=True):
        unseen = ~np.isin(np.arange(60), bagging.draw(seed, 60, 60))
        losses.append(np.mean(member.predict(x[unseen]).argmax(axis=1) != codes[unseen]))
        sizes.append(unseen.sum())
    assert fit.gibbs == (pytest.approx(np.mean(losses)), min(sizes), max(sizes))


def test_a_vote_is_wrong_at_most_twice_as_often_as_its_members():
    rng = np.random.default_rng(5)
    x, codes = rows(rng, 200)
    data = Data.of(Task.CLASSIFICATION, x, codes)
    for params in (
        random_forest.RandomForest(n_estimators=9),
        random_forest.RandomForest(n_estimators=9, voting="hard"),
    ):
        state = random_forest.fit(params, data, Context.of(0)).state
        new, truth = rows(rng, 2000)
        shares = total(state.trees, new) / 9
        members = 1 - shares[np.arange(2000), truth]
        assert wrong(random_forest, params, state, new, truth).share <= 2 * members.mean()


def test_a_fit_that_its_support_vectors_do_not_determine():
    given = Evidence(Errors(5, 100), Errors(20, 400), 2, Capacity(dimension=3, compression=Compression(10, 0)))
    found = guarantees(given._replace(undetermined="Because."))
    assert {one.name for one in found.certificates} == {"holdout", "vc_dimension"}
    assert [(one.name, one.reason) for one in found.withheld] == [("compression", "Because.")]


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
