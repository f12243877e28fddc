"""Random forest: bags, votes, bars; the out-of-bag error against rows held out; importance of what matters."""

import tracemalloc

import numpy as np
import pytest
from sklearn import datasets, ensemble

from app.ml.algorithms.random_forest import RandomForest, fit, interval, predict, summary
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.sampling.resampled_rows import times_drawn
from app.ml.numerics.trees.forest import each, total

C, R = Task.CLASSIFICATION, Task.REGRESSION


def rng(seed=0):
    return np.random.default_rng(seed)


def fitted(data, seed=0, **params):
    return fit(RandomForest(**params), data, Context.of(seed))


def friedman(n, seed=0):
    return Data.of(R, *datasets.make_friedman1(n, 10, noise=1.0, random_state=seed))


def blobs(n, seed=0):
    x, y = datasets.make_classification(n, 10, n_informative=5, flip_y=0.05, n_classes=3, random_state=seed)
    return Data.of(C, x, y)


def votes_for(shares):
    """A forest of stumps without splits, of which so many vote for each class."""
    state = fitted(blobs(50), n_estimators=sum(shares), max_depth=0, importance=False).state
    messages = np.repeat(np.arange(len(shares)), shares).astype(np.int32)
    return state._replace(trees=state.trees._replace(left=messages))


def test_votes_of_the_book():
    """B6.13: 300 trees say sun and 700 say rain."""
    shares = predict(RandomForest(), votes_for([300, 700, 0]), np.zeros((2, 10)))
    np.testing.assert_allclose(shares, [[0.3, 0.7, 0]] * 2, rtol=1e-12)


def test_a_bag_leaves_out_a_share_of_1_over_e():
    """B6.9: a tree has not seen (1 - 1/n)^n of the rows; of three trees some has not seen one less what all have."""
    n = 400
    forests = [
        fitted(friedman(n), seed=seed, n_estimators=3, max_depth=1, importance=False).state for seed in range(40)
    ]
    unseen = (1 - 1 / n) ** n
    assert np.mean([state.evaluated_rows for state in forests]) / n == pytest.approx(1 - (1 - unseen) ** 3, abs=0.01)


def test_trees_know_their_bag_by_heart_and_only_the_others_evaluate_a_row():
    """B6.9 to B6.11: grown to the end a tree repeats the rows of its bag, 63.2 % of them; by that the bag is known."""
    n, trees, data = 60, 4, friedman(60)
    found = fitted(data, n_estimators=trees, importance=False)
    state, warnings = found.state, found.warnings
    predictions = each(state.trees, data.x)
    unseen = ~np.isclose(predictions, data.y[:, None], rtol=1e-9)
    assert unseen.mean() == pytest.approx((1 - 1 / n) ** n, abs=0.08)
    evaluated = unseen.any(axis=1)
    result = (predictions * unseen).sum(axis=1)[evaluated] / unseen.sum(axis=1)[evaluated]
    assert state.evaluated_rows == evaluated.sum() < n
    assert warnings[0].startswith(f"{n - evaluated.sum()} rows are known to every member")
    assert fitted(data, n_estimators=60, importance=False).warnings == []
    errors = (result - data.y[evaluated]) ** 2
    assert state.out_of_bag == pytest.approx(np.mean(errors))
    assert state.deviation == pytest.approx(errors.std() / np.sqrt(errors.size))


def test_rows_are_drawn_with_replacement():
    """B6.9: n of n; how often a row is drawn is nearly Poisson's with mean 1."""
    times = np.concatenate([times_drawn(500, rng(seed)) for seed in range(200)])
    assert times.sum() == 200 * 500
    shares = np.bincount(times, minlength=4)[:4] / times.size
    np.testing.assert_allclose(shares, np.exp(-1) / [1, 1, 2, 6], atol=0.005)


@pytest.mark.parametrize(("origin", "unit"), [(1e9, 1.0), (0.0, 1e-60), (0.0, 1e60)])
def test_the_out_of_bag_error_is_that_of_other_units(origin, unit):
    data = friedman(400)
    own, other = (fitted(one, n_estimators=20).state for one in (data, Data.of(R, data.x, (data.y + origin) * unit)))
    assert other.out_of_bag == pytest.approx(own.out_of_bag * unit**2, rel=1e-6)


@pytest.mark.parametrize(("data", "columns"), [(blobs(80), 4), (friedman(80), 5), (blobs(80).columns(np.arange(9)), 3)])
def test_by_default_a_split_draws_the_root_or_half_of_the_columns(data, columns):
    """B6.10: of 10 columns √10 for classes and 10/2 for numbers, rounded up."""
    one, same, other = (
        fitted(data, n_estimators=3, importance=False, max_features=m).state for m in (None, columns, columns - 1)
    )
    assert one.trees.threshold.tobytes() == same.trees.threshold.tobytes() != other.trees.threshold.tobytes()


@pytest.mark.parametrize(("task", "draw"), [(C, blobs), (R, friedman)])
def test_the_out_of_bag_error_is_that_of_new_rows(task, draw):
    """B6.11, within its error bar and that of the new rows."""
    both = draw(3000, 1)
    old, new = both.take(np.arange(1500)), both.take(np.arange(1500, 3000))
    state = fitted(old, n_estimators=80, importance=False).state
    predicted = predict(RandomForest(), state, new.x)
    errors = (predicted.argmax(axis=1) != new.codes) * 1.0 if task is C else (predicted - new.y) ** 2
    spread = np.hypot(state.deviation, errors.std() / np.sqrt(errors.size))
    assert abs(state.out_of_bag - errors.mean()) < 3 * spread
    assert state.evaluated_rows == 1500


@pytest.mark.parametrize(("task", "draw"), [(C, blobs), (R, friedman)])
def test_as_good_as_scikit_learns(task, draw):
    both = draw(2000, 2)
    old, new = both.take(np.arange(1000)), both.take(np.arange(1000, 2000))
    rival = ensemble.RandomForestClassifier if task is C else ensemble.RandomForestRegressor
    columns = 4
    theirs = rival(100, max_features=columns, random_state=0).fit(old.x, old.y).predict(new.x)
    ours = predict(RandomForest(), fitted(old, max_features=columns, importance=False).state, new.x)
    if task is C:
        lead = (ours.argmax(axis=1) != new.y) * 1.0 - (theirs != new.y)
    else:
        lead = (ours - new.y) ** 2 - (theirs - new.y) ** 2
    assert lead.mean() < 3 * lead.std() / np.sqrt(lead.size)


def test_bars_are_percentiles_of_the_trees():
    """Of new rows: trees that have drawn a row agree on it, and their percentiles are tied."""
    new = friedman(300, 1).x
    state = fitted(friedman(300), importance=False).state
    predictions = each(state.trees, new)
    bars = interval(RandomForest(), state, new, 0.8)
    np.testing.assert_allclose(predictions.mean(axis=1), predict(RandomForest(), state, new), rtol=1e-12)
    inside = (bars[:, :1] <= predictions) & (predictions <= bars[:, 1:])
    assert inside.mean() == pytest.approx(0.8, abs=0.03)


def test_the_default_for_numbers_beats_a_third_of_the_columns():
    ratios = []
    for seed in range(6):
        old, new = friedman(300, seed), friedman(3000, 100 + seed)
        losses = [
            np.mean(
                (predict(RandomForest(), fitted(old, importance=False, max_features=columns).state, new.x) - new.y) ** 2
            )
            for columns in (None, 4)
        ]
        ratios.append(losses[0] / losses[1])
    assert np.mean(ratios) + 2 * np.std(ratios, ddof=1) / 6**0.5 < 1


def test_columns_that_matter_are_distinguished_from_those_that_do_not():
    """B6.12: of Friedman's ten columns the last five are noise."""
    state = fitted(friedman(800)).state
    result = summary(RandomForest(), state)
    assert {part["column"] for part in result["importances"][:5]} == set(range(5))
    noise = state.importance[5:] / state.importance_deviation[5:]
    assert np.abs(noise).max() < 4
    assert (state.importance[:5] / state.importance_deviation[:5]).min() > 8
    top = result["importances"][0]
    assert top["percent"] == pytest.approx(100 * top["increase"] / state.alone)


def test_without_an_error_a_percentage_is_undefined():
    x = np.repeat([[0.0], [1.0]], 50, axis=0)
    result = summary(RandomForest(), fitted(Data.of(C, x, x[:, 0])).state)
    assert result["out_of_bag"]["error"] == 0
    assert result["importances"][0]["percent"] is None
    assert result["importances"][0]["increase"] > 0.3


def test_a_permuted_column_of_no_tree_changes_nothing():
    x = np.column_stack([np.arange(40.0), np.full(40, 7.0)])
    assert fitted(Data.of(R, x, x[:, 0])).state.importance[1] == 0


def test_a_single_row_is_in_every_bag():
    state = fitted(friedman(1), n_estimators=5).state
    assert np.isnan(state.out_of_bag)
    assert summary(RandomForest(), state)["out_of_bag"]["error"] is None
    assert summary(RandomForest(), state)["importances"] == []


def test_more_trees_err_less():
    """B6.8: the committee beats its members."""
    fit_ = fitted(blobs(800), n_estimators=100)
    assert fit_.curves["out_of_bag"][-1] < 0.8 * fit_.state.alone


def test_another_seed_is_another_forest():
    one, other = (fitted(blobs(100), seed=seed, n_estimators=5).state.trees for seed in (1, 2))
    assert one.threshold.tobytes() != other.threshold.tobytes()


@pytest.mark.parametrize("subsets", ["best", "random"])
def test_categories_are_drawn_and_gaps_are_met(subsets):
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 12, 600), rng.normal(size=600)])
    y = (x[:, 0] % 3 == 0) * 1.0
    x[rng.random(x.shape) < 0.1] = np.nan
    data = Data.of(C, x, y, levels=[12, 0], missing=True)
    state = fitted(data, subsets=subsets).state
    assert state.out_of_bag < 0.12, "a tenth of the telling values is missing; two thirds of them are the larger class"
    assert state.trees.members.any()


@pytest.mark.parametrize(("missing", "ways"), [("side", {-1, 0, 1}), ("both", {-1}), ("branch", {-1, 1, 2})])
def test_missing_values_go_to_a_side_both_ways_or_their_own(missing, ways):
    data = blobs(300)
    x = data.x.copy()
    x[rng(0).random(x.shape) < 0.2] = np.nan
    state = fitted(Data.of(C, x, data.y, missing=True), n_estimators=20, importance=False, missing=missing).state
    assert set(state.trees.missing[state.trees.column >= 0].tolist()) == ways


def test_a_random_subset_of_many_categories_says_little():
    rng, levels = np.random.default_rng(1), [12, 40, 0, 0]
    x = np.column_stack([rng.integers(k, size=600) if k else rng.normal(size=600) for k in levels])
    y = sum(rng.normal(size=k)[x[:, j].astype(int)] for j, k in enumerate(levels) if k) + rng.normal(size=600)
    data = Data.of(R, x, y, levels=levels)
    best, drawn = (fitted(data, subsets=subsets).state.out_of_bag for subsets in ("best", "random"))
    assert best < 0.9 * drawn


def test_votes_by_shares_are_the_mean_of_the_leaves():
    data = blobs(200)
    params = RandomForest(voting="soft", min_samples_leaf=20, n_estimators=7)
    state = fit(params, data, Context.of(0)).state
    predicted = predict(params, state, data.x)
    np.testing.assert_allclose(predicted, total(state.trees, data.x) / 7)
    assert len(np.unique(predicted)) > 30, "shares, not sevenths"


def test_calibrated_votes_name_the_same_class_with_a_likelier_probability():
    """By the rows that the trees have not seen; of new rows the loss is less than of the shares, and than a peer's."""
    x, y = datasets.load_digits(return_X_y=True)
    old, new = Data.of(C, x[:600], y[:600]), Data.of(C, x[600:], y[600:])
    state = fitted(old, n_estimators=50, importance=False, probability="calibrated").state
    peer = ensemble.RandomForestClassifier(50, random_state=0).fit(old.x, old.y).predict_proba(new.x)
    shares, result = (predict(RandomForest(), s, new.x) for s in (state._replace(powers=np.zeros(0)), state))
    np.testing.assert_array_equal(shares.argmax(axis=1), result.argmax(axis=1))

    def lost(predicted):
        return -np.log(np.maximum(predicted[np.arange(new.codes.size), new.codes], 0.01))

    for other in (shares, peer):
        lead = lost(other) - lost(result)
        assert lead.mean() > 5 * lead.std() / np.sqrt(lead.size)
    assert set(summary(RandomForest(), state)["calibration"]) == {"exponent", "power"}
    assert summary(RandomForest(), state._replace(powers=np.zeros(0)))["calibration"] is None


def test_a_row_that_every_tree_has_seen_tells_nothing_of_votes():
    data = Data.of(C, [[1.0]], [1], classes=2)
    state = fitted(data, n_estimators=3, probability="calibrated").state
    assert state.powers.size == 0
    assert predict(RandomForest(), state, data.x).tolist() == [[0.0, 1.0]]


def test_with_gaps_it_is_as_good_as_the_peer_as_branches_of_their_own_are_not():
    """Every tenth cell is missing by chance; both send it to the side that gains more."""
    x, y = datasets.make_classification(4000, 10, n_informative=8, n_redundant=0, n_classes=3, random_state=0)
    x[np.random.default_rng(0).random(x.shape) < 0.1] = np.nan
    old, new = Data.of(C, x[:1000], y[:1000], missing=True), Data.of(C, x[1000:], y[1000:], missing=True)
    peer = ensemble.RandomForestClassifier(60, max_features=4, random_state=0).fit(old.x, old.y).predict_proba(new.x)

    def wrong(missing):
        state = fitted(old, n_estimators=60, max_features=4, importance=False, missing=missing).state
        return (predict(RandomForest(), state, new.x).argmax(axis=1) != new.codes) * 1.0

    side = wrong("side")
    lead = side - (peer.argmax(axis=1) != new.codes)
    assert lead.mean() < lead.std() / np.sqrt(lead.size)
    lost = wrong("branch") - side
    assert lost.mean() > 2 * lost.std() / np.sqrt(lost.size)


def test_bars_of_many_rows_take_little_memory():
    rng = np.random.default_rng(0)
    data = Data.of(Task.REGRESSION, rng.normal(size=(40, 2)), rng.normal(size=40))
    params = RandomForest(n_estimators=400, max_depth=2)
    state = fit(params, data, Context.of(0)).state
    x = rng.normal(size=(20_000, 2))
    few = interval(params, state, x[:100], 0.9)
    tracemalloc.start()
    many = interval(params, state, x, 0.9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 << 20 < x.shape[0] * 400 * 8
    np.testing.assert_array_equal(many[:100], few)


def test_columns_of_a_split_are_a_count_or_a_share():
    """Half of nine columns, rounded, is four; a count beyond all of them is all."""
    data = blobs(60).columns(np.arange(9))

    def trees(expected):
        return fitted(data, n_estimators=3, importance=False, max_features=expected).state.trees.threshold.tolist()

    assert trees(4) == trees(0.5) != trees(5)
    assert trees(1.0) == trees(9) == trees(1000) != trees(1)


def test_the_loss_of_a_tree_is_its_own_error_on_rows_that_it_has_not_seen():
    found = fitted(blobs(300), n_estimators=20, voting="hard")
    assert found.gibbs.loss == pytest.approx(found.state.alone, rel=1e-12)
    assert 80 < found.gibbs.fewest_rows < 300 / np.e < found.gibbs.most_rows < 140
    assert fitted(friedman(60), n_estimators=3).gibbs is None
