"""Numbers of books and exercises: exhaustive adversaries, Littlestone dimensions, theorem 21.16, online to batch."""

import math
from itertools import pairwise

import numpy as np
import pytest

from app.ml.finite_class_learner import State as Votes
from app.ml.numerics.online_learning.doubling import DOUBLING
from app.ml.numerics.online_learning.littlestone import Littlestone
from app.ml.online_learner import Rounds
from app.ml.sessions.learner_catalogue import learner_entries


def learner_of(name, **params):
    entry = learner_entries()[name]
    return entry.learner, entry.learner.params.model_validate(params)


def rounds(x, labels, turn=0, seed=0):
    x, labels = np.array(x, float), np.array(labels, float)
    draws = np.random.default_rng(seed).random((len(x), 2))
    return Rounds(x, labels, np.full(len(x), np.nan), draws, turn)


def table_of(predictions):
    points = [f"p{place:02}" for place in range(len(predictions[0]))]
    return {"name": "table", "points": points, "predictions": [[bool(one) for one in row] for row in predictions]}


def forced(name, predictions):
    """The most mistakes that any sequence of labels that some hypothesis gives can force."""
    learner, params = learner_of(name, hypotheses=table_of(predictions))
    known = {}

    def votes(state):
        return state if isinstance(state, Votes) else state.votes

    def worst(state, left):
        if left not in known:
            known[left] = 0
            for point in range(len(predictions[0])):
                for label in {predictions[one][point] for one in left}:
                    played = learner.play(params, state, rounds([[point]], [label]))
                    rest = frozenset(one for one in left if predictions[one][point] == label)
                    if rest != left:
                        known[left] = max(known[left], played.losses[0] + worst(played.state, rest))
        return known[left]

    first = learner.start(params, 1)
    assert votes(first).errors.size == len(predictions)
    return worst(first, frozenset(range(len(predictions))))


@pytest.mark.parametrize("d", [3, 5, 8])
def test_singletons(d):
    """Understanding Machine Learning, exercises 21.1 to 21.3."""
    singletons = np.eye(d, dtype=int).tolist()
    assert (forced("consistent", singletons), forced("halving", singletons), forced("soa", singletons)) == (d - 1, 1, 1)
    search = Littlestone(np.eye(d, dtype=np.uint8))
    assert search.dimension(search.everything) == 1


def test_all_labellings_of_three_points():
    every = [[bits >> place & 1 for place in range(3)] for bits in range(8)]
    assert (forced("halving", every), forced("soa", every)) == (3, 3)
    search = Littlestone(np.array(every, np.uint8).T.copy())
    assert (search.dimension(search.everything), search.dimension(0)) == (3, -1)


@pytest.mark.parametrize(("n", "dimension"), [(3, 2), (4, 2), (7, 3), (8, 3), (15, 4)])
def test_thresholds(n, dimension):
    """⌊log₂(n + 1)⌋ for n points."""
    table = np.tri(n + 1, n, -1, dtype=np.uint8)
    search = Littlestone(table.T.copy())
    assert search.dimension(search.everything) == dimension == math.floor(math.log2(n + 1))
    assert forced("halving", table.tolist()) == forced("soa", table.tolist()) == dimension


def test_an_adversary_forces_as_many_mistakes_on_disjunctions_as_there_are_inputs():
    learner, params = learner_of("disjunction")
    played = learner.play(params, learner.start(params, 6), rounds(np.eye(6), np.zeros(6)))
    assert played.losses.tolist() == [1.0] * 6
    assert played.bound[-1] == 6


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_mistakes_of_the_perceptron(noise):
    """Theorem 21.16: (R/γ)² for sets that a plane parts, the general bound for any others and any w*."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(60, 3))
        true = rng.normal(size=3)
        gaps = np.abs(x @ true)
        x = x[gaps > 0.1 * np.linalg.norm(true)]
        labels = (x @ true > 0) ^ (rng.random(len(x)) < noise)
        candidates = [true / np.abs(x @ true).min()] if noise == 0 else rng.normal(size=(4, 3)) * 3
        for weights in candidates:
            given = {"coefficients": weights.tolist()}
            learner, params = learner_of("perceptron", fit_intercept=False, comparator=given)
            played = learner.play(params, learner.start(params, 3), rounds(x, labels))
            assert played.losses.sum() <= played.bound[-1] * (1 + 1e-9)
            if noise == 0:
                radius, margin = np.linalg.norm(x, axis=1).max(), 1 / np.linalg.norm(weights)
                assert played.bound[-1] == pytest.approx((radius / margin) ** 2)


def test_each_mistake_of_the_perceptron_moves_it_as_the_proof_says():
    """⟨w, w*⟩ grows by 1 or more, ‖w‖² by R² at most."""
    rng = np.random.default_rng(1)
    x, true = rng.normal(size=(200, 4)), np.array([1.0, -2.0, 0.5, 0.3])
    true /= np.abs(x @ true).min()
    learner, params = learner_of("perceptron", fit_intercept=False)
    states, mistakes = [learner.start(params, 4)], 0
    for turn, row in enumerate(x):
        played = learner.play(params, states[-1], rounds([row], [row @ true > 0], turn))
        states.append(played.state)
        mistakes += played.losses[0]
    along = [state.kept.last[:4] @ true for state in states]
    squares = [state.kept.last @ state.kept.last for state in states]
    radius = np.linalg.norm(x, axis=1).max()
    assert all(after == before or after >= before + 1 - 1e-6 for before, after in pairwise(along))
    assert all(after <= before + radius**2 + 1e-9 for before, after in pairwise(squares))
    assert along[-1] >= mistakes - 1e-6
    assert math.sqrt(squares[-1]) <= math.sqrt(mistakes) * radius


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_the_regret_of_descent_is_no_less_than_that_against_the_best_weights(loss):
    """The best of the ball in hindsight, by an independent minimiser."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(2)
    x = rng.normal(size=(2000, 2))
    labels = x @ [0.4, -0.3] + 0.3 * rng.normal(size=2000)
    labels = labels if loss == "squared" else 1.0 * (labels > 0)
    learner, params = learner_of("ogd", loss=loss, horizon=2000, lipschitz=4.0, fit_intercept=False)
    played = learner.play(params, learner.start(params, 2), rounds(x, labels))

    def total(weights):
        margin = (2 * labels - 1) * (x @ weights)
        if loss == "squared":
            return ((x @ weights - labels) ** 2).sum()
        return np.maximum(0, 1 - margin).sum() if loss == "hinge" else np.logaddexp(0, -margin).sum()

    inside = {"type": "ineq", "fun": lambda weights: 1 - weights @ weights}
    best = minimize(total, [0.1, -0.1], constraints=[inside], method="SLSQP").fun
    regret = played.losses.sum() - best
    assert regret <= played.regret[-1] + 1e-6 <= played.bound[-1] + 1e-6
    if loss != "squared" and np.linalg.norm(x, axis=1).max() <= 4.0:
        assert played.bound[-1] <= 4.0 * math.sqrt(2000) * (1 + 1e-9)


def test_the_price_of_doubling():
    """Exercise 21.4: the worst sum over periods for fewer than 5000 rounds is 3.3765√T."""
    worst = max(sum(2 ** (m / 2) for m in range(t.bit_length())) / math.sqrt(t) for t in range(1, 5000))
    assert worst == pytest.approx(3.3765, abs=5e-5)
    assert pytest.approx(3.41421, abs=5e-6) == DOUBLING


@pytest.mark.parametrize("horizon", [None, 400])
def test_regret_against_adversarial_experts(horizon):
    """The label is the less likely one in each round."""
    learner, params = learner_of("weighted_majority", hypotheses={"name": "experts"}, horizon=horizon)
    rng, state = np.random.default_rng(3), learner.start(params, 5)
    for turn in range(400):
        row = rng.random((1, 5)) < 0.5
        share = (state.kept.last * row).sum() / state.kept.last.sum()
        played = learner.play(params, state, rounds(row, [share <= 0.5], turn))
        state = played.state
        assert played.regret[0] <= played.bound[0]
    if horizon:
        assert played.bound[0] == pytest.approx(math.sqrt(2 * 400 * math.log(5)))


def test_a_random_round_of_halving_errs_as_its_bound_says():
    """Thresholds on 16 points, 40 rounds: at most 4 mistakes, so that the mean error is at most 0.1."""
    learner, params = learner_of("halving", hypotheses={"name": "thresholds", "grid": [*map(float, range(1, 16))]})
    points, errors = np.arange(16), []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x, border = rng.integers(0, 16, (40, 1)), rng.integers(0, 17)
        played = learner.play(params, learner.start(params, 1), rounds(x, x[:, 0] >= border, seed=seed))
        votes = np.tri(16, 16, -1)[points] @ played.state.kept.chosen / played.state.kept.chosen.sum() > 0.5
        errors.append(np.mean(votes != (points >= border)))
    assert np.mean(errors) <= 0.1


def test_kept_hypotheses_are_those_of_the_rounds():
    """The mean, a random round and the longest survivor, beside a replay in numpy."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(300, 2))
    labels = (x @ [1.0, 1.0] > 0) ^ (rng.random(300) < 0.1)
    learner, params = learner_of("perceptron")
    given = rounds(x, labels)
    state = learner.play(params, learner.start(params, 2), given).state
    weights, used = np.zeros(3), []
    for row, label in zip(np.column_stack([x, np.ones(300)]), labels, strict=True):
        used.append(weights)
        if (row @ weights > 0) != label:
            weights = weights + (row if label else -row)
    np.testing.assert_allclose(state.kept.last, weights)
    np.testing.assert_allclose(learner.average(params, state, 300), np.mean(used, axis=0))
    chosen = [used[turn] for turn in range(300) if given.draws[turn, 1] * (turn + 1) < 1][-1]
    np.testing.assert_allclose(state.kept.chosen, chosen)
    starts = [0, *(turn for turn in range(1, 300) if not np.array_equal(used[turn], used[turn - 1])), 300]
    survivor, length = state.kept.longest(300)
    lengths = np.diff(starts)
    assert length == lengths.max()
    np.testing.assert_allclose(survivor, used[starts[int(lengths.argmax())]])
