"""Contract of online learners: bounds hold on drawn and adversarial rounds, splits and seeds change no byte."""

import math

import numpy as np
import pytest

from app.ml.models.golden import check_golden
from app.ml.models.model import decode as decoded
from app.ml.sessions.learner_catalogue import learner_entries
from app.ml.sessions.session_model import publish
from app.ml.sessions.session_rounds import play
from app.ml.sessions.session_spec import OnlineSession, SessionSpec
from app.ml.sessions.session_state import decode, encode, first_state
from app.ml.tables.rows import read_rows

T = 300
GRID = [float(one) for one in range(1, 16)]
STEPS, TABLE = {"name": "thresholds", "grid": GRID}, {"name": "table", "points": list("dbca")}
TABLE |= {"predictions": [[bool(bits >> place & 1) for place in range(4)] for bits in range(16)]}
CLASSES = {
    "thresholds": (STEPS, ["numeric"]),
    "intervals": ({"name": "intervals", "grid": GRID[:8]}, ["numeric"]),
    "table": (TABLE, ["categorical"]),
    "disjunctions": ({"name": "disjunctions"}, ["boolean"] * 3),
    "experts": ({"name": "experts"}, ["boolean"] * 6),
}
OF_CLASSES = {"consistent": {}, "halving": {}, "soa": {}, "weighted_majority": {}}
CASES = [
    ({"name": "perceptron", "comparator": {"coefficients": [8.0, -16.0], "intercept": 2.0}}, ["numeric"] * 2),
    *(({"name": "ogd", "loss": loss, "projection": form, "horizon": horizon, "lipschitz": 4.0}, ["numeric"] * 2)
      for loss in ("hinge", "logistic", "squared") for form in ("ball", "box") for horizon in (None, T)),
    ({"name": "disjunction"}, ["boolean"] * 4),
    *(({"name": name, "hypotheses": of}, kinds)
      for name in OF_CLASSES for of, kinds in CLASSES.values() if (name, of["name"]) != ("soa", "experts")),
    *(({"name": "weighted_majority", "hypotheses": STEPS} | how, ["numeric"])
      for how in ({"randomised": False}, {"horizon": T})),
]  # fmt: skip
REALISABLE = {"consistent", "halving", "soa", "disjunction"}


def name_of(case):
    parts = [part.get("name", "w") if isinstance(part, dict) else part for part in case[0].values()]
    return "-".join(map(str, parts))


every_case = pytest.mark.parametrize("case", CASES, ids=map(name_of, CASES))


def session_of(case, seed=0):
    learner, kinds = case
    inputs = [{"name": f"x{place}", "kind": kind} for place, kind in enumerate(kinds)]
    spec = {"learner": learner, "inputs": inputs, "target": "y", "seed": seed}
    return OnlineSession.of(SessionSpec.model_validate(spec))


def drawn_rows(kinds, rng, rounds=T):
    columns = {
        "numeric": lambda: rng.uniform(0, 16, rounds).round(2) if len(kinds) == 1 else rng.normal(size=rounds),
        "boolean": lambda: rng.random(rounds) < 0.4,
        "categorical": lambda: rng.choice(list("abcd"), rounds),
    }
    return [list(row) for row in zip(*(columns[kind]().tolist() for kind in kinds), strict=True)]


def labels_of(case, rows, rng, *, noise):
    """Labels that some hypothesis gives, but for the noise."""
    learner, kinds = case
    if learner.get("loss") == "squared":
        return [0.5 * a - b + noise * rng.normal() for a, b in rows]
    truth = {
        "numeric": lambda row: row[0] >= 5 if len(kinds) == 1 else 8 * row[0] - 16 * row[1] + 2 > 0,
        "boolean": lambda row: row[1],
        "categorical": lambda row: row[0] in "ad",
    }[kinds[0]]
    if learner.get("hypotheses", {}).get("name") == "intervals":
        return [bool((3 <= row[0] <= 6) ^ (rng.random() < noise)) for row in rows]
    return [bool(truth(row) ^ (rng.random() < noise)) for row in rows]


def played(session, rows, labels, size=None, state=None):
    names = [one.name for one in session.spec.inputs]
    data = [[*row, label] for row, label in zip(rows, labels, strict=True)]
    state = first_state(session) if state is None else state
    for start in range(0, len(data), size or len(data)):
        part = data[start : start + (size or len(data))]
        state = play(session, state, [], {"columns": [*names, "y"], "data": part}).state
        state = decode(session, encode(state))
    return state


def holds(session, state):
    """The bound, at every point of the curve and at the end, is there and holds."""
    mistakes, _, regret, bound = state.rest.curve.values.T
    bounded = regret if session.learner.bounded(session.spec.learner) == "regret" else mistakes
    assert np.isfinite(bound).all()
    assert (bounded <= bound * (1 + 1e-9) + 1e-9).all()


def test_every_learner_has_a_case():
    assert {learner["name"] for learner, _ in CASES} == learner_entries().keys()
    assert all(entry.gist for entry in learner_entries().values())


@every_case
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_bound_holds_on_drawn_rounds(case, noise):
    rng, session = np.random.default_rng(3), session_of(case)
    rows = drawn_rows(case[1], rng)
    state = played(session, rows, labels_of(case, rows, rng, noise=noise))
    if noise and case[0]["name"] in REALISABLE:
        assert math.isnan(state.rest.tally.bound)  # no hypothesis gives all labels, and no bound holds
    else:
        holds(session, state)


@every_case
def test_the_bound_holds_against_an_adversary(case):
    """Each label is the one that was not predicted; of learners that need one, while some hypothesis gives them all."""
    learner, kinds = case
    rng, session = np.random.default_rng(4), session_of(case)
    state = first_state(session)
    for row in drawn_rows(kinds, rng, 50):
        names = [one.name for one in session.spec.inputs]
        guess = play(session, state, [], {"columns": names, "data": [row]}).predictions[0]
        label = (-1.0 if guess > 0 else 1.0) if learner.get("loss") == "squared" else not guess
        after = played(session, [row], [label], state=state)
        if learner["name"] in REALISABLE and math.isnan(after.rest.tally.bound):
            after = played(session, [row], [not label], state=state)
        state = after
    holds(session, state)


@every_case
def test_splits_and_seeds_change_no_byte(case):
    rng, session = np.random.default_rng(5), session_of(case, seed=7)
    rows = drawn_rows(case[1], rng, 60)
    labels = labels_of(case, rows, rng, noise=0.1)
    whole = encode(played(session, rows, labels))
    for size in (1, 7, 59):
        assert encode(played(session, rows, labels, size)) == whole
    assert encode(played(session_of(case, seed=7), rows, labels)) == whole


@every_case
def test_published_models_predict_what_the_hypothesis_predicts(case):
    rng, session = np.random.default_rng(6), session_of(case)
    rows = drawn_rows(case[1], rng, 200)
    state = played(session, rows, labels_of(case, rows, rng, noise=0.0))
    names = [one.name for one in session.spec.inputs]
    for choice in ("last", "random_round", "longest_survivor", *(["average"] if session.learner.average else [])):
        made = publish(session, state, choice, name="s")
        model = decoded(made.blob)
        check_golden(model, made.golden)
        assert publish(session, state, choice, name="s").blob == made.blob
        if choice != "last" or case[0].get("randomised", case[0]["name"] == "weighted_majority"):
            continue
        for row in rows[:5]:
            guess = play(session, state, [], {"columns": names, "data": [row]}).predictions[0]
            table = read_rows({"columns": names, "data": [row]}, model.inputs, max_rows=1).table
            assert model.predict(table).predictions[0] == pytest.approx(guess)
