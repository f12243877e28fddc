"""Boosting by weights, by majority and by Newton steps; codes that correct errors."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from app.base.errors import InvalidData
from app.ml.algorithms import adaboost, boost_majority, ecoc, gradient_boosting, logitboost
from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import catalogue, find
from app.ml.contract.algorithm import Context, Data, Task

catalogue()  # which says what a learner may be


def of(load):
    x, y = load(return_X_y=True)
    return Data.of(Task.CLASSIFICATION, x, y)


@pytest.fixture(scope="module")
def cancer():
    return of(load_breast_cancer)


@pytest.fixture(scope="module")
def wine():
    return of(load_wine)


@pytest.fixture(scope="module")
def line():
    return Data.of(Task.CLASSIFICATION, np.arange(30.0)[:, None], [0] * 10 + [1] * 10 + [0] * 10)


def fitted(module, params, data):
    return module.fit(params, data, Context.of(0))


# adaboost


def test_after_its_round_a_tree_is_wrong_on_half_of_the_weight(cancer):
    params = adaboost.AdaBoost(n_estimators=12)
    found = fitted(adaboost, params, cancer)
    weights = np.full(len(cancer.x), 1 / len(cancer.x))
    votes = [stage.argmax(axis=1) for stage in adaboost.stages(found.state.trees, cancer.x)]
    for predicted, vote, error in zip(votes, found.state.votes, found.state.errors, strict=True):
        wrong = predicted != cancer.codes
        assert weights[wrong].sum() == pytest.approx(error, rel=1e-9)
        weights = weights * np.exp(vote * wrong)
        weights /= weights.sum()
        assert weights[wrong].sum() == pytest.approx(0.5, rel=1e-9)


def test_a_share_of_a_vote_moves_the_weights_by_as_much(cancer):
    found = fitted(adaboost, adaboost.AdaBoost(n_estimators=4, learning_rate=0.3), cancer)
    weights = np.full(len(cancer.x), 1 / len(cancer.x))
    predictions = adaboost.stages(found.state.trees, cancer.x).argmax(axis=2)
    for wrong, vote, error in zip(predictions != cancer.codes, found.state.votes, found.state.errors, strict=True):
        assert weights[wrong].sum() == pytest.approx(error, rel=1e-9)
        assert vote == pytest.approx(0.3 * np.log((1 - error) / error), rel=1e-9)
        weights = weights * np.exp(vote * wrong)
        weights /= weights.sum()


def test_the_exponential_loss_is_the_product_and_bounds_the_error(cancer):
    for rounds in (1, 5, 30):
        params = adaboost.AdaBoost(n_estimators=rounds)
        found = fitted(adaboost, params, cancer)
        predicted = adaboost.predict(params, found.state, cancer.x)
        h = np.log(predicted[:, 1] / predicted[:, 0]) / 2  # P = σ(2H)
        loss = np.exp(-h * cancer.signs[:, 1]).mean()
        e = found.state.errors
        assert loss == pytest.approx(np.prod(2 * np.sqrt(e * (1 - e))), rel=1e-9)
        assert found.curves["training_error"][-1] <= loss


def test_the_interval_on_a_line_is_learned_in_three_rounds(line):
    errors = fitted(adaboost, adaboost.AdaBoost(n_estimators=3), line).curves["training_error"]
    assert errors[-1] == 0
    assert min(errors[:-1]) > 0


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_adaboost_learns_as_well_as_the_peer(load):
    data = of(load)
    params = adaboost.AdaBoost(n_estimators=30)
    found = fitted(adaboost, params, data)
    peer = AdaBoostClassifier(n_estimators=30).fit(data.x, data.codes)
    np.testing.assert_allclose(found.state.errors[:3], peer.estimator_errors_[:3], rtol=1e-6)
    ours = (adaboost.predict(params, found.state, data.x).argmax(axis=1) == data.codes).mean()
    assert ours >= peer.score(data.x, data.codes) - 0.02


def test_a_perfect_tree_ends_it(line):
    found = fitted(adaboost, adaboost.AdaBoost(n_estimators=50, max_depth=3), line)
    assert found.iterations == 1
    predicted = adaboost.predict(adaboost.AdaBoost(), found.state, line.x)
    assert predicted.max() == pytest.approx(1 - 1 / 60)  # as if half of one of 30 rows were wrong


def test_a_row_may_weigh_nothing_beside_the_others():
    weights = [1e250, 1e250, 1e-250]
    data = Data.of(Task.CLASSIFICATION, [[0.0], [1.0], [1.0]], [0, 1, 0], weights=weights)
    found = fitted(adaboost, adaboost.AdaBoost(), data)
    assert adaboost.predict(adaboost.AdaBoost(), found.state, data.x).argmax(axis=1).tolist() == [0, 1, 1]


def test_four_in_five():
    """E11: H = ½ ln(p/(1 - p)) = .6931 minimises the expected exponential loss, which is then 2√(p(1 - p)) = .8."""
    same = Data.of(Task.CLASSIFICATION, np.zeros((10, 1)), [0] * 2 + [1] * 8)
    params = adaboost.AdaBoost(n_estimators=1)
    predicted = adaboost.predict(params, fitted(adaboost, params, same).state, same.x)
    h = np.log(predicted[:, 1] / predicted[:, 0]) / 2  # P = σ(2H)
    np.testing.assert_allclose(h, 0.6931, atol=5e-5)
    assert np.exp(-h * same.signs[:, 1]).mean() == pytest.approx(0.8)


def test_without_a_better_than_even_chance_the_prediction_is_the_shares():
    same = Data.of(Task.CLASSIFICATION, np.zeros((10, 1)), [0] * 5 + [1] * 5)
    found = fitted(adaboost, adaboost.AdaBoost(), same)
    assert found.warnings
    np.testing.assert_allclose(adaboost.predict(adaboost.AdaBoost(), found.state, same.x), 0.5)


def test_an_explanation_tells_every_stage(cancer):
    params = adaboost.AdaBoost(n_estimators=4)
    state = fitted(adaboost, params, cancer).state
    (explanation,) = adaboost.explain(params, state, cancer.x[:1])
    assert len(explanation["stages"]) == 4
    np.testing.assert_allclose(
        explanation["stages"][-1]["probabilities"], adaboost.predict(params, state, cancer.x[:1])[0]
    )


@pytest.mark.parametrize(("classes", "times"), [(2, 2.7), (4, 3.5)])
def test_logitboost_keeps_little_beside_its_codes(classes, times):
    """A working response, its weights, and a score for each class: no matrices of all rows and classes beside them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80_000, 30)).round(2)
    data = Data.of(Task.CLASSIFICATION, x, rng.integers(0, classes, len(x)))
    params = logitboost.LogitBoost(n_estimators=2, splits="binned")
    fitted(logitboost, params, data)  # what is compiled is compiled
    tracemalloc.start()
    fitted(logitboost, params, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < times * x.size


ROUNDS = [
    (gradient_boosting, lambda rounds: gradient_boosting.GradientBoosting(n_estimators=rounds)),
    (logitboost, lambda rounds: logitboost.LogitBoost(n_estimators=rounds)),
]


@pytest.mark.parametrize("classes", [1, 2, 3])
@pytest.mark.parametrize(("module", "make"), ROUNDS)
def test_a_stage_is_what_fewer_rounds_would_have_predicted(module, make, classes):
    x = np.random.default_rng(0).normal(size=(60, 3))
    data = Data.of(Task.CLASSIFICATION, x, np.arange(60) % classes)
    explanation = module.explain(make(3), fitted(module, make(3), data).state, x[:5])
    assert len(explanation) == 5
    for number in range(1, 4 if classes > 1 else 1):
        predicted = module.predict(make(number), fitted(module, make(number), data).state, x[:5])
        stage = [one["stages"][number - 1]["probabilities"] for one in explanation]
        np.testing.assert_allclose(stage, predicted, rtol=1e-14)  # a round's trees are added up first


def test_stages_of_numbers():
    x = np.random.default_rng(0).normal(size=(60, 3))
    data = Data.of(Task.REGRESSION, x, x @ [1.0, 2.0, 0.0])
    params = gradient_boosting.GradientBoosting(n_estimators=5)
    state = fitted(gradient_boosting, params, data).state
    explanation = gradient_boosting.explain(params, state, x[:4])
    assert [len(one["stages"]) for one in explanation] == [5] * 4
    last = [one["stages"][-1]["prediction"] for one in explanation]
    np.testing.assert_array_equal(last, gradient_boosting.predict(params, state, x[:4]))


def test_the_sum_of_votes_is_doubled_before_it_is_a_probability():
    """E11, erratum: of a class that has 8 of 10 rows H is ln(4)/2, and σ(2H) its share; σ(H) would be 2/3."""
    data = Data.of(Task.CLASSIFICATION, np.repeat([[0.0], [1.0]], 10, axis=0), np.repeat([0, 1, 1, 0], [8, 2, 8, 2]))
    params = adaboost.AdaBoost(n_estimators=1)
    state = fitted(adaboost, params, data).state
    np.testing.assert_allclose(state.votes / 2, np.log(4) / 2)
    np.testing.assert_allclose(adaboost.predict(params, state, data.x)[:, 1], np.repeat([0.2, 0.8], 10))


def test_squared_loss_punishes_what_is_too_correct_and_leaves_the_unit_interval():
    """E11: a few rows far on their own side bend a squared loss until it errs near the border; log odds do not care."""
    near = np.array([-2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0])
    y = np.repeat([0.0, 1.0], [4, 9])
    far = Data.of(Task.CLASSIFICATION, np.append(near, np.full(5, 60.0))[:, None], y)
    without = Data.of(Task.CLASSIFICATION, near[:, None], y[:8])

    def fitted_by(spec, data):
        learned = nested.context(0).fit(find(spec["name"]).spec.model_validate(spec), data)
        return learned.predict(near[:, None]).argmax(axis=1)

    for name in "linear", "logistic", "adaboost", "logitboost":
        np.testing.assert_array_equal(fitted_by({"name": name}, without), y[:8])
        assert (fitted_by({"name": name}, far) == y[:8]).all() == (name != "linear")
    share = find("linear").algorithm
    numbers = Data.of(Task.REGRESSION, far.x, y)
    state = share.fit(share.params(), numbers, Context.of(0)).state
    low, high = share.predict(share.params(), state, np.array([[-60.0], [90.0]]))
    assert (low < 0, high > 1) == (True, True)
    for module in adaboost, logitboost:
        params = module.ALGORITHM.params()
        shares = module.predict(params, fitted(module, params, far).state, np.array([[-60.0], [90.0]]))
        assert 0 <= shares.min() <= shares.max() <= 1


# boosting by majority


def test_what_is_wrong_counts_twice_and_every_vote_once(line):
    """J7, J8: for γ = 1/6 the factor (1/2 + γ)/(1/2 - γ) is 2; the realised edge is reported."""
    params = boost_majority.BoostMajority(edge=1 / 6, n_estimators=9, max_depth=1)
    state = fitted(boost_majority, params, line).state
    votes = np.array([stage.argmax(axis=1) for stage in adaboost.stages(state.trees, line.x)])
    weights = np.ones(30)
    for wrong, edge in zip(votes != line.codes, state.edges, strict=True):
        assert 0.5 - weights[wrong].sum() / weights.sum() == pytest.approx(edge)
        weights[wrong] *= 2
    np.testing.assert_allclose(boost_majority.predict(params, state, line.x)[:, 1], votes.mean(axis=0))
    result = boost_majority.summary(params, state)
    assert result["realised_edge"] == pytest.approx(1 / 6)
    assert result["assumption_failed_in_round"] is None


def test_the_theorem_on_the_line(line):
    params = boost_majority.BoostMajority(edge=1 / 6, max_depth=1)
    found = fitted(boost_majority, params, line)
    assert found.converged
    assert found.iterations == 63  # the smallest odd number above ln 30 / (2/36) = 61.2
    n = len(line.x)
    for rounds, error in enumerate(found.curves["training_error"], start=1):
        assert error * n <= n * (1 - 4 / 36) ** (rounds / 2) + 1e-9
    assert max(found.curves["weighted_error"]) == pytest.approx(1 / 3)
    assert found.curves["training_error"][2] == 0
    assert min(found.curves["training_error"][:2]) > 0


def test_the_round_that_failed_is_the_first_whose_tree_falls_short_and_has_no_vote(cancer):
    """J8: by another's stumps, on weights kept by hand."""
    weights, edges, gamma = np.ones(len(cancer.x)), [], 0.2
    while not edges or edges[-1] >= gamma:
        stump = DecisionTreeClassifier(max_depth=1, random_state=0).fit(cancer.x, cancer.codes, weights)
        wrong = stump.predict(cancer.x) != cancer.codes
        edges.append(0.5 - weights[wrong].sum() / weights.sum())
        weights[wrong] *= 0.7 / 0.3
    assert len(edges) > 2
    state = fitted(boost_majority, boost_majority.BoostMajority(edge=gamma, max_depth=1), cancer).state
    assert state.failed == len(edges)
    np.testing.assert_allclose(state.edges, edges[:-1], rtol=1e-9)
    assert state.trees.root.size == len(edges) - 1


def test_logitboost_that_takes_all_its_rounds_has_converged(cancer):
    found = fitted(logitboost, logitboost.LogitBoost(n_estimators=20), cancer)
    assert (found.converged, found.iterations) == (True, 20)


def test_it_says_in_which_round_the_assumption_failed(cancer):
    found = fitted(boost_majority, boost_majority.BoostMajority(edge=0.4, max_depth=1), cancer)
    assert not found.converged
    result = boost_majority.summary(boost_majority.BoostMajority(edge=0.4), found.state)
    assert result["assumption_failed_in_round"] == found.state.failed > 0
    assert f"round {found.state.failed}" in found.warnings[0]


def test_a_first_tree_without_the_edge_fails(cancer):
    chance = Data.of(Task.CLASSIFICATION, np.zeros((10, 1)), [0] * 5 + [1] * 5)
    with pytest.raises(InvalidData, match=r"failed in round 1: the tree's edge was 0, not 0\.1"):
        fitted(boost_majority, boost_majority.BoostMajority(edge=0.1), chance)
    with pytest.raises(InvalidData, match="deeper trees"):
        fitted(boost_majority, boost_majority.BoostMajority(edge=0.49, max_depth=1), cancer)
    assert fitted(boost_majority, boost_majority.BoostMajority(), chance).state.failed == 1


@pytest.mark.parametrize(("classes", "worst"), [(2, 0.2), (8, 0.4)])
def test_the_default_edge_is_one_that_holds_or_the_least(classes, worst):
    """With an edge of 0.1 and two splits the first trees fall short: a handful of them is the model, or none."""
    x, y = make_classification(
        2400, 12, n_informative=8, n_classes=classes, n_clusters_per_class=1, flip_y=0.05, random_state=3
    )
    old, new = Data.of(Task.CLASSIFICATION, x[:1200], y[:1200]), Data.of(Task.CLASSIFICATION, x[1200:], y[1200:])
    plain, params = boost_majority.BoostMajority(edge=0.1, max_depth=2), boost_majority.BoostMajority()
    found = fitted(boost_majority, params, old)
    assert found.converged
    assert not found.state.failed or found.state.edge == boost_majority.EDGES[-1]
    assert boost_majority.summary(params, found.state)["edge"] == found.state.edge

    def error(fit):
        return (boost_majority.predict(params, fit.state, new.x).argmax(axis=1) != new.codes).mean()

    assert error(found) < worst
    if classes == 2:
        before = fitted(boost_majority, plain, old)
        assert not before.converged
        assert error(found) < error(before)
    else:
        with pytest.raises(InvalidData, match="round 1"):
            fitted(boost_majority, plain, old)


@pytest.mark.parametrize("name", ["adaboost", "boost_majority", "gradient_boosting", "logitboost"])
def test_boosting_converges_by_default_where_classes_overlap(name):
    """The number of rounds is the size of a model, not a limit of its solver."""
    x, y = make_classification(600, 8, flip_y=0.2, random_state=1)
    algorithm = find(name).algorithm
    found = algorithm.fit(algorithm.params(), Data.of(Task.CLASSIFICATION, x, y), Context.of(0))
    assert found.converged


# logitboost


def test_the_loss_goes_down(cancer, wine):
    for data in (cancer, wine):
        curve = fitted(logitboost, logitboost.LogitBoost(n_estimators=30), data).curves["loss"]
        assert curve[0] == pytest.approx(np.log(data.targets.shape[1]))
        assert (np.diff(curve) < 0).all()


def test_on_one_yes_or_no_column_it_is_logistic_regression():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (300, 1)) * 1.0
    y = (rng.random(300) < np.where(x[:, 0] > 0, 0.8, 0.3)).astype(int)
    data = Data.of(Task.CLASSIFICATION, x, y)
    params = logitboost.LogitBoost(n_estimators=300, tol=1e-15)
    predicted = logitboost.predict(params, fitted(logitboost, params, data).state, x)
    peer = LogisticRegression(C=np.inf, tol=1e-12).fit(x, y).predict_proba(x)
    np.testing.assert_allclose(predicted, peer, rtol=1e-4)


def test_three_classes_of_known_shares():
    data = Data.of(Task.CLASSIFICATION, np.zeros((10, 1)), [0] * 5 + [1] * 3 + [2] * 2)
    params = logitboost.LogitBoost(n_estimators=500, tol=1e-16)
    predicted = logitboost.predict(params, fitted(logitboost, params, data).state, data.x[:1])
    np.testing.assert_allclose(predicted[0], [0.5, 0.3, 0.2], rtol=1e-5)


def test_a_step_of_more_than_two_classes_is_its_definition():
    """From p = 1/3: f = (share - p)/(p(1 - p)), and F grows by ν (k - 1)/k (f - mean f)."""
    data = Data.of(Task.CLASSIFICATION, np.zeros((10, 1)), [0] * 5 + [1] * 3 + [2] * 2)
    params = logitboost.LogitBoost(n_estimators=1, learning_rate=0.5)
    result = logitboost.predict(params, fitted(logitboost, params, data).state, data.x[:1])[0]
    steps = (np.array([0.5, 0.3, 0.2]) - 1 / 3) / (2 / 9)
    np.testing.assert_allclose(np.log(result / result[0]), 0.5 * 2 / 3 * (steps - steps[0]), rtol=1e-9)


def test_a_step_is_at_most_four():
    """Of six classes apart a leaf of one would take f = (1 - p)/(p(1 - p)) = 6, and of the others -1.2."""
    data = Data.of(Task.CLASSIFICATION, np.repeat(np.arange(6.0), 5)[:, None], np.repeat(np.arange(6), 5))
    params = logitboost.LogitBoost(n_estimators=1, learning_rate=1.0, max_depth=5)
    result = logitboost.predict(params, fitted(logitboost, params, data).state, np.array([[2.0]]))[0]
    np.testing.assert_allclose(np.log(result[2] / result[[0, 1, 3, 4, 5]]), 5 / 6 * (4 + 1.2), rtol=1e-6)


def test_thresholds_may_lie_anywhere_or_between_bins():
    """Of 2,000 values that differ one is separated by any threshold, and by bins of some eight rows it is not."""
    x = np.arange(2000.0)[:, None]
    data = Data.of(Task.CLASSIFICATION, x, [1, *[0] * 1999])

    def cut(splits):
        params = logitboost.LogitBoost(n_estimators=1, splits=splits, tol=1e-15)
        return fitted(logitboost, params, data).state.trees.threshold[0]

    assert cut("auto") == cut("exact") == 0.5
    assert cut("binned") > 5


# codes


def test_shares_are_of_the_classes_own_bits(wine):
    spec = {"estimator": {"name": "logitboost", "n_estimators": 5}, "code": "one_vs_all"}
    params = ecoc.ECOC.model_validate({**spec, "decode": "shares"})
    state = ecoc.fit(params, wine, nested.context(0)).state
    ones = np.column_stack([member.predict(wine.x)[:, 1] for member in state.members])
    predicted = ecoc.predict(params, state, wine.x)
    np.testing.assert_allclose(predicted, ones / ones.sum(axis=1, keepdims=True), rtol=1e-9)
    product = ecoc.predict(ecoc.ECOC.model_validate(spec), state, wine.x)
    np.testing.assert_array_equal(predicted.argmax(axis=1), product.argmax(axis=1))
    two = wine.take(wine.codes < 2).with_target(Task.CLASSIFICATION, wine.y[wine.codes < 2], classes=2)
    single = ecoc.fit(params, two, nested.context(0)).state
    (member,) = single.members
    np.testing.assert_allclose(ecoc.predict(params, single, two.x)[:, 0], member.predict(two.x)[:, 1], rtol=1e-9)


def test_without_a_bit_for_each_class_shares_are_likelihood(wine):
    spec = {"estimator": {"name": "logitboost", "n_estimators": 5}, "code": "exhaustive"}
    shares, product = (ecoc.ECOC.model_validate({**spec, "decode": decode}) for decode in ("shares", "likelihood"))
    state = ecoc.fit(shares, wine, nested.context(0)).state
    np.testing.assert_array_equal(ecoc.predict(shares, state, wine.x), ecoc.predict(product, state, wine.x))


@pytest.mark.parametrize("k", [3, 4, 5, 6])
def test_any_few_flipped_bits_are_corrected(k):
    code = ecoc.exhaustive(k)
    assert code.shape == (k, 2 ** (k - 1) - 1)
    assert ecoc.min_distance(code) == 2 ** (k - 2)
    corrected = (2 ** (k - 2) - 1) // 2
    rng = np.random.default_rng(k)
    for _ in range(200):
        words = code.copy()
        for word in words:
            word[rng.permutation(code.shape[1])[:corrected]] ^= 1
        np.testing.assert_array_equal(ecoc.nearest(words, code), np.eye(k))


def test_one_more_flipped_bit_is_one_too_many():
    code = np.array([[1, 1, 1], [0, 0, 0]])
    assert ecoc.nearest(np.array([[0, 0, 1]]), code).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    "words",
    [
        [[1, 0], [0, 1]],  # complementary columns
        [[1, 1], [0, 0]],  # equal columns
        [[1, 1], [0, 1]],  # a constant column
        [[1], [1]],  # one word for both
        [[1, 0], [0]],  # of different lengths
    ],
)
def test_codes_that_are_none(words):
    with pytest.raises(ValueError, match=r"Codewords|same codeword|column of the code"):
        ecoc.ECOC.model_validate({"code_words": words})


def test_a_given_code_is_learned_bit_by_bit(wine):
    """A word for each class, by ascending label."""
    words = [[1, 1, 0], [0, 0, 0], [0, 1, 1]]
    params = ecoc.ECOC.model_validate(
        {"code_words": words, "estimator": {"name": "decision_tree"}, "decode": "hamming"}
    )
    state = ecoc.fit(params, wine, nested.context(0)).state
    assert state.code.tolist() == words
    for bit, member in zip(state.code.T, state.members, strict=True):
        alone = nested.context(0).fit(params.estimator, wine.with_target(wine.task, bit[wine.codes] * 1.0, classes=2))
        np.testing.assert_array_equal(member.predict(wine.x), alone.predict(wine.x))
    assert (ecoc.predict(params, state, wine.x).argmax(axis=1) == wine.codes).mean() > 0.9


def test_a_code_is_of_all_classes():
    data = Data.of(Task.CLASSIFICATION, np.arange(4.0)[:, None], [0, 0, 1, 1])
    with pytest.raises(InvalidData):
        ecoc.fit(ecoc.ECOC(code_words=[[1, 0], [0, 0], [1, 1]]), data, nested.context(0))


@pytest.mark.parametrize(("k", "bits"), [(3, 2), (4, 5), (8, 100), (10, 511), (12, 40)])
def test_a_random_code_has_as_many_different_bits_as_requested(k, bits):
    code = ecoc._random(k, bits, np.random.default_rng(0))
    assert code.shape == (k, bits)
    assert len(np.unique(code ^ code[:1], axis=1).T) == bits
    assert not (code == code[:1]).all(axis=0).any()
    assert ecoc.min_distance(code) >= 1


def test_a_random_code_is_the_best_of_some_draws():
    """8 classes, 12 bits: of one draw the nearest words are about 2 apart."""
    draws = [ecoc.min_distance(ecoc._columns(8, 12, np.random.default_rng(seed))) for seed in range(100)]
    found = [ecoc.min_distance(ecoc._random(8, 12, np.random.default_rng(seed))) for seed in range(5)]
    assert np.mean(draws) < 3
    assert min(found) >= np.quantile(draws, 0.98) > 3


def test_by_default_the_code_of_few_classes_is_exhaustive():
    for k, bits in ((2, 1), (3, 3), (6, 31), (7, 29)):
        assert ecoc._code(ecoc.ECOC(), k, np.random.default_rng(0)).shape == (k, bits)


@pytest.mark.parametrize("spec", [{"code": "one_vs_all"}, {"code": "random"}, {"code": "random", "decode": "hamming"}])
def test_many_classes_by_learners_of_two(spec):
    digits = of(load_digits)
    held = np.arange(len(digits.x)) % 4 == 0
    params = ecoc.ECOC.model_validate({"estimator": {"name": "ridge"}, **spec})
    state = ecoc.fit(params, digits.take(~held), nested.context(0)).state
    predicted = ecoc.predict(params, state, np.ascontiguousarray(digits.x[held]))
    assert (predicted.argmax(axis=1) == digits.codes[held]).mean() > 0.9
    assert ecoc.min_distance(state.code) >= (2 if spec["code"] == "one_vs_all" else 8)


def test_two_classes_are_one_bit(cancer):
    state = ecoc.fit(ecoc.ECOC.model_validate({"estimator": {"name": "ridge"}}), cancer, nested.context(0)).state
    assert state.code.shape == (2, 1)


BOOSTED = {
    "adaboost": {"n_estimators": 10, "max_depth": 2},
    "gradient_boosting": {"n_estimators": 8, "max_leaf_nodes": 4},
}


@pytest.mark.parametrize("name", BOOSTED)
def test_boosted_bits_may_flip_as_often_as_the_code_corrects(name):
    """E13: whichever ⌊(d_min - 1)/2⌋ learners predict the opposite, a row that had a codeword keeps its class."""
    digits = of(load_digits)
    five = digits.take(digits.codes < 5)
    five = Data.of(Task.CLASSIFICATION, five.x, five.y)
    held = np.arange(len(five.x)) % 3 == 0
    params = ecoc.ECOC.model_validate({"estimator": {"name": name} | BOOSTED[name], "decode": "hamming"})
    state = ecoc.fit(params, five.take(~held), nested.context(0)).state
    assert ecoc.summary(params, state)["corrects"] == 3
    x = np.ascontiguousarray(five.x[held])
    predicted = ecoc.predict(params, state, x)
    words = np.column_stack([member.predict(x)[:, 1] > 0.5 for member in state.members])
    exact = (words[:, None] == state.code[None]).all(axis=2).any(axis=1)
    right = (predicted.argmax(axis=1) == five.codes[held]).mean()
    assert right > max(0.9, exact.mean() + 0.05), "a row may have no codeword and yet its class"

    def flipped(member):
        turned = replace(member.algorithm, predict=lambda *given: member.algorithm.predict(*given)[:, ::-1])
        return member._replace(algorithm=turned)

    rng = np.random.default_rng(0)
    for count in (1, 3):
        wrong = rng.permutation(15)[:count]
        members = tuple(flipped(one) if place in wrong else one for place, one in enumerate(state.members))
        np.testing.assert_array_equal(ecoc.predict(params, state._replace(members=members), x)[exact], predicted[exact])
    members = tuple(map(flipped, state.members[:8])) + state.members[8:]
    assert (ecoc.predict(params, state._replace(members=members), x)[exact] != predicted[exact]).any(), "8 are too many"
