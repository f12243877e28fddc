"""Works done at once by forks that have slots, as one would do them alone."""

import os
import signal
import socket
import time
from functools import partial
from typing import NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pytest
from pydantic import TypeAdapter

from app.ml import nested
from app.ml.catalogue import any_algorithm, find
from app.ml.contract.algorithm import Data, Task, in_turn
from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import Stages, unheard
from app.ml.models import state_format
from app.ml.training import search
from app.ml.training.bootstrap_refits import refit
from app.ml.training.candidates import SearchSpec, candidates
from app.ml.training.plan import plan
from app.ml.training.train import train
from app.ml.training.train_spec import TrainSpec
from app.ml.training.training_set import TrainingSet
from workers import parallel_fits as group
from workers.parallel_fits import Group


class Made(NamedTuple):
    place: int
    process: int
    numbers: np.ndarray


def work(place, *, seconds=0.05, spoil=None):
    def do():
        time.sleep(seconds)
        if spoil is not None and os.getpid() != spoil.trainer:
            spoil()
        return Made(place, os.getpid(), np.random.default_rng(place).normal(size=3 * place))

    return do


class Lender:
    """Has slots to lend, and knows which have come back."""

    def __init__(self, slots):
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.slots, self.requested, self.lent = slots, [], []

    def ask(self, expected):
        self.requested.append(expected)
        for _ in range(min(expected, self.slots)):
            ours, theirs = os.pipe()
            socket.send_fds(self.ours, [b"t"], [theirs])
            os.close(theirs)
            self.lent.append(ours)

    def back(self):
        """Whether every slot was taken, and given back."""
        return [os.read(slot, 10) for slot in self.lent] == [b"t"] * len(self.lent)

    def group(self, forks):
        return Group(self.theirs, forks, self.ask)


@pytest.fixture
def lender(monkeypatch):
    monkeypatch.setattr(group, "LONG", 0.0)
    before, made = psutil.Process().children(), []

    def lend(slots):
        made.append(Lender(slots))
        return made[-1]

    yield lend
    for one in made:
        for end in one.lent:
            os.close(end)
        one.ours.close()
        one.theirs.close()
    assert psutil.Process().children() == before, "a fork was left behind"


def together(lender, tasks, forks=2):
    return list(lender.group(forks)(Made, tasks))


def same(result, count):
    assert [one.place for one in result] == list(range(count))
    for one in result:
        np.testing.assert_array_equal(one.numbers, np.random.default_rng(one.place).normal(size=3 * one.place))
    return {one.process for one in result}


def test_forks_with_slots_do_a_part_and_give_the_slots_back(lender):
    lends = lender(2)
    assert len(same(together(lends, [work(place) for place in range(12)]), 12)) == 3
    assert lends.requested == [2, 0]
    assert lends.back()


def test_what_is_within_shared_works_is_done_in_turn(lender):
    lends = lender(2)
    group_ = lends.group(2)

    def nested(place):
        return Made(place, len({one.process for one in group_(Made, [work(inner) for inner in range(4)])}), np.zeros(0))

    first, *rest = group_(Made, [partial(nested, place) for place in range(6)])
    assert [one.place for one in (first, *rest)] == list(range(6))
    assert first.process > 1  # alone at that time
    assert {one.process for one in rest} == {1}
    assert lends.requested == [2, 0, 2, 0]


def test_without_a_slot_the_trainer_does_everything(lender):
    lends = lender(0)
    assert same(together(lends, [work(place, seconds=0.001) for place in range(12)]), 12) == {os.getpid()}
    assert lends.requested == [2, 0]


def test_what_is_over_soon_asks_nobody(lender, monkeypatch):
    monkeypatch.setattr(group, "LONG", 60)
    lends = lender(2)
    assert same(together(lends, [work(place, seconds=0) for place in range(12)]), 12) == {os.getpid()}
    assert lends.requested == []


def test_so_many_that_their_numbers_would_not_fit_are_shared_part_by_part(lender, monkeypatch):
    monkeypatch.setattr(group, "MOST", 5)
    lends = lender(1)
    same(together(lends, [work(place, seconds=0.001) for place in range(12)]), 12)
    assert lends.requested == [2, 0, 2, 0]  # of 12 tasks the first and the last are done alone


def test_a_slot_that_nobody_waits_with_any_more_is_not_used(lender):
    lends = lender(0)
    ours, theirs = os.pipe()
    socket.send_fds(lends.ours, [b"t"], [theirs])
    os.close(theirs)
    os.close(ours)
    assert same(together(lends, [work(place, seconds=0.01) for place in range(6)]), 6) == {os.getpid()}


def test_a_slot_is_given_back_in_time(lender, monkeypatch):
    monkeypatch.setattr(group, "SLICE", 0.01)
    lends = lender(1)
    result = together(lends, [work(place) for place in range(8)], forks=1)
    same(result, 8)
    assert sum(one.process != os.getpid() for one in result) <= 1  # what it has begun
    assert lends.back()


class Spoil:
    def __init__(self, how):
        self.trainer, self.how = os.getpid(), how

    def __call__(self):
        if self.how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "raises":
            raise RuntimeError("This fork fails.")
        if self.how == "exits":
            raise SystemExit(3)


@pytest.mark.parametrize("how", ["killed", "raises", "exits"])
def test_what_dies_with_a_fork_is_done_again(lender, how, capfd):
    lends = lender(2)
    assert same(together(lends, [work(place, spoil=Spoil(how)) for place in range(6)]), 6) == {os.getpid()}
    assert lends.back()


def test_what_fails_everywhere_fails_as_in_turn(lender, capfd):
    def fails():
        raise ValueError("the reason")

    tasks = [work(0), work(1), fails, *(work(place) for place in range(3, 6))]
    result = []
    with pytest.raises(ValueError, match="the reason"):
        result.extend(lender(1).group(1)(Made, tasks))
    assert len(result) <= 2


BAGGING = {"name": "bagging", "n_estimators": 4, "estimator": {"name": "decision_tree"}}
MADE = [  # and for what
    ({"name": "stacking", "estimators": [BAGGING, {"name": "knn"}]}, Task.REGRESSION),
    ({"name": "random_forest", "n_estimators": 60}, Task.REGRESSION),
    ({"name": "random_forest", "n_estimators": 60}, Task.CLASSIFICATION),
    ({"name": "kmeans", "n_init": 12, "shift": True}, Task.CLUSTERING),
]


def packed(state):
    arrays = {}
    return state_format.pack(state, "state", arrays), {name: one.tobytes() for name, one in arrays.items()}


@pytest.mark.parametrize(("spec", "task"), MADE)
def test_members_are_the_same_to_the_bit(lender, spec, task):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    y = x @ [1.0, -2.0, 0.5] + rng.normal(size=120)
    target = {Task.REGRESSION: y, Task.CLASSIFICATION: (y > 0) * 1.0}.get(task)
    data = Data.of(task, x, target)
    params, fit = TypeAdapter(any_algorithm()).validate_python(spec), find(spec["name"]).algorithm.fit
    alone = fit(params, data, nested.context(3)).state
    lends = lender(2)
    shared = fit(params, data, nested.context(3, each=lends.group(2))).state
    assert packed(shared) == packed(alone)
    assert lends.requested == [2, 0]


def test_candidates_are_ranked_the_same(lender):
    """One of them cannot be evaluated, and one is made of members itself."""
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=80), "y": rng.normal(size=80)})
    nobody = {"name": "random_subspace", "groups": [["nobody"]]}
    alternatives = [{"name": "bagging", "n_estimators": 3}, {"name": "ridge"}, nobody, {"name": "lasso"}]
    spec = {"target": "y", "algorithm": {"name": "linear"}, "alternatives": alternatives}
    found = candidates(SearchSpec.model_validate(spec))
    columns = [TableColumn(name, "numeric", 0, 80) for name in table.column_names]

    def ranked(each=in_turn):
        how = {"folds": 3, "metric": "rmse", "rule": "best", "stages": Stages(unheard), "share": 0.9}
        return search.rank(found, plan(found[0].spec, columns, 80), table, each=each, **how)

    alone, lends = ranked(), lender(2)
    assert ranked(lends.group(2)) == alone
    assert [one.error is None for one in alone.tried] == [True, True, True, False, True]
    assert lends.requested == [2, 0]


def measured():
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=30), "y": rng.normal(size=30), "kind": rng.choice(["p", "q"], 30)})
    kinds = {"x": "numeric", "y": "numeric", "kind": "categorical"}
    return table, [TableColumn(name, kind, 0, 30 if kind == "numeric" else 2) for name, kind in kinds.items()]


@pytest.mark.parametrize(
    ("method", "target"), [("kfold", "y"), ("kfold", None), ("loo", "y"), ("loo", "kind"), ("bootstrap", "kind")]
)
def test_fits_that_validate_are_the_same(lender, method, target):
    table, columns = measured()
    algorithm = {"name": "knn" if target else "kmeans", ("n_neighbors" if target else "n_clusters"): 2}
    spec = {"target": target, "algorithm": algorithm, "validation": {"method": method, "resamples": 10}}
    received = []

    def trained(each=in_turn):
        expected = TrainSpec.model_validate(spec)
        received.clear()
        planned = plan(expected, columns, table.num_rows)
        return train(
            planned, table, data_digest="", progress=lambda *messages: received.append(messages[:2]), each=each
        )

    alone, lends = trained(), lender(2)
    messages = list(received)
    assert trained(lends.group(2)) == alone
    assert received == messages
    assert [fraction for fraction, _ in messages] == sorted(fraction for fraction, _ in messages)
    fits = {"kfold": 5, "loo": 24, "bootstrap": 10}[method]
    assert sum("fitt" in message and f" of {fits}" in message for _, message in messages) == fits + 1
    # The folds; of a clustering also the halvings, and the starts of its fits but those of folds or halvings at once.
    together = 1 if target else 6
    assert lends.requested == [2, 0] * together


@pytest.mark.parametrize("noise", [False, True])
def test_refits_are_the_same(lender, noise):
    table, columns = measured()
    spec = TrainSpec.model_validate({"target": "y", "algorithm": {"name": "linear"}})
    planned = plan(spec, columns, 30)

    def refits(each=in_turn):
        training_set = TrainingSet.read(planned, table, each)
        done = []
        found = refit(
            training_set, table.slice(0, 2), resamples=12, jackknife=not noise, noise=noise, seed=1,
            step=lambda *messages: done.append(messages[:2]),
        )  # fmt: skip
        assert done == [(place, 13 if noise else 43) for place in range(2, 14 if noise else 44)]
        return found.numbers, found.whole.tobytes(), found.draws.tobytes(), None if noise else found.left_out.tobytes()

    alone, lends = refits(), lender(2)
    assert refits(lends.group(2)) == alone
    assert lends.requested == [2, 0]
