"""Accepting work: once, whole, and only what can be done."""

import json
import subprocess
import sys
import threading

import pyarrow as pa
import pytest
from sqlalchemy import text

from app.base.errors import (
    AliasNotFound,
    DatasetInUse,
    DatasetNotFound,
    IdempotencyConflict,
    InvalidRequest,
    ModelNotFound,
    QueueFull,
    VersionNotFound,
)
from app.ml.catalogue.algorithm_files import seconds_to_compile
from app.ml.jobs import train
from app.ml.jobs.evaluate import EvaluateRequest
from app.ml.jobs.train import TrainRequest
from app.ml.training.rows.related_rows import check_relations
from app.schemas.jobs import JobState
from app.services.jobs.attempts import Attempts
from app.services.jobs.jobs import Jobs
from app.services.jobs.recovery import Recovery
from app.services.jobs.submission import Submission
from app.services.predictions.pointer_cache import Pointers
from app.store.base.new_ids import uuid7
from app.store.engine import make_engine
from app.store.jobs.job_records import Capable, Pinned
from app.store.unit_of_work import WorkFactory


class Desk:
    """The service on a database of its own."""

    def __init__(self, settings, add_iris):
        self.settings = settings
        self.work = WorkFactory(make_engine(settings.model_copy(update={"database_pool": 50}), role="test"))
        self.dataset = add_iris(self.work)
        self.announced = []
        self.submission = self.made()
        self.jobs = Jobs(self.work, Pointers(self.work, 0.0))
        self.attempts = Attempts(self.work, self.announced.append, settings)
        self.recovery = Recovery(self.work, self.announced.append, settings, self.attempts.counts)

    def made(self, **changes):
        return Submission(self.work, self.announced.append, self.settings.model_copy(update=changes))

    def request(self, **changes):
        requested = {"model": "m", "dataset": self.dataset, "target": "species", "algorithm": {"name": "logistic"}}
        return TrainRequest.model_validate(requested | changes)

    def count(self):
        with self.work() as w:
            return w.session.scalar(text("select count(*) from jobs"))

    def at_once(self, number, call):
        """What `number` threads got or raised."""
        start, got = threading.Barrier(number), []

        def go(place):
            start.wait()
            try:
                got.append(call(place))
            except Exception as error:  # noqa: BLE001 - looked at by the test
                got.append(error)

        threads = [threading.Thread(target=go, args=(place,)) for place in range(number)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return got


@pytest.fixture(scope="module")
def shared(database_factory, add_iris):
    made = Desk(database_factory(), add_iris)
    yield made
    made.work.engine.dispose()


@pytest.fixture
def desk(shared):
    with shared.work() as w:
        w.session.execute(text("delete from jobs"))
    shared.announced.clear()
    return shared


def test_what_is_accepted_is_committed_and_then_announced(desk):
    seen = []
    submission = Submission(desk.work, lambda job_id: seen.append(desk.jobs.get(job_id)), desk.settings)
    job, replayed = submission.submit(desk.request(), request_id="abc")
    assert not replayed
    assert seen == [job]
    assert (job.state, job.kind, job.dataset, job.model, job.algorithm) == (
        JobState.QUEUED, "train", desk.dataset, "m", "logistic",
    )  # fmt: skip
    assert (job.queue_position, job.attempt, job.progress) == (0, 0, 0)


def test_what_a_worker_gets_is_what_was_requested(desk):
    request = desk.request(seed=7, features=["petal_width"], time_limit_seconds=60)
    job, _ = desk.submission.submit(request, request_id="abc")
    claim = desk.attempts.claim(job.id)
    assert TrainRequest.model_validate(claim.request) == request
    assert (claim.request_id, claim.time_limit_seconds, claim.dataset_id) == ("abc", 60, desk.dataset)


def test_every_fault_at_once_and_no_job(desk):
    wrong = desk.request(target="nobody", features=["petal_width", "nothing"], time_limit_seconds=1e9)
    for ask in (desk.submission.submit, desk.submission.validate):
        with pytest.raises(InvalidRequest) as raised:
            ask(wrong)
        assert {fault.pointer for fault in raised.value.faults} == {"/target", "/features/1", "/time_limit_seconds"}
    assert desk.count() == 0
    assert desk.announced == []


def test_a_dataset_that_is_not_there(desk):
    for ask in (desk.submission.submit, desk.submission.validate):
        with pytest.raises(DatasetNotFound):
            ask(desk.request(dataset=uuid7()))
    assert desk.count() == 0


def test_a_dry_run_says_what_it_would_take_and_takes_nothing(desk):
    estimate = desk.submission.validate(desk.request())
    assert (estimate.task, estimate.rows) == ("classification", 150)
    assert estimate.features == ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    assert estimate.memory_bytes > 0
    assert estimate.seconds > 0
    assert desk.count() == 0


def test_a_dry_run_counts_what_a_worker_has_not_compiled(desk):
    """Ridge regression needs none of it, and a forest no more than remains."""
    ridge = {"target": "sepal_length", "algorithm": {"name": "ridge"}}
    forest = {"name": "random_forest"}

    def cold(kernels_left_seconds, **changes):
        with desk.work() as w:
            w.workers.seen("w", kernels_left_seconds=kernels_left_seconds, compiling="compiling")
        estimate = desk.submission.validate(desk.request(**changes))
        return estimate.cold_seconds, [warning for warning in estimate.warnings if warning.startswith("First use")]

    assert cold(1000.0, **ridge) == (0, [])
    seconds, (warning,) = cold(1000.0, algorithm=forest)
    assert seconds == pytest.approx(seconds_to_compile(["random_forest"]), abs=0.1)
    assert warning.startswith(f"First use: +{seconds:.0f} s")
    assert cold(5.0, algorithm=forest)[0] == 5
    assert cold(None, algorithm=forest) == (0, [])


# the same key


def test_fifty_identical_requests_at_once_are_one_job(desk):
    got = desk.at_once(50, lambda _: desk.submission.submit(desk.request(), idempotency_key="k"))
    assert sorted(replayed for _, replayed in got) == [False] + 49 * [True]
    assert len({job.model_dump_json() for job, _ in got}) == 1
    assert desk.count() == 1
    assert len(desk.announced) == 1


def test_a_replay_gives_the_first_response_however_far_the_job_is(desk):
    first, _ = desk.submission.submit(desk.request(), idempotency_key="k")
    desk.attempts.claim(first.id)
    assert desk.submission.submit(desk.request(), idempotency_key="k") == (first, True)


def test_a_replay_is_given_even_when_it_could_not_be_accepted_now(desk):
    first, _ = desk.submission.submit(desk.request(), idempotency_key="k")
    assert desk.made(max_queued_jobs=1).submit(desk.request(), idempotency_key="k") == (first, True)


@pytest.mark.parametrize("change", [{"seed": 1}, {"model": "other"}, {"algorithm": {"name": "logistic", "l2": 2}}])
def test_the_same_key_with_another_body_is_refused(desk, change):
    desk.submission.submit(desk.request(), idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        desk.submission.submit(desk.request(**change), idempotency_key="k")
    assert desk.count() == 1


def test_of_different_bodies_at_once_under_one_key_one_wins(desk):
    got = desk.at_once(10, lambda place: desk.submission.submit(desk.request(seed=place), idempotency_key="k"))
    assert sum(isinstance(response, IdempotencyConflict) for response in got) == 9
    assert desk.count() == 1


def test_without_a_key_every_request_is_a_job(desk):
    ids = {desk.submission.submit(desk.request())[0].id for _ in range(2)}
    assert len(ids) == 2


# too many


def test_the_cap_cannot_be_raced(desk):
    submission = desk.made(max_queued_jobs=3)
    got = desk.at_once(20, lambda _: submission.submit(desk.request()))
    refused = [response for response in got if isinstance(response, QueueFull)]
    assert len(refused) == 17
    assert all(int(error.headers["Retry-After"]) > 0 for error in refused)
    assert desk.count() == len(desk.announced) == 3


def test_only_what_waits_counts(desk):
    submission = desk.made(max_queued_jobs=1)
    job, _ = submission.submit(desk.request())
    desk.attempts.claim(job.id)
    submission.submit(desk.request())
    with pytest.raises(QueueFull):
        submission.submit(desk.request())


# deleting what is needed


def test_a_dataset_stays_while_a_job_needs_it(desk, add_iris):
    dataset = add_iris(desk.work)
    job, _ = desk.submission.submit(desk.request(dataset=dataset))
    with pytest.raises(DatasetInUse), desk.work() as w:
        w.datasets.delete(dataset)
    desk.jobs.cancel(job.id)
    with desk.work() as w:
        w.datasets.delete(dataset)


def test_deleting_and_submitting_at_once_leaves_no_job_without_its_data(desk, add_iris):
    datasets = [add_iris(desk.work) for _ in range(10)]

    def act(place):
        dataset = datasets[place // 2]
        if place % 2:
            desk.submission.submit(desk.request(dataset=dataset))
        else:
            with desk.work() as w:
                w.datasets.delete(dataset)

    got = desk.at_once(20, act)
    assert {type(response) for response in got} <= {type(None), DatasetInUse, DatasetNotFound}
    orphans = "select count(*) from jobs where dataset_id not in (select id from datasets)"
    with desk.work() as w:
        assert w.session.scalar(text(orphans)) == 0


# dying on the way

DYING = """
import os, sys
from app.composition.wiring import build
from app.ml.jobs.train import TrainRequest
from app.services.jobs.submission import Submission
from app.base.settings import Settings
from app.store.unit_of_work import Work

where, request = sys.argv[1:]
services = build(Settings(), role="api")
die = lambda *_: os._exit(137)
add = Work.__exit__
if where == "before_commit":
    Work.__exit__ = die
elif where == "after_commit":
    Work.__exit__ = lambda self, *rest: (add(self, *rest), die())
Submission(services.work, die, services.settings).submit(TrainRequest.model_validate_json(request), idempotency_key="k")
"""


@pytest.mark.parametrize(("where", "jobs"), [("before_commit", 0), ("after_commit", 1), ("before_publish", 1)])
def test_a_process_that_dies_while_submitting_leaves_a_whole_job_or_none(desk, where, jobs):
    from app.commands.processes import variables

    request = desk.request().model_dump_json(exclude_none=True)
    command = [sys.executable, "-c", DYING, where, request]
    dead = subprocess.run(
        command, env=variables(desk.settings), capture_output=True, text=True, timeout=120, check=False
    )
    assert dead.returncode == 137, dead.stderr
    assert desk.count() == jobs
    job, replayed = desk.submission.submit(desk.request(), idempotency_key="k")  # the client, who received nothing
    assert replayed == bool(jobs)
    assert desk.count() == 1
    with desk.work() as w:
        w.session.execute(text("update jobs set published_at = published_at - interval '1 hour'"))
    desk.announced.clear()
    desk.recovery.sweep(held=0)
    assert desk.announced == [job.id]


# other kinds


def evaluation(desk, **changes):
    return EvaluateRequest.model_validate({"model": "m", "dataset": desk.dataset, "target": "species"} | changes)


@pytest.fixture
def published(desk, publish):
    """A model whose columns iris lacks, and the version."""
    return publish(desk.work, "m").version


def test_an_evaluation_says_every_fault_at_once(desk, published):
    requested = evaluation(desk, version=published, alias="a", rows="held_out", time_limit_seconds=1e9)
    for ask in (desk.submission.submit, desk.submission.validate):
        with pytest.raises(InvalidRequest) as raised:
            ask(requested)
        pointers = {fault.pointer for fault in raised.value.faults}
        assert pointers == {"/alias", "/rows", "/dataset", "/time_limit_seconds"}
        assert sum(fault.pointer == "/dataset" for fault in raised.value.faults) == 3  # length, width, size
    assert desk.count() == 0


@pytest.mark.parametrize(
    ("what", "error"),
    [({"model": "nobody"}, ModelNotFound), ({"version": 10**6}, VersionNotFound), ({"alias": "x"}, AliasNotFound)],
)
def test_a_version_that_is_not_there(desk, published, what, error):
    for ask in (desk.submission.submit, desk.submission.validate):
        with pytest.raises(error):
            ask(evaluation(desk, **what))
    assert desk.count() == 0


def test_a_release_that_cannot_evaluate_leaves_it_queued(desk, published, monkeypatch):
    """Neither the release before, which claims what has an algorithm it knows, nor one without the model's."""
    monkeypatch.setattr("app.ml.jobs.evaluate.column_faults", lambda *_: ())
    job, _ = desk.submission.submit(evaluation(desk))
    assert (job.kind, job.model, job.algorithm) == ("evaluate", "m", None)
    for able in (Capable(("train",), ("logistic",)), Capable(("evaluate", "train"), ("ridge",))):
        with desk.work() as w:
            assert w.leases.next(able) is None
            assert w.leases.claim(job.id, uuid7(), 30, able) is None
    claim = desk.attempts.claim(job.id)
    assert claim.pinned == Pinned((desk.dataset,), (("m", published),), ("logistic",))


def test_every_dataset_that_a_job_needs_stays(desk, add_iris):
    first, second = add_iris(desk.work), add_iris(desk.work)
    needs = Pinned(datasets=(first, second)).written()
    job, _ = desk.submission.submit(desk.request(dataset=first))
    with desk.work() as w:
        w.session.execute(text("update jobs set inputs = cast(:needs as jsonb)"), {"needs": json.dumps(needs)})
    for dataset in (first, second):
        with pytest.raises(DatasetInUse), desk.work() as w:
            w.datasets.delete(dataset)
    desk.jobs.cancel(job.id)
    for dataset in (first, second):
        with desk.work() as w:
            w.datasets.delete(dataset)


def test_a_body_that_says_a_default_is_the_same_body(desk):
    first, _ = desk.submission.submit(desk.request(), idempotency_key="k")
    assert desk.submission.submit(desk.request(seed=0, time_limit_seconds=3600), idempotency_key="k") == (first, True)


def test_a_job_that_is_estimated_to_take_longer_than_its_limit_is_warned_of(desk):
    late = desk.request(time_limit_seconds=0.01)
    seconds = desk.submission.validate(late).seconds
    job, _ = desk.submission.submit(late)
    for warnings in (desk.submission.validate(late).warnings, job.warnings):
        sentence = f"The job is estimated to take {seconds:.3g} seconds, and time_limit_seconds is 0.01."
        assert warnings.count(sentence) == 1
    assert not any("time_limit_seconds" in one for one in desk.submission.validate(desk.request()).warnings)


@pytest.fixture
def edges_of(desk, add_table):
    """`edges_of(rows)`: a request that learns from these edges alone."""

    def made(*rows):
        first, second, far = zip(*rows, strict=True)
        dataset = add_table(desk.work, pa.table({"a": first, "b": second, "far": pa.array(far, pa.float64())}))
        relations = {"form": "edges", "dataset": dataset, "first": "a", "second": "b", "value": "far"}
        relations["meaning"] = "dissimilarity"
        return desk.request(dataset=None, target=None, relations=relations, algorithm={"name": "smacof"})

    return made


@pytest.fixture
def transactions(desk, monkeypatch):
    """How many transactions are open on the database whenever relations are checked; what is to happen then."""
    open_ones, then = [], []

    def watched(*given):
        with desk.work() as w:
            others = "select count(*) from pg_stat_activity where xact_start is not null and pid <> pg_backend_pid()"
            open_ones.append(w.session.scalar(text(f"{others} and datname = current_database()")))
        for action in then:
            action()
        check_relations(*given)

    monkeypatch.setattr(train, "check_relations", watched)
    return open_ones, then


def test_relations_are_checked_while_no_transaction_is_open(desk, edges_of, transactions):
    job, _ = desk.submission.submit(edges_of(("x", "y", 1), ("y", "z", 2)))
    desk.submission.validate(edges_of(("x", "y", 1), ("y", "z", 2)))
    assert transactions[0] == [0, 0]
    assert (desk.count(), desk.announced) == (1, [job.id])


def test_contradictory_relations_are_refused_with_all_else_that_is_wrong(desk, edges_of):
    request = edges_of(("x", "y", 1), ("y", "x", 2)).model_copy(update={"name": "train"})
    for call in (desk.submission.submit, desk.submission.validate):
        with pytest.raises(InvalidRequest) as refused:
            call(request)
        assert {one.pointer for one in refused.value.faults} == {"/name", "/relations/rows/1/far"}
    assert desk.count() == 0


def test_a_dataset_that_goes_while_its_rows_are_checked_is_not_found(desk, edges_of, transactions):
    request = edges_of(("x", "y", 1), ("y", "z", 2))

    def delete():
        with desk.work() as w:
            w.datasets.delete(request.relations.dataset)

    transactions[1].append(delete)
    with pytest.raises(DatasetNotFound):
        desk.submission.submit(request)
    assert desk.count() == 0
