"""Learners made of several: the theorems that hold for any rows, and who may see which."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import scipy
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from app.base.errors import InvalidData
from app.ml.algorithms import additive, committee, random_subspace, stacking
from app.ml.algorithms import feature_weighted_stacking as weighted
from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import catalogue, find
from app.ml.contract.algorithm import Context, Data, FittedLearner, Task
from app.ml.models.model import decode
from app.ml.numerics.sampling.content_order import in_content_order
from app.ml.numerics.sampling.folds import dealt, out_of_fold
from tests.ml.training.test_train import run

catalogue()  # which says what a learner may be
RIDGE, KNN, TREE = {"name": "ridge"}, {"name": "knn"}, {"name": "decision_tree", "max_depth": 3}


@pytest.fixture(scope="module")
def diabetes():
    x, y = load_diabetes(return_X_y=True)
    return Data.of(Task.REGRESSION, 10 * x, y)


@pytest.fixture(scope="module")
def wine():
    x, y = load_wine(return_X_y=True)
    return Data.of(Task.CLASSIFICATION, (x - x.mean(axis=0)) / x.std(axis=0), y)


@pytest.fixture(scope="module")
def cancer():
    x, y = load_breast_cancer(return_X_y=True)
    return Data.of(Task.CLASSIFICATION, (x - x.mean(axis=0)) / x.std(axis=0), y)


def fitted(module, params_class, data, **spec):
    params = params_class.model_validate(spec)
    return params, module.fit(params, data, nested.context(0)).state


def one_by_one(fit):
    return lambda fits: (fit(one.spec, one.data()) for one in fits)


# stacking


@pytest.mark.parametrize("module", [stacking, weighted])
def test_at_no_level_does_a_learner_predict_a_row_it_has_seen(module):
    """E4: a stack in a stack; row numbers travel as a column, and every fit at every level is watched."""
    n, rng, requested = 40, np.random.default_rng(0), []
    x = np.column_stack([np.arange(n), rng.normal(size=n)])
    data = Data.of(Task.REGRESSION, x, x[:, 1])

    def watched(spec, rows):
        algorithm, seen = find(spec.name).algorithm, set(rows.x[:, 0])
        state = algorithm.fit(spec, rows, Context(rng, fit_all=one_by_one(watched))).state

        def predict(params, state, x):
            requested.append((spec.name, len(seen)))
            assert not seen & set(x[:, 0])
            return algorithm.predict(params, state, x)

        return FittedLearner(replace(algorithm, predict=predict), spec, state)

    inner = {"name": module.ALGORITHM.fit.__module__.rpartition(".")[2], "estimators": [RIDGE, KNN], "cv": 4}
    params = module.ALGORITHM.params.model_validate({"estimators": [inner, RIDGE]})
    module.fit(params, data, Context(rng, fit_all=one_by_one(watched)))
    assert requested.count((inner["name"], 32)) == 5
    assert requested.count(("knn", 24)) > 0, "fitted to three quarters of four fifths"


def test_no_row_is_predicted_by_a_learner_that_has_seen_it():
    """The leak check: row numbers travel as a column, and every inner fit is watched."""
    n = 40
    x = np.column_stack([np.arange(n), np.random.default_rng(0).normal(size=n)])
    data = Data.of(Task.REGRESSION, x, x[:, 1])
    inner, train_mask = nested.context(0), []

    def watched(spec, rows):
        learned = inner.fit(spec, rows)
        seen = set(rows.x[:, 0])
        train_mask.append(seen)

        def predict(_params, _state, x):
            assert len(x) == n or not seen & set(x[:, 0]), "a row was predicted by a fit that had seen it"
            return learned.predict(x)

        return FittedLearner(
            type(learned.algorithm)(**{**vars(learned.algorithm), "predict": predict}), spec, learned.state
        )

    params = stacking.Stacking.model_validate({"estimators": [RIDGE, KNN]})
    stacking.fit(params, data, Context(np.random.default_rng(0), fit_all=one_by_one(watched)))
    assert [len(seen) for seen in train_mask] == [*[32] * 5, 40] * 2
    everyone = set(range(n))
    for fold in range(5):
        assert everyone - train_mask[fold] == everyone - train_mask[6 + fold]  # the same folds for every member
    left_out = [row for seen in train_mask[:5] for row in everyone - seen]
    assert sorted(left_out) == sorted(everyone)  # disjoint, and all


def test_out_of_fold_predictions_are_those_of_the_folds(diabetes):
    fold = dealt(len(diabetes.x), 4, np.random.default_rng(0))
    context = nested.context(0)
    spec = stacking.Stacking.model_validate({"estimators": [RIDGE]}).estimators[0]
    ((member, result),) = out_of_fold(diabetes, fold, [spec], context)
    np.testing.assert_array_equal(member.predict(diabetes.x), context.fit(spec, diabetes).predict(diabetes.x))
    for k in range(4):
        again = context.fit(spec, diabetes.take(fold != k)).predict(np.ascontiguousarray(diabetes.x[fold == k]))
        np.testing.assert_array_equal(result[fold == k], again)


def test_weights_are_those_of_the_peer_and_never_negative(diabetes):
    rng = np.random.default_rng(1)
    predictions = diabetes.y[:, None] + 30 * rng.normal(size=(len(diabetes.y), 4)) * [1, 2, 3, 4]
    predictions[:, 3] *= -1
    rows = rng.uniform(0.5, 2, len(diabetes.y))
    ours = stacking.weights(predictions, diabetes.y, rows)
    peer = scipy.optimize.nnls(predictions * np.sqrt(rows)[:, None], diabetes.y * np.sqrt(rows))[0]
    np.testing.assert_allclose(ours, peer, rtol=1e-8, atol=1e-12)
    assert (ours >= 0).all()
    assert ours[3] == 0


def test_a_member_that_tells_the_truth_gets_all_the_weight():
    """E3: beside noise."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=300)
    predictions = np.column_stack([rng.normal(size=(300, 3)), truth])
    np.testing.assert_allclose(stacking.weights(predictions, truth, np.ones(300)), [0, 0, 0, 1], atol=1e-12)
    blurred = predictions + np.column_stack([np.zeros((300, 3)), 0.1 * rng.normal(size=300)])
    found = stacking.weights(blurred, truth, np.ones(300))
    assert found[3] == pytest.approx(1, abs=0.03)
    assert (found >= 0).all()
    assert found[:3].max() < 0.03


def test_a_stack_of_stacks_is_their_composition(diabetes):
    spec = {"estimators": [{"name": "stacking", "estimators": [RIDGE, TREE]}, KNN]}
    params, state = fitted(stacking, stacking.Stacking, diabetes, **spec)
    inner = state.members[0]
    by_hand = state.weights[0] * sum(
        weight * member.predict(diabetes.x)
        for weight, member in zip(inner.state.weights, inner.state.members, strict=True)
    ) + state.weights[1] * state.members[1].predict(diabetes.x)
    np.testing.assert_allclose(stacking.predict(params, state, diabetes.x), by_hand, rtol=1e-12)


def test_a_learner_may_stand_on_top(wine):
    spec = {"estimators": [RIDGE, KNN], "final_estimator": {"name": "logistic"}}
    params, state = fitted(stacking, stacking.Stacking, wine, **spec)
    predicted = stacking.predict(params, state, wine.x)
    above = np.concatenate([m.predict(wine.x)[:, :, None] for m in state.members], axis=2).reshape(len(wine.x), -1)
    np.testing.assert_allclose(predicted, state.second.predict(above), rtol=1e-12)
    assert (predicted.argmax(axis=1) == wine.codes).mean() > 0.95


def test_of_classes_probabilities_are_weighed_against_the_indicators(wine):
    """E3: and the error of a member is its Brier score, out of fold."""
    wine = in_content_order(wine)
    params = stacking.Stacking.model_validate({"estimators": [RIDGE, KNN, TREE]})
    state = stacking.fit(params, wine, nested.context(0)).state
    again = nested.context(0)
    fold = dealt(len(wine.x), 5, again.rng, wine.codes)
    predictions = np.stack([result.ravel() for _, result in out_of_fold(wine, fold, params.estimators, again)], axis=1)
    truth = np.eye(3)[wine.codes].ravel()
    np.testing.assert_allclose(state.weights, scipy.optimize.nnls(predictions, truth)[0], rtol=1e-8, atol=1e-12)
    brier = ((predictions - truth[:, None]) ** 2).sum(axis=0) / len(wine.x)
    np.testing.assert_allclose(state.errors, brier, rtol=1e-12)
    result = np.einsum("m,mnk->nk", state.weights, [member.predict(wine.x) for member in state.members])
    by_hand = result / result.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(stacking.predict(params, state, wine.x), by_hand, rtol=1e-9, atol=1e-15)


def test_where_every_member_misleads_all_count_alike():
    """Of targets of mean 0 the mean of the other folds has the wrong sign, wherever it is not 0."""
    y = np.random.default_rng(0).normal(size=40)
    data = Data.of(Task.REGRESSION, np.zeros((40, 1)), y - y.mean())
    fit = stacking.fit(stacking.Stacking.model_validate({"estimators": [RIDGE, TREE]}), data, nested.context(0))
    assert fit.state.weights.tolist() == [0.5, 0.5]
    assert "No member helps" in fit.warnings[0]


def test_members_that_cannot_help_count_alike():
    x = np.random.default_rng(0).normal(size=(30, 1))
    opposite = Data.of(Task.REGRESSION, x, np.tile([1.0, -1.0], 15))
    fit = stacking.fit(stacking.Stacking.model_validate({"estimators": [KNN, KNN]}), opposite, nested.context(0))
    assert fit.state.weights.sum() > 0


# feature-weighted stacking


def test_planted_weights_are_found_and_the_products_are_least_squares():
    rng = np.random.default_rng(0)
    g, f = rng.normal(size=(80, 3)), np.column_stack([np.ones(80), rng.normal(size=(80, 2))])
    planted = rng.normal(size=(3, 3))
    y = np.einsum("ni,ij,nj->n", g, planted, f)
    np.testing.assert_allclose(weighted.combination(g, f, y, np.ones(80)), planted, rtol=1e-10)
    noisy = y + rng.normal(size=80)
    products = (g[:, :, None] * f[:, None, :]).reshape(80, -1)
    best = np.linalg.lstsq(products, noisy, rcond=None)[0].reshape(3, 3)
    np.testing.assert_allclose(weighted.combination(g, f, noisy, np.ones(80)), best, rtol=1e-9)
    times = rng.integers(1, 4, 80)
    copies = np.linalg.lstsq(np.repeat(products, times, axis=0), np.repeat(noisy, times), rcond=None)[0]
    np.testing.assert_allclose(weighted.combination(g, f, noisy, times * 1.0), copies.reshape(3, 3), rtol=1e-9)


def test_weights_follow_the_row(diabetes):
    """E5: b(x) = Σ v f(x) g(x), and v by ordinary least squares on predictions of unseen rows."""
    diabetes = in_content_order(diabetes)
    named = Data.of(Task.REGRESSION, diabetes.x, diabetes.y, names=[f"x{j}" for j in range(10)])
    spec = {"estimators": [RIDGE, TREE], "meta_features": ["x8", "x2"]}
    params, state = fitted(weighted, weighted.FeatureWeightedStacking, named, **spec)
    f = np.column_stack([np.ones(len(named.x)), named.x[:, [8, 2]]])
    again = nested.context(0)
    fold = dealt(len(named.x), 5, again.rng)
    unseen = np.column_stack([result for _, result in out_of_fold(named, fold, params.estimators, again)])
    products = (unseen[:, :, None] * f[:, None]).reshape(len(f), -1)
    best = np.linalg.lstsq(products, named.y, rcond=None)[0].reshape(2, 3)
    np.testing.assert_allclose(state.v, best, rtol=1e-7)
    says = np.column_stack([member.predict(named.x) for member in state.members])
    by_hand = sum(best[i, j] * f[:, j] * says[:, i] for i in range(2) for j in range(3))
    np.testing.assert_allclose(weighted.predict(params, state, named.x), by_hand, rtol=1e-7)
    assert weighted.summary(params, state)["meta_features"] == ["1", "x8", "x2"]


def test_without_meta_features_it_is_linear_stacking(diabetes):
    params, state = fitted(weighted, weighted.FeatureWeightedStacking, diabetes, estimators=[RIDGE, TREE])
    result = np.column_stack([member.predict(diabetes.x) for member in state.members])
    np.testing.assert_allclose(weighted.predict(params, state, diabetes.x), result @ state.v[:, 0], rtol=1e-12)


def test_meta_features_are_named():
    x = np.random.default_rng(0).normal(size=(50, 2))
    data = Data.of(Task.REGRESSION, x, x[:, 0], names=("age", "plan=pro"))
    _, state = fitted(weighted, weighted.FeatureWeightedStacking, data, estimators=[RIDGE], meta_features=["plan=pro"])
    assert state.meta.tolist() == [1]
    with pytest.raises(InvalidData):
        fitted(weighted, weighted.FeatureWeightedStacking, data, estimators=[RIDGE], meta_features=["nobody"])


def test_meta_features_are_full_numbers_whatever_members_take():
    x = np.random.default_rng(0).normal(size=60)
    cells = [None if i % 7 == 0 else value for i, value in enumerate(x.tolist())]
    table = pa.table({"x": cells, "plan": ["pro", "basic", None] * 20, "y": x})
    params = {"estimators": [TREE], "meta_features": ["x", "plan=pro"]}
    trained = run(table, "feature_weighted_stacking", params=params, target="y", features=["x", "plan"])
    assert np.isfinite(decode(trained.blob).predict(table).values).all()


# committees


@pytest.mark.parametrize(
    ("m", "e", "p"), [(5, 0.3, 0.16308), (21, 0.3, 0.026390), (11, 0.4, 0.246502), (101, 0.4, 0.020897)]
)
def test_the_error_of_a_majority(m, e, p):
    assert committee.majority_error(m, e) == pytest.approx(p, abs=5e-7)


def test_the_average_is_no_worse_than_its_members_on_average(diabetes, wine):
    for data in (diabetes, wine):
        params, state = fitted(committee, committee.Committee, data, estimators=[RIDGE, KNN, TREE])
        target = data.y if data.task is Task.REGRESSION else data.targets
        missed = [np.mean((member.predict(data.x) - target) ** 2) for member in state.members]
        assert np.mean((committee.predict(params, state, data.x) - target) ** 2) <= np.mean(missed) + 1e-15


def stubs(predictions):
    """Learners that predict these, whatever the rows."""
    algorithm = replace(find("ridge").algorithm, predict=lambda _, state, __: state)
    return tuple(FittedLearner(algorithm, None, one) for one in predictions)


def test_the_mean_of_independent_members_has_an_mth_of_their_variance():
    """E2."""
    predictions, x = np.random.default_rng(0).normal(size=(8, 20_000)), np.zeros((20_000, 1))
    state = committee.State(stubs(predictions), np.full(8, 1 / 8), None)
    predicted = committee.predict(committee.Committee.model_validate({"estimators": [RIDGE] * 8}), state, x)
    assert predicted.var() == pytest.approx(predictions.var() / 8, rel=0.05)
    same = committee.State(stubs([predictions[0]] * 8), np.full(8, 1 / 8), None)
    np.testing.assert_allclose(
        committee.predict(committee.Committee(), same, x), predictions[0]
    )  # together they gain nothing


def test_weights_and_votes(wine):
    params, state = fitted(
        committee, committee.Committee, wine, estimators=[RIDGE, KNN, TREE], estimator_weights=[3, 1, 1], voting="hard"
    )
    votes = [np.eye(3)[member.predict(wine.x).argmax(axis=1)] for member in state.members]
    predicted = committee.predict(params, state, wine.x)
    np.testing.assert_allclose(predicted, (3 * votes[0] + votes[1] + votes[2]) / 5, rtol=1e-12)
    with pytest.raises(ValueError, match="as many estimator_weights"):
        committee.Committee.model_validate({"estimators": [RIDGE], "estimator_weights": [1, 2]})


def test_cross_validated_members_each_lack_a_fold(diabetes):
    inner, train_mask = nested.context(0), []

    def watched(spec, rows):
        train_mask.append(rows.weights.astype(int) - 1)
        return inner.fit(spec, rows)

    params = committee.Committee.model_validate({"estimators": [RIDGE, TREE], "cv": 4})
    numbered = replace(diabetes, weights=np.arange(1.0, len(diabetes.y) + 1))
    state = committee.fit(params, numbered, Context(np.random.default_rng(0), fit_all=one_by_one(watched))).state
    assert len(state.members) == 8
    everyone = set(range(len(diabetes.y)))
    lacking = [sorted(everyone - set(rows)) for rows in train_mask]
    assert lacking[:4] == lacking[4:]
    assert sorted(row for rows in lacking[:4] for row in rows) == sorted(everyone)  # disjoint, and all
    result = committee.summary(params, state)
    for member, rows, messages in zip(state.members, lacking, result, strict=True):
        missed = (member.predict(numbered.x[rows]) - numbered.y[rows]) ** 2
        assert messages["error"] == pytest.approx(
            np.sqrt(np.average(missed, weights=numbered.weights[rows])), rel=1e-12
        )


def test_a_fold_evaluates_members_that_have_not_seen_it(cancer):
    """As cross-validation does, which would fit the same members; without folds no member can be evaluated."""
    params, state = fitted(committee, committee.Committee, cancer, estimators=[TREE | {"prior_weight": 0}], cv=5)
    errors = np.array([member["error"] for member in committee.summary(params, state)])
    assert 0.03 < errors.mean() < 0.12  # of the rows that it learned from a tree gets fewer wrong
    of_all = [(member.predict(cancer.x).argmax(axis=1) != cancer.codes).mean() for member in state.members]
    assert np.mean(of_all) < 0.7 * errors.mean()
    params, state = fitted(committee, committee.Committee, cancer, estimators=[RIDGE])
    assert committee.summary(params, state)[0]["error"] is None


def test_rejection_by_unanimity_majority_and_gap(cancer):
    base = {"estimators": [RIDGE, KNN, TREE], "voting": "hard"}
    params, state = fitted(committee, committee.Committee, cancer, **base, min_probability=1.0)
    predicted = committee.predict(params, state, cancer.x)
    votes = np.array([member.predict(cancer.x).argmax(axis=1) for member in state.members])
    agreed = (votes == votes[0]).all(axis=0)
    np.testing.assert_array_equal(committee.accepted_rows(params, predicted), agreed)
    assert 0 < agreed.sum() < len(agreed)
    # Of what all agree on more is right than of everything.
    right = predicted.argmax(axis=1) == cancer.codes
    assert right[agreed].mean() > right.mean()
    two_thirds = committee.Committee.model_validate({**base, "min_probability": 2 / 3})
    assert committee.accepted_rows(two_thirds, predicted).all()
    led = committee.Committee.model_validate({**base, "min_probability": 0.5, "min_margin": 0.5})
    np.testing.assert_array_equal(committee.accepted_rows(led, predicted), agreed)  # 2 of 3 lead by a third only


def test_what_is_rejected_goes_to_the_second_model(cancer):
    spec = {
        "estimators": [RIDGE, KNN, TREE],
        "voting": "hard",
        "min_probability": 1.0,
        "fallback_estimator": {"name": "logistic"},
    }
    params, state = fitted(committee, committee.Committee, cancer, **spec)
    predicted = committee.predict(params, state, cancer.x)
    votes = np.array([member.predict(cancer.x).argmax(axis=1) for member in state.members])
    agreed = (votes == votes[0]).all(axis=0)
    second = state.fallback.predict(np.ascontiguousarray(cancer.x[~agreed]))
    np.testing.assert_array_equal(predicted[~agreed], second)
    assert committee.accepted_rows(params, predicted).all()


def test_a_portfolio_asks_each_member_as_often_as_it_should(diabetes):
    """E18: at random, but by the row: in any company it meets the same members."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 3))
    params = committee.Committee.model_validate({"estimators": [RIDGE, KNN, TREE], "activations": [0.2, 0.5, 0.9]})
    requested = committee.active(params, x)
    nobody = 0.8 * 0.5 * 0.1
    for share, a in zip(requested.mean(axis=0), (0.2, 0.5, 0.9), strict=True):
        assert a - 0.012 < share < a + nobody + 0.012
    assert np.corrcoef(requested.T)[0, 1] == pytest.approx(0, abs=0.1)
    assert requested.any(axis=1).all()
    some = rng.permutation(20_000)[:50]
    np.testing.assert_array_equal(committee.active(params, np.ascontiguousarray(x[some])), requested[some])


def test_a_portfolio_predicts_by_its_active_members(diabetes, wine):
    for data in (diabetes, wine):
        spec = {"estimators": [RIDGE, KNN, TREE], "estimator_weights": [3, 1, 1], "activations": [0.5, 0.5, 0.5]}
        params, state = fitted(committee, committee.Committee, data, **spec)
        requested = committee.active(params, data.x) * state.weights
        messages = np.stack([member.predict(data.x) for member in state.members], axis=-1)
        by_hand = np.einsum("n...m,nm->n...", messages, requested / requested.sum(axis=1, keepdims=True))
        predicted = committee.predict(params, state, data.x)
        np.testing.assert_allclose(predicted, by_hand, rtol=1e-9)
        assert committee.predict(params, state, data.x[:0]).shape == (0, *predicted.shape[1:])
        always = params.model_copy(update={"activations": [1.0, 1.0, 1.0]})
        whole = committee.predict(params.model_copy(update={"activations": None}), state, data.x)
        np.testing.assert_allclose(committee.predict(always, state, data.x), whole, rtol=1e-12)


def test_members_that_draw_differ_by_their_seeds_and_the_same_seed_is_the_same_committee(diabetes):
    """E14."""
    forest = {"name": "random_forest", "n_estimators": 3, "importance": False}
    first, again = (fitted(committee, committee.Committee, diabetes, estimators=[forest, forest])[1] for _ in range(2))
    one, other = (member.predict(diabetes.x) for member in first.members)
    assert (one != other).any()
    for mine, yours in zip(first.members, again.members, strict=True):
        np.testing.assert_array_equal(mine.predict(diabetes.x), yours.predict(diabetes.x))


# random subspaces


def test_members_see_their_columns_and_no_others(diabetes):
    _, state = fitted(random_subspace, random_subspace.RandomSubspace, diabetes, n_estimators=6, max_features=0.3)
    assert [len(places) for places in state.columns] == [3] * 6
    counted = fitted(random_subspace, random_subspace.RandomSubspace, diabetes, n_estimators=6, max_features=3)[1]
    np.testing.assert_array_equal(counted.columns, state.columns)
    assert len({tuple(places) for places in state.columns}) > 1
    changed = diabetes.x.copy()
    unseen = np.setdiff1d(np.arange(10), state.columns[0])
    changed[:, unseen] = 1e6
    one = state.members[0]
    np.testing.assert_array_equal(
        one.predict(np.ascontiguousarray(changed[:, state.columns[0]])),
        one.predict(np.ascontiguousarray(diabetes.x[:, state.columns[0]])),
    )


def test_a_portfolio_takes_all_gaps_for_one():
    """A missing value has many bit patterns, and comes with any of them."""
    params = committee.Committee.model_validate({"estimators": [TREE, TREE], "activations": [0.5, 0.5]})
    x = np.column_stack([np.arange(64.0), np.full(64, np.nan)])
    other = x.copy()
    other[:, 1] = np.array([0xFFF8000000000123], np.uint64).view(np.float64)
    assert np.array_equal(committee.active(params, x), committee.active(params, other))


def test_the_report_counts_the_rows_a_committee_rejects():
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=60), "y": rng.choice(["p", "q"], 60)})
    for share, result in ((1.0, ["To 12 test rows"]), (0.0, [])):
        warnings = run(
            table, "committee", params={"estimators": [KNN], "min_probability": share}, target="y"
        ).report.warnings
        assert [one[:15] for one in warnings if "assigns no class" in one] == result


def test_groups_are_honoured():
    x = np.random.default_rng(0).normal(size=(60, 4))
    data = Data.of(Task.REGRESSION, x, x.sum(axis=1), names=("age", "plan=basic", "plan=pro", "fee"))
    groups = [["age", "fee"], ["plan"]]
    _, state = fitted(random_subspace, random_subspace.RandomSubspace, data, groups=groups, estimator=RIDGE)
    assert [places.tolist() for places in state.columns] == [[0, 3], [1, 2]]
    with pytest.raises(InvalidData):
        fitted(random_subspace, random_subspace.RandomSubspace, data, groups=[["nobody"]])
    names = replace(data, names=("a=b", "a=b=low", "a=b=high", "c"))
    _, state = fitted(random_subspace, random_subspace.RandomSubspace, names, groups=[["a=b"]], estimator=RIDGE)
    assert state.columns[0].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="at least 1 item"):
        random_subspace.RandomSubspace(groups=[[]])


# additive models


def test_the_error_never_goes_up(diabetes):
    for base in (RIDGE, TREE, {"name": "knn"}):
        params = additive.Additive.model_validate({"fit": "backfitting", "estimator": base, "max_iter": 8})
        found = additive.fit(params, diabetes, nested.context(0))
        errors = found.curves["sse"]
        assert (np.diff(errors) <= 0).all()
        assert errors[-1] < errors[0]
        left = diabetes.y - additive.predict(params, found.state, diabetes.x)
        assert errors[-1] == pytest.approx(left @ left, rel=1e-9)


def test_stage_by_stage_the_best_column_is_added_times_what_lowers_the_error_most(diabetes):
    """E9, by hand: lines through the rest of each column."""
    params = additive.Additive.model_validate(
        {"estimator": {"name": "linear"}, "fit": "stagewise", "max_iter": 6, "learning_rate": 0.7}
    )
    weighed = replace(diabetes, weights=np.random.default_rng(0).uniform(0.5, 2, len(diabetes.y)))
    found = additive.fit(params, weighed, nested.context(0))
    w, x = weighed.weights, weighed.x - np.average(weighed.x, axis=0, weights=weighed.weights)
    left, columns = weighed.y - np.average(weighed.y, weights=w), []
    errors = [w @ left**2]
    for _ in range(6):
        betas = (w * left) @ x / (w @ x**2)
        rest = left[:, None] - 0.7 * betas * x
        columns.append(int(np.argmin(w @ rest**2)))
        left = rest[:, columns[-1]]
        errors.append(w @ left**2)
    assert found.state.columns.tolist() == columns
    assert len(set(columns)) < 6, "a column may come again"
    np.testing.assert_allclose(found.curves["sse"], errors, rtol=1e-9)
    np.testing.assert_allclose(additive.predict(params, found.state, weighed.x), weighed.y - left, rtol=1e-7)
    assert (found.converged, found.iterations) == (False, 6)


@pytest.mark.parametrize("base", [RIDGE, TREE, KNN])
def test_no_stage_raises_the_error(diabetes, base):
    spec = {"estimator": base, "fit": "stagewise", "max_iter": 12, "learning_rate": 0.5}
    params = additive.Additive.model_validate(spec)
    found = additive.fit(params, diabetes, nested.context(0))
    assert (np.diff(found.curves["sse"]) < 0).all()
    left = diabetes.y - additive.predict(params, found.state, diabetes.x)
    assert found.curves["sse"][-1] == pytest.approx(left @ left, rel=1e-9)
    parts = additive.components(found.state, diabetes.x)
    np.testing.assert_allclose(parts.mean(axis=0), 0, atol=1e-9 * np.abs(diabetes.y).max())
    assert 0 < (parts != 0).any(axis=0).sum() < 10, "columns that do not help are left out"


def test_where_no_column_helps_nothing_is_added():
    data = Data.of(Task.REGRESSION, np.zeros((9, 2)), np.arange(9.0))
    for rows in (data, data.columns(np.zeros(0, np.intp))):
        params, state = fitted(additive, additive.Additive, rows, fit="stagewise")
        assert state.members == ()
        assert additive.predict(params, state, rows.x).tolist() == [4.0] * 9


@pytest.mark.parametrize("way", ["backfitting", "stagewise"])
def test_straight_components_come_to_least_squares(diabetes, way):
    """E10; and stage by stage as well."""
    few = diabetes.columns(np.array([0, 2, 3, 8]))
    spec = {"estimator": {"name": "linear"}, "max_iter": 1000, "tol": 1e-14, "fit": way}
    params, state = fitted(additive, additive.Additive, few, **spec)
    design = np.column_stack([np.ones(len(few.x)), few.x])
    plane = design @ np.linalg.lstsq(design, few.y, rcond=None)[0]
    np.testing.assert_allclose(additive.predict(params, state, few.x), plane, rtol=1e-5)


@pytest.mark.parametrize("base", [TREE, KNN])
def test_what_columns_add_is_the_prediction_and_has_mean_zero(diabetes, base):
    params, state = fitted(additive, additive.Additive, diabetes, fit="backfitting", max_iter=5, estimator=base)
    parts = additive.components(state, diabetes.x)
    np.testing.assert_allclose(parts.mean(axis=0), 0, atol=1e-9 * np.abs(diabetes.y).max())
    explanation = additive.explain(params, state, diabetes.x[:3])
    sums = [one["mean"] + sum(part["value"] for part in one["adds"]) for one in explanation]
    np.testing.assert_allclose(sums, additive.predict(params, state, diabetes.x[:3]), rtol=1e-12)


def test_curves_that_add_up_are_found():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(600, 2))
    y = np.sin(2 * x[:, 0]) + x[:, 1] ** 2
    data = Data.of(Task.REGRESSION, x, y)
    params, state = fitted(additive, additive.Additive, data)
    assert 1 - np.var(y - additive.predict(params, state, x)) / np.var(y) > 0.98


# what members say


@pytest.mark.parametrize(
    ("module", "spec"),
    [
        (committee, {"estimators": [RIDGE, KNN]}),
        (stacking, {"estimators": [RIDGE, KNN]}),
        (random_subspace, {"n_estimators": 3, "estimator": RIDGE}),
    ],
)
def test_an_explanation_is_what_every_member_says(wine, module, spec):
    params = module.ALGORITHM.params.model_validate(spec)
    state = module.fit(params, wine, nested.context(0)).state
    explanation = module.explain(params, state, wine.x[:4])
    assert [len(one["members"]) for one in explanation] == [len(state.members)] * 4
    if module is not random_subspace:
        messages = [one["members"][1]["prediction"] for one in explanation]
        np.testing.assert_array_equal(messages, state.members[1].predict(np.ascontiguousarray(wine.x[:4])))
