"""Tasks done at once on free cores, as one process would do them alone."""

import os
import signal
import threading
import time
from functools import partial
from typing import NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pytest
from pydantic import TypeAdapter

from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import any_algorithm, find
from app.ml.contract.algorithm import Data, Task, in_turn
from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import Stages, unheard
from app.ml.contract.threads import THREADS, count_threads, run_at_once
from app.ml.evaluation import predictions
from app.ml.models import state_format
from app.ml.training.fitting.bootstrap_refits import refit
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet
from app.ml.training.search import search
from app.ml.training.search.candidates import SearchSpec, candidates
from app.ml.training.train import train
from app.processes.processor_cores import Cores
from workers import parallel_fits
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
    """Cores of a machine of their own: one of them is held for the trainer."""

    def __init__(self, folder, spare):
        folder.mkdir()
        self.cores = Cores(str(folder), 1 + spare)
        self.own = self.cores.take()
        self.groups = []

    def group(self):
        self.groups.append(Group(self.cores))
        return self.groups[-1]

    def used(self):
        return [group.used for group in self.groups]

    def are_back(self):
        """Whether every core but the trainer's is free."""
        taken = [self.cores.take() for _ in range(self.cores.size)]
        for core in filter(None, taken):
            core.close()
        return [core is not None for core in taken] == [True] * (self.cores.size - 1) + [False]


@pytest.fixture
def lender(monkeypatch, tmp_path):
    monkeypatch.setattr(parallel_fits, "LONG_SECONDS", 0.0)
    before, made = psutil.Process().children(), []

    def lend(spare):
        made.append(Lender(tmp_path / f"cores-{len(made)}", spare))
        return made[-1]

    yield lend
    for one in made:
        one.own.close()
    assert psutil.Process().children() == before, "a fork was left behind"


def together(lender, tasks):
    return list(lender.group()(Made, tasks))


def same(result, count):
    assert [one.place for one in result] == list(range(count))
    for one in result:
        np.testing.assert_array_equal(one.numbers, np.random.default_rng(one.place).normal(size=3 * one.place))
    return {one.process for one in result}


def test_forks_with_cores_do_a_part_and_give_the_cores_back(lender):
    lends = lender(2)
    assert len(same(together(lends, [work(place) for place in range(12)]), 12)) == 3
    assert lends.used() == [3]
    assert lends.are_back()


def test_what_is_within_shared_works_is_done_in_turn(lender):
    lends = lender(2)
    group_ = lends.group()

    def nested(place):
        return Made(place, len({one.process for one in group_(Made, [work(inner) for inner in range(4)])}), np.zeros(0))

    first, *rest = group_(Made, [partial(nested, place) for place in range(6)])
    assert [one.place for one in (first, *rest)] == list(range(6))
    assert first.process > 1  # alone at that time
    assert {one.process for one in rest} == {1}


def test_without_a_free_core_the_trainer_does_everything(lender):
    lends = lender(1)
    with lends.cores.take():
        assert same(together(lends, [work(place, seconds=0.001) for place in range(12)]), 12) == {os.getpid()}
    assert lends.used() == [1]


def test_tasks_that_are_over_soon_are_not_shared(lender, monkeypatch):
    monkeypatch.setattr(parallel_fits, "LONG_SECONDS", 60)
    lends = lender(2)
    assert same(together(lends, [work(place, seconds=0) for place in range(12)]), 12) == {os.getpid()}
    assert lends.used() == [1]


def test_so_many_that_their_numbers_would_not_fit_are_shared_part_by_part(lender, monkeypatch):
    monkeypatch.setattr(parallel_fits, "MAX_TASKS", 5)
    lends = lender(1)
    assert len(same(together(lends, [work(place, seconds=0.03) for place in range(12)]), 12)) == 3  # two forks


def test_a_core_is_given_up_within_a_second_of_a_job_that_waits_for_it(lender):
    lends, over = lender(1), threading.Event()
    waited = []

    def wait():
        time.sleep(0.5)
        begun = time.monotonic()
        with lends.cores.held(over) as is_held:
            waited.append((is_held, time.monotonic() - begun))
            over.wait(60)

    job = threading.Thread(target=wait)
    job.start()
    result = together(lends, [work(place) for place in range(40)])
    over.set()
    job.join()
    processes = [one.process for one in same_processes(result)]
    fork = next(process for process in processes if process != os.getpid())
    assert [is_held for is_held, _ in waited] == [True]
    assert waited[0][1] < 1
    assert fork not in processes[-10:], "the fork goes on with a core that a job needs"


def same_processes(result):
    same(result, len(result))
    return result


def test_calls_run_in_threads_on_free_cores_alone(lender):
    lends = lender(1)
    group, over = lends.group(), threading.Event()
    token = THREADS.set(group)
    try:
        barrier = threading.Barrier(2, timeout=30)
        assert count_threads() == 2
        assert run_at_once([partial(lambda number: (barrier.wait(), number)[1], number) for number in range(4)]) == [
            0, 1, 2, 3,
        ]  # fmt: skip
        with pytest.raises(ZeroDivisionError):
            run_at_once([lambda: 1, lambda: 1 // 0])
        begun = threading.Event()
        job = threading.Thread(target=hold, args=(lends.cores, begun, over))
        job.start()
        deadline = time.monotonic() + 1
        while not begun.is_set() and time.monotonic() < deadline:
            count_threads()
        assert begun.wait(0), "a job waits for the core"
        assert count_threads() == 1
        assert run_at_once([threading.get_ident] * 3) == [threading.get_ident()] * 3
        over.set()
        job.join()
        same(list(group(Made, [work(place) for place in range(6)])), 6)  # no thread is left when it forks
    finally:
        over.set()
        THREADS.reset(token)
        group.close()
    assert lends.are_back()
    assert group.used == 2


def hold(cores, begun, over):
    with cores.held(over):
        begun.set()
        over.wait(60)


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
    assert lends.are_back()


def test_what_fails_everywhere_fails_as_in_turn(lender, capfd):
    def fails():
        raise ValueError("the reason")

    tasks = [work(0), work(1), fails, *(work(place) for place in range(3, 6))]
    result = []
    with pytest.raises(ValueError, match="the reason"):
        result.extend(lender(1).group()(Made, tasks))
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
    shared = fit(params, data, nested.context(3, each=lends.group())).state
    assert packed(shared) == packed(alone)


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
    assert ranked(lends.group()) == alone
    assert [one.error is None for one in alone.tried] == [True, True, True, False, True]


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
    assert trained(lends.group()) == alone
    assert received == messages
    assert [fraction for fraction, _ in messages] == sorted(fraction for fraction, _ in messages)
    fits = {"kfold": 5, "loo": 24, "bootstrap": 10}[method]
    assert sum("fitt" in message and f" of {fits}" in message for _, message in messages) == fits + 1


@pytest.mark.parametrize("name", ["knn", "random_forest", "ridge"])
def test_rows_predicted_in_threads_give_the_same_model_and_report(lender, monkeypatch, name):
    monkeypatch.setattr(predictions, "BLOCK_ROWS", 4)
    table, columns = measured()
    planned = plan(TrainSpec.model_validate({"target": "y", "algorithm": {"name": name}}), columns, 30)
    alone = train(planned, table, data_digest="")
    lends = lender(1)
    group = lends.group()
    token = THREADS.set(group)
    try:
        shared = train(planned, table, data_digest="")
    finally:
        THREADS.reset(token)
        group.close()
    assert shared == alone
    assert lends.used() == [2]
    assert lends.are_back()


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
    assert refits(lends.group()) == alone
