"""Transductive support vector machines: an objective that falls, labels in given numbers, and both extremes."""

import itertools

import numpy as np
import pytest
from sklearn import datasets

from app.base.errors import InvalidData
from app.ml.algorithms import svm
from app.ml.algorithms.transductive_svm import ALGORITHM, TransductiveSVM, decision, fit, predict, summary
from app.ml.contract.algorithm import Context, Data, Meaning, Size, Task
from app.ml.contract.data import Unlabelled
from app.ml.contract.relations import Relations
from app.ml.numerics.kernel_functions.rbf_kernel import Rbf


def partly(x, y, known, **more):
    rest = Unlabelled(x[~known], np.flatnonzero(~known))
    return Data.of(Task.CLASSIFICATION, x[known], y[known], unlabelled=rest, numbers=np.flatnonzero(known), **more)


def fitted(data, **params):
    params = TransductiveSVM(**params)
    return params, fit(params, data, Context.of(0))


def few(y, each, seed=0):
    rng = np.random.default_rng(seed)
    known = np.zeros(len(y), bool)
    for code in np.unique(y):
        known[rng.choice(np.flatnonzero(y == code), each, replace=False)] = True
    return known


def moons(seed):
    x, y = datasets.make_moons(200, noise=0.1, random_state=seed)
    return x, y, few(y, 1, seed)


def clouds(seed=0, n=300, apart=2.2):
    """Two classes apart along the first of four columns, which vary alike otherwise."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    x = rng.normal(size=(n, 4)) * [0.5, 2, 2, 2]
    x[:, 0] += apart * y
    return x, y


@pytest.fixture(scope="module")
def digits():
    x, y = datasets.load_digits(return_X_y=True)
    x, y = x[:500] / 16, y[:500]
    return x, y, few(y, 4)


def objective(params, data, state, labels):
    """½‖w‖² + Σ C max(0, 1 − yf) of two classes, from the support vectors."""
    x = np.concatenate([data.x, data.unlabelled.x])
    f = decision(params, state, x)[:, 0]
    coef, vectors = state.machine.coef[0], x[state.machine.places]
    kernel = Rbf(np.array([state.machine.gamma])).matrix(vectors, vectors)
    y = np.concatenate([np.where(data.codes == 1, 1, -1), labels])
    weights = np.repeat([1, params.unlabelled_weight], [len(data.x), len(labels)])
    return 0.5 * coef @ kernel @ coef + params.C * weights @ np.maximum(0, 1 - y * f)


@pytest.mark.parametrize(("kernel", "seed"), [*itertools.product(["linear", "rbf"], range(2))])
def test_the_objective_falls_at_every_switch(kernel, seed):
    x, y = clouds(seed)
    _, found = fitted(partly(x, y, few(y, 3, seed)), kernel=kernel, C=3.0, init="machine")
    weights, objectives = found.state.objectives.T
    switched = found.state.steps[:, 1]
    assert np.count_nonzero(switched) >= 3
    assert (np.diff(objectives)[switched[1:] > 0] < 0).all()
    assert (switched % 2 == 0).all(), "as many rows get a label as lose it"
    assert (np.diff(weights)[switched[1:] > 0] == 0).all()
    assert weights[0] == 0
    assert weights[-1] == 1
    assert found.converged


def test_the_objective_is_that_of_the_labels_and_each_switch_back_costs():
    """No exchange of two labels lowers the sum for the same boundary."""
    x, y = clouds(1)
    data = partly(x, y, few(y, 3, 1))
    params, found = fitted(data, tol=1e-6)
    f = decision(params, found.state, data.unlabelled.x)[:, 0]
    labels = np.full(f.size, -1.0)
    labels[np.argsort(-f)[: found.state.positives[0]]] = 1
    assert objective(params, data, found.state, labels) == pytest.approx(found.state.objectives[-1, 1], rel=1e-6)
    costs = [np.maximum(0, 1 - sign * f) for sign in (-1, 1)]
    higher, lower = np.flatnonzero(labels > 0), np.flatnonzero(labels < 0)
    change = (costs[0] - costs[1])[higher][:, None] + (costs[1] - costs[0])[lower]
    assert change.min() >= -1e-9


def test_without_weight_it_is_the_machine_of_the_labelled_rows():
    """X6: C* = 0."""
    x, y = clouds(2)
    known = few(y, 20)
    data, alone = partly(x, y, known), Data.of(Task.CLASSIFICATION, x[known], y[known])
    for kernel in ("linear", "rbf"):
        same = {"kernel": kernel, "gamma": 0.3, "tol": 1e-9}
        params, found = fitted(data, unlabelled_weight=0, **same)
        theirs = svm.SVM(**same, cv=None)
        expected = svm.decision(theirs, svm.fit(theirs, alone, Context.of(0)).state, x)
        np.testing.assert_allclose(decision(params, found.state, x), expected, atol=1e-6)
        assert "`unlabelled_weight` is 0" in found.warnings[0]
        params, found = fitted(alone, **same)
        np.testing.assert_allclose(decision(params, found.state, x), expected, atol=1e-6)
        assert "No row lacks the target" in found.warnings[0]


def test_with_all_labels_right_it_is_the_machine_of_all_rows():
    x, y = clouds(3, apart=8.0)
    known = few(y, 20)
    params, found = fitted(partly(x, y, known), gamma=0.3, tol=1e-9)
    theirs = svm.SVM(gamma=0.3, tol=1e-9, cv=None)
    every = svm.fit(theirs, Data.of(Task.CLASSIFICATION, x, y), Context.of(0)).state
    np.testing.assert_allclose(decision(params, found.state, x), svm.decision(theirs, every, x), atol=1e-6)


def test_two_moons_with_a_label_each():
    """X6: far better than the machine of the labelled rows."""
    errors = np.zeros(2)
    for seed in range(4):
        x, y, known = moons(seed)
        data = partly(x, y, known)
        params, found = fitted(data, C=1, unlabelled_weight=0.1, gamma=10, init="annealing")
        alone, machine = fitted(data, gamma=10, unlabelled_weight=0)
        errors += [np.mean(predict(p, f.state, x).argmax(axis=1) != y) for p, f in ((alone, machine), (params, found))]
        assert summary(params, found.state)["machines"][0]["annealed"]
    assert errors[0] / 4 > 0.2
    assert errors[1] / 4 < 0.02


def test_both_starts_end_in_the_lower_objective():
    x, y, known = moons(2)
    ends = {
        init: fitted(partly(x, y, known), gamma=5, init=init)[1].state.objectives[-1, 1]
        for init in ("machine", "annealing", "both")
    }
    assert ends["annealing"] < ends["machine"]
    assert ends["both"] == ends["annealing"]
    assert TransductiveSVM().init == "machine"


def test_rows_without_a_label_show_the_column_that_matters():
    """Most of six draws; of one in which the labels mislead the first machine, the minimum stays the wrong one."""
    errors = np.zeros((2, 6))
    for seed in range(6):
        x, y = clouds(seed, n=600, apart=3.0)
        known = few(y, 3, seed)
        for place, weight in enumerate((0, 1)):
            params, found = fitted(partly(x, y, known), kernel="linear", unlabelled_weight=weight, init="machine")
            errors[place, seed] = np.mean(predict(params, found.state, x).argmax(axis=1) != y)
    assert np.median(errors[1]) < 0.1 * np.median(errors[0])


def test_digits_one_against_the_rest(digits):
    x, y, known = digits
    params, found = fitted(partly(x, y, known), init="machine")
    alone, machine = fitted(partly(x, y, known), unlabelled_weight=0)
    right = [np.mean(predict(p, f.state, x[~known]).argmax(axis=1) == y[~known]) for p, f in
             ((alone, machine), (params, found))]  # fmt: skip
    assert right[1] > right[0] + 0.03
    report = summary(params, found.state)
    assert [one["classes"] for one in report["machines"]] == [[code] for code in range(10)]
    assert [label["row"] for label in report["labels"]] == np.flatnonzero(~known).tolist()
    assert [label["class"] for label in report["labels"]] == predict(params, found.state, x[~known]).argmax(1).tolist()
    for one in report["machines"]:
        assert one["switched_rows"] == sum(step["switched_rows"] for step in one["steps"])
        assert one["switches"] == sum(step["switched_rows"] > 0 for step in one["steps"])
        assert one["labelled_as_class"] == 46
        assert one["objective"] == one["steps"][-1]["objective"]
    assert sum(one["switches"] for one in report["machines"]) >= 10


@pytest.mark.parametrize(("priors", "positives"), [("learned", 67), ("uniform", 134), ([0.9, 0.1], 27)])
def test_priors_fix_how_many_rows_get_each_label(priors, positives):
    x, y = clouds()
    known = np.zeros(300, bool)
    known[[*np.flatnonzero(y == 0)[:24], *np.flatnonzero(y == 1)[:8]]] = True
    _, found = fitted(partly(x, y, known), priors=priors)
    assert found.state.positives.tolist() == [positives]


def test_a_list_of_another_length_is_refused():
    x, y = clouds()
    with pytest.raises(InvalidData, match="2 classes, and 3 priors"):
        fitted(partly(x, y, few(y, 3)), priors=[0.2, 0.3, 0.5])


def test_class_weights_count_for_rows_without_a_label():
    """Labelled rows of the second class weigh 9 times as much: so do the rows that are labelled as of it."""
    x, y = clouds(4)
    known = few(y, 10)
    weights = np.where(y[known] == 1, 9.0, 1.0)
    _, found = fitted(partly(x, y, known, weights=weights), C=0.01, kernel="linear")
    coef = found.state.machine.coef[0]
    bounded = [coef[coef > 0].max(), -coef[coef < 0].min()]
    np.testing.assert_allclose(bounded, [0.09, 0.01], rtol=1e-6)


def test_a_given_kernel_is_that_of_the_rows():
    x, y = clouds(5, n=80)
    known = few(y, 4)
    order = np.r_[np.flatnonzero(known), np.flatnonzero(~known)]
    square = x[order] @ x[order].T
    square.setflags(write=False)
    given = Data.of(
        Task.CLASSIFICATION,
        square[:8],
        y[known],
        unlabelled=Unlabelled(square[8:]),
        relations=Relations(Meaning.KERNEL, np.ascontiguousarray(square[:8, :8])),
    )
    by_square, by_rows = fitted(given, tol=1e-7), fitted(partly(x, y, known), kernel="linear", tol=1e-7)
    expected = decision(by_rows[0], by_rows[1].state, x[order])
    np.testing.assert_allclose(decision(by_square[0], by_square[1].state, square), expected, atol=1e-4)


def test_one_class_alone():
    x, _ = clouds()
    params, found = fitted(Data.of(Task.CLASSIFICATION, x[:5], np.zeros(5), classes=2, unlabelled=Unlabelled(x[5:])))
    np.testing.assert_array_equal(predict(params, found.state, x), np.tile([1.0, 0.0], (300, 1)))
    np.testing.assert_array_equal(decision(params, found.state, x), np.ones((300, 1)))


def test_many_rows_of_a_linear_kernel_keep_no_rows_of_it():
    size = Size(100_000, 20, 2)
    assert ALGORITHM.memory(TransductiveSVM(kernel="linear"), size) < 200 * 2**20
