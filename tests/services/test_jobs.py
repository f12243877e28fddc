"""The life of a job against a real database. Time passes by moving the lease, not by waiting."""

import threading
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from app.errors import Cancelled, GoldenMismatch, InvalidRequest, JobNotFound, LeaseLost, TrainerCrashed, WorkerLost
from app.schemas.jobs import JobState
from app.schemas.problems import Problem
from app.services.jobs import Jobs
from app.store.claims import NewJob
from app.store.engine import make_engine
from app.store.identifiers import uuid7
from app.store.jobs import SOURCES, JobRepository
from app.store.tables import JobRow
from app.store.work import WorkFactory

CRASH = Problem.of(TrainerCrashed())
TERMINAL = {state for state in JobState if state.terminal}


class World:
    """A database of its own, the service on it, and what it announced."""

    def __init__(self, settings, add_iris, trained):
        self.settings = settings
        self.work = WorkFactory(make_engine(settings, role="test"))
        self.announced = []
        self.jobs = Jobs(self.work, self.announced.append, settings)
        self.dataset = add_iris(self.work)
        self.trained = trained

    def submit(self, **changes):
        new = NewJob(
            id=uuid7(), kind="train", request={}, request_hash="", request_id="r", idempotency_key=None,
            dataset_id=self.dataset, model="m", algorithm="logistic", warnings=[], max_attempts=3,
            time_limit_seconds=60,
        )._replace(**changes)  # fmt: skip
        with self.work() as w:
            return w.jobs.add(new).id

    def run(self, sql, **values):
        with self.work() as w:
            return w.session.execute(text(sql), values)

    def expire(self, job_id):
        self.run("update jobs set lease_until = clock_timestamp() - interval '1 s' where id = :id", id=job_id)

    def hasten(self):
        """Let the pauses between attempts and announcements be over."""
        self.run("update jobs set not_before = least(not_before, clock_timestamp())")
        self.run("update jobs set published_at = published_at - interval '1 hour'")

    def state(self, job_id):
        return self.jobs.get(job_id).state

    def models(self, job_id):
        return self.run("select count(*) from model_versions where job_id = :id", id=job_id).scalar()

    def settle(self):
        """End what earlier tests left."""
        self.run("delete from jobs")
        self.announced.clear()


@pytest.fixture(scope="module")
def shared(database_factory, add_iris, trained):
    made = World(database_factory(beat_seconds=0.01), add_iris, trained())
    yield made
    made.work.engine.dispose()


@pytest.fixture
def world(shared):
    shared.settle()
    return shared


def states(job):
    return [line.state for line in job.transitions]


# claiming


def test_a_claim_begins_an_attempt_and_is_recorded(world):
    job_id = world.submit()
    claim = world.jobs.claim(job_id)
    job = world.jobs.get(job_id)
    assert (claim.job_id, claim.attempt, claim.model) == (job_id, 1, "m")
    assert (job.state, job.attempt, job.queue_position) == (JobState.RUNNING, 1, None)
    assert job.started_at is not None
    assert states(job) == ["queued", "running"]


def test_of_many_claims_at_once_one_wins(world):
    job_id = world.submit()
    claims, start = [], threading.Barrier(8)

    def go():
        start.wait()
        claims.append(world.jobs.claim(job_id))

    threads = [threading.Thread(target=go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(claim is not None for claim in claims) == 1
    assert world.jobs.get(job_id).attempt == 1


def test_a_claim_whose_commit_was_not_heard_of_is_found_again(world):
    job_id, token = world.submit(), uuid4()
    with world.work() as w:
        first = w.jobs.claim(job_id, token, 30, ["logistic"])
    with world.work() as w:
        assert w.jobs.claim(job_id, token, 30, ["logistic"]) == first


def test_nobody_claims_before_its_time(world):
    job_id = world.submit()
    world.run("update jobs set not_before = clock_timestamp() + interval '1 hour' where id = :id", id=job_id)
    assert world.jobs.claim(job_id) is None
    assert world.jobs.claim_oldest() is None


def test_jobs_of_algorithms_this_release_does_not_have_stay_queued(world):
    job_id = world.submit(algorithm="of_tomorrow")
    assert world.jobs.claim(job_id) is None
    assert world.jobs.claim_oldest() is None
    assert world.state(job_id) is JobState.QUEUED


def test_without_a_broker_the_oldest_goes_first(world):
    first, second = world.submit(), world.submit()
    assert [world.jobs.claim_oldest().job_id for _ in range(2)] == [first, second]
    assert world.jobs.claim_oldest() is None


# the fence


def lost_lease(world):
    """A claim whose lease ran out and whose job somebody else runs now."""
    job_id = world.submit()
    old = world.jobs.claim(job_id)
    world.expire(job_id)
    world.jobs.sweep(held=0)
    world.hasten()
    return old, world.jobs.claim(job_id)


WRITES = {
    "beat": lambda jobs, claim, _: jobs.beat(claim, progress=0.5),
    "succeed": lambda jobs, claim, trained: jobs.succeed(claim, trained),
    "fail": lambda jobs, claim, _: jobs.fail(claim, CRASH),
    "retry": lambda jobs, claim, _: jobs.fail(claim, CRASH, retry=True),
    "time_out": lambda jobs, claim, _: jobs.time_out(claim),
    "stop": lambda jobs, claim, _: jobs.stop(claim),
    "release": lambda jobs, claim, _: jobs.release(claim),
}


@pytest.mark.parametrize("write", WRITES)
def test_no_write_passes_the_fence_without_the_lease(world, write):
    old, new = lost_lease(world)
    before = world.jobs.get(new.job_id)
    with pytest.raises(LeaseLost):
        WRITES[write](world.jobs, old, world.trained)
    assert world.jobs.get(new.job_id) == before
    assert world.models(new.job_id) == 0


@pytest.mark.parametrize("write", set(WRITES) - {"stop", "beat"})
def test_of_two_ends_the_second_is_refused(world, write):
    claim = world.jobs.claim(world.submit())
    world.jobs.succeed(claim, world.trained)
    with pytest.raises(LeaseLost):
        WRITES[write](world.jobs, claim, world.trained)
    assert world.state(claim.job_id) is JobState.SUCCEEDED
    assert world.models(claim.job_id) == 1


def test_the_owner_of_a_lease_that_ran_out_unseen_may_renew_it(world):
    claim = world.jobs.claim(world.submit())
    world.expire(claim.job_id)
    assert world.jobs.beat(claim, progress=0.2) is JobState.RUNNING
    assert world.jobs.sweep(held=0).recovered == 0


def test_rows_the_graph_does_not_know_are_refused_by_the_database(world):
    job_id = world.submit()
    for wrong in ("state = 'running'", "state = 'succeeded'", "state = 'dreaming'", "version = 1"):
        with pytest.raises(IntegrityError):
            world.run(f"update jobs set {wrong} where id = :id", id=job_id)


# ends


def test_success_is_a_version_and_a_state_at_once(world):
    claim = world.jobs.claim(world.submit(warnings=["as planned"]))
    world.jobs.succeed(claim, world.trained, curves={"loss": [2.0, 1.0]})
    job = world.jobs.get(claim.job_id)
    assert (job.state, job.progress) == (JobState.SUCCEEDED, 1.0)
    assert job.curves[0].values == [2.0, 1.0]
    with world.work() as w:
        assert w.models.version(job.model, job.version).job == job.id


def test_a_version_that_cannot_be_stored_leaves_no_success(world):
    claim = world.jobs.claim(world.submit())
    broken = world.trained._replace(golden=world.trained.golden | {"note": "\0"})  # jsonb refuses it
    with pytest.raises(Exception, match="u0000"):
        world.jobs.succeed(claim, broken)
    assert world.state(claim.job_id) is JobState.RUNNING
    assert world.models(claim.job_id) == 0


def test_a_model_that_forgets_its_golden_rows_does_not_go_live(world):
    claim = world.jobs.claim(world.submit())
    golden = world.trained.golden
    lied = world.trained._replace(golden=golden | {"predictions": golden["predictions"][::-1]})
    with pytest.raises(GoldenMismatch):
        world.jobs.succeed(claim, lied)
    assert world.models(claim.job_id) == 0


def test_a_crash_is_tried_again_after_a_pause_until_attempts_are_spent(world):
    job_id, pauses = world.submit(), []
    for attempt in (1, 2, 3):
        claim = world.jobs.claim(job_id)
        assert claim.attempt == attempt
        world.jobs.fail(claim, CRASH, retry=True)
        pause = "select extract(epoch from not_before - clock_timestamp()) from jobs where id = :id"
        pauses.append(float(world.run(pause, id=job_id).scalar()))
        if attempt < 3:
            assert world.jobs.claim(job_id) is None
        world.hasten()
    job = world.jobs.get(job_id)
    assert (job.state, job.error.code) == (JobState.FAILED, "trainer_crashed")
    assert states(job) == ["queued", "running", "queued", "running", "queued", "running", "failed"]
    assert pauses[0] == pytest.approx(1, abs=0.5)
    assert pauses[1] == pytest.approx(2, abs=0.5)


def test_a_failure_that_will_come_again_is_final(world):
    claim = world.jobs.claim(world.submit())
    world.jobs.fail(claim, Problem.of(WorkerLost()))
    assert world.state(claim.job_id) is JobState.FAILED


def test_a_release_does_not_count_and_is_announced(world):
    claim = world.jobs.claim(world.submit())
    world.jobs.release(claim)
    assert world.announced == [claim.job_id]
    job = world.jobs.get(claim.job_id)
    assert (job.state, job.attempt) == (JobState.QUEUED, 0)
    assert world.jobs.claim(claim.job_id).attempt == 1


# cancelling


def test_cancelling_what_is_queued(world):
    job_id = world.submit()
    assert world.jobs.cancel(job_id).state is JobState.CANCELLED
    assert world.jobs.claim(job_id) is None
    assert world.jobs.cancel(job_id).state is JobState.CANCELLED


def test_cancelling_what_runs_is_told_by_the_next_beat(world):
    claim = world.jobs.claim(world.submit())
    assert world.jobs.cancel(claim.job_id).state is JobState.CANCELLING
    assert world.jobs.cancel(claim.job_id).state is JobState.CANCELLING
    assert world.jobs.beat(claim, progress=0.1) is JobState.CANCELLING
    world.jobs.stop(claim)
    assert states(world.jobs.get(claim.job_id)) == ["queued", "running", "cancelling", "cancelled"]


@pytest.mark.parametrize("write", set(WRITES) - {"stop", "beat"})
def test_a_cancel_that_came_first_has_the_last_word(world, write):
    claim = world.jobs.claim(world.submit())
    world.jobs.cancel(claim.job_id)
    with pytest.raises(Cancelled):
        WRITES[write](world.jobs, claim, world.trained)
    assert world.state(claim.job_id) is JobState.CANCELLED
    assert world.models(claim.job_id) == 0


def test_cancelling_what_has_ended_changes_nothing(world):
    claim = world.jobs.claim(world.submit())
    world.jobs.succeed(claim, world.trained)
    before = world.jobs.get(claim.job_id)
    assert world.jobs.cancel(claim.job_id) == before


def test_cancelling_what_is_not_there(world):
    with pytest.raises(JobNotFound):
        world.jobs.cancel(uuid7())


# sweeping


def test_a_lease_that_ran_out_is_another_attempt_and_then_the_end(world):
    job_id = world.submit()
    for _ in range(3):
        world.jobs.claim(job_id)
        world.expire(job_id)
        assert world.jobs.sweep(held=0).recovered == 1
        world.hasten()
    job = world.jobs.get(job_id)
    assert (job.state, job.error.code, job.attempt) == (JobState.FAILED, "worker_lost", 3)
    assert {line.reason for line in job.transitions if line.state != "running"} == {None, "worker_lost"}


def test_a_lost_worker_cannot_keep_a_job_in_cancelling(world):
    claim = world.jobs.claim(world.submit())
    world.jobs.cancel(claim.job_id)
    world.expire(claim.job_id)
    world.jobs.sweep(held=0)
    assert world.state(claim.job_id) is JobState.CANCELLED


def test_a_live_lease_is_left_alone(world):
    claim = world.jobs.claim(world.submit())
    assert world.jobs.sweep(held=0).recovered == 0
    assert world.state(claim.job_id) is JobState.RUNNING


def test_a_sweep_acts_on_what_is_not_on_what_it_saw(world):
    claim = world.jobs.claim(world.submit())
    world.expire(claim.job_id)
    with world.work() as w:
        (seen,) = w.jobs.lapsed(0)
    world.jobs.beat(claim, progress=0.5)
    with world.work() as w:
        assert not w.jobs.recover(seen, grace_seconds=0, seconds=0, error=CRASH)
    assert world.state(claim.job_id) is JobState.RUNNING


def test_after_a_restart_of_the_database_the_living_may_renew_first(world):
    claim = world.jobs.claim(world.submit())
    world.expire(claim.job_id)
    uptime = float(world.run("select extract(epoch from clock_timestamp() - pg_postmaster_start_time())").scalar())
    settings = world.settings.model_copy(update={"beat_seconds": uptime})
    assert Jobs(world.work, world.announced.append, settings).sweep(held=0).recovered == 0
    assert world.jobs.beat(claim, progress=0.5) is JobState.RUNNING


def test_forgotten_ids_are_announced_once_in_a_while(world):
    job_id = world.submit()
    world.jobs.sweep(held=0)
    assert world.announced == []  # the submission itself has just announced it
    world.hasten()
    world.jobs.sweep(held=0)
    world.jobs.sweep(held=0)
    assert world.announced == [job_id]


def test_a_job_that_came_back_is_announced_when_its_pause_is_over(world):
    claim = world.jobs.claim(world.submit())
    world.jobs.fail(claim, CRASH, retry=True)
    world.jobs.sweep(held=0)
    assert world.announced == []
    world.run("update jobs set not_before = clock_timestamp()")
    world.jobs.sweep(held=0)
    assert world.announced == [claim.job_id]


def test_a_long_queue_is_not_a_forgotten_one(world):
    ids = [world.submit() for _ in range(5)]
    world.hasten()
    assert world.jobs.sweep(held=5).announced == 0
    assert world.jobs.sweep(held=3).announced == 2
    assert world.announced == ids[:2]


def test_with_the_broker_silent_nothing_is_marked_as_announced(world):
    job_id = world.submit()
    world.hasten()
    world.jobs.sweep(held=None)
    world.jobs.sweep(held=0)
    assert world.announced == [job_id]


def test_a_database_that_blinks_leaves_the_row_to_the_next_sweep(world, monkeypatch):
    claims = [world.jobs.claim(world.submit()) for _ in range(2)]
    for claim in claims:
        world.expire(claim.job_id)
    recover, broken = JobRepository.recover, []

    def blink(self, lapsed, **how):
        if not broken:
            broken.append(lapsed)
            self.session.execute(text("select pg_terminate_backend(pg_backend_pid())"))
        return recover(self, lapsed, **how)

    monkeypatch.setattr(JobRepository, "recover", blink)
    assert world.jobs.sweep(held=0).recovered == 1
    assert world.jobs.sweep(held=0).recovered == 1
    assert {world.state(claim.job_id) for claim in claims} == {JobState.QUEUED}


# reading


def test_pages_go_from_the_newest_to_the_oldest(world):
    ids = [world.submit() for _ in range(5)]
    first = world.jobs.page(2)
    second = world.jobs.page(2, first.next_cursor)
    third = world.jobs.page(2, second.next_cursor)
    assert [job.id for page in (first, second, third) for job in page.items] == ids[::-1]
    assert third.next_cursor is None


def test_a_page_of_one_state(world):
    claim = world.jobs.claim(world.submit())
    world.submit()
    assert [job.id for job in world.jobs.page(10, state=JobState.RUNNING).items] == [claim.job_id]


def test_a_foreign_cursor_is_a_fault(world):
    with pytest.raises(InvalidRequest) as raised:
        world.jobs.page(2, "next please")
    assert raised.value.faults[0].pointer == "/query/cursor"


def test_the_place_in_the_queue(world):
    ids = [world.submit() for _ in range(3)]
    assert [world.jobs.get(job_id).queue_position for job_id in ids] == [0, 1, 2]
    world.jobs.claim(ids[0])
    assert [world.jobs.get(job_id).queue_position for job_id in ids] == [None, 0, 1]


# everything at once


class Life(RuleBasedStateMachine):
    """Any order of events, zombies included: a model per success, no move off the graph, no attempt too many."""

    world: World
    jobs, claims = Bundle("jobs"), Bundle("claims")

    def __init__(self):
        super().__init__()
        self.world.settle()
        self.owners = {}

    @rule(target=jobs, attempts=st.integers(1, 3))
    def submit(self, attempts):
        return self.world.submit(max_attempts=attempts)

    @rule(target=claims, job=jobs)
    def claim(self, job):
        queued = self.world.state(job) is JobState.QUEUED
        claim = self.world.jobs.claim(job)
        assert (claim is not None) == queued
        if claim is None:
            return multiple()
        self.owners[job] = claim.token
        return claim

    @rule(claim=claims, write=st.sampled_from(sorted(WRITES)))
    def write(self, claim, write):
        before = self.world.jobs.get(claim.job_id)
        owned = before.state in {"running", "cancelling"} and self.owners[claim.job_id] == claim.token
        try:
            WRITES[write](self.world.jobs, claim, self.world.trained)
            assert owned
        except Cancelled:
            assert owned
            assert before.state is JobState.CANCELLING
        except LeaseLost:
            assert not owned or write == "stop"
            assert self.world.jobs.get(claim.job_id) == before
        self.world.hasten()

    @rule(job=jobs)
    def cancel(self, job):
        before = self.world.state(job)
        after = self.world.jobs.cancel(job).state
        expected = {JobState.QUEUED: JobState.CANCELLED, JobState.RUNNING: JobState.CANCELLING}
        assert after is expected.get(before, before)

    @rule(job=jobs)
    def crash_and_sweep(self, job):
        if self.world.state(job) in {"running", "cancelling"}:
            self.world.expire(job)
        self.world.jobs.sweep(held=0)
        assert self.world.state(job) in {JobState.QUEUED, *TERMINAL}
        self.world.hasten()

    @invariant()
    def holds(self):
        for job in self.world.jobs.page(1000).items:
            assert job.attempt <= job.max_attempts
            assert self.world.models(job.id) == (job.state is JobState.SUCCEEDED)
            assert (job.finished_at is not None) == job.state.terminal == (job.state in TERMINAL)
            assert job.transitions[-1].state is job.state
            moves = zip(job.transitions, job.transitions[1:], strict=False)
            assert all(before.state in SOURCES[after.state] for before, after in moves)

    def teardown(self):
        """Left alone with a sweeper and a worker, everything ends."""
        for job in self.world.jobs.page(1000).items:
            for _ in range(job.max_attempts + 1):
                self.world.hasten()
                self.world.jobs.claim(job.id)
                if self.world.state(job.id) in {"running", "cancelling"}:
                    self.world.expire(job.id)
                self.world.jobs.sweep(held=0)
            assert self.world.state(job.id) in TERMINAL


def live(world, **how):
    chosen = {"stateful_step_count": 20, "deadline": None, "derandomize": True, "database": None}
    machine = type("LifeHere", (Life,), {"world": world})
    run_state_machine_as_test(machine, settings=effort(suppress_health_check=list(HealthCheck), **chosen, **how))


def test_any_order_of_events(world):
    live(world, max_examples=8)


BREAKAGES = {
    "no fence": ("_lease", lambda job_id, _: (JobRow.id == job_id, JobRow.id == job_id)),
    "no graph": ("SOURCES", {state: set(JobState) for state in JobState}),
    "no sweeper": ("JobRepository.lapsed", lambda *_: []),
    "a model without its success": ("JobRepository.succeed", lambda *_, **__: None),
}


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_the_machine_notices_what_is_broken(world, monkeypatch, breakage):
    place, instead = BREAKAGES[breakage]
    monkeypatch.setattr(f"app.store.jobs.{place}", instead)
    with pytest.raises((AssertionError, IntegrityError)):
        live(world, max_examples=12, phases=[Phase.generate])
