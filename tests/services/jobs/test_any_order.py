"""Everything at once."""

import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test
from sqlalchemy.exc import IntegrityError

from app.base.errors import Cancelled, LeaseLost
from app.schemas.jobs import JobState
from app.store.jobs.job_states import SOURCES
from app.store.jobs.job_tables import JobRow

TERMINAL = {state for state in JobState if state.terminal}
WRITES = ["beat", "fail", "release", "retry", "stop", "succeed", "time_out"]


class Life(RuleBasedStateMachine):
    """Any order of events, zombies included: a model per success, no move off the graph, no attempt too many."""

    jobs, claims = Bundle("jobs"), Bundle("claims")

    def __init__(self):
        super().__init__()
        assert self.world.writes == set(WRITES)
        self.world.settle()
        self.owners = {}

    @rule(target=jobs, attempts=st.integers(1, 3))
    def submit(self, attempts):
        return self.world.submit(max_attempts=attempts)

    @rule(target=claims, job=jobs)
    def claim(self, job):
        queued = self.world.state(job) is JobState.QUEUED
        claim = self.world.attempts.claim(job)
        assert (claim is not None) == queued
        if claim is None:
            return multiple()
        self.owners[job] = claim.token
        return claim

    @rule(claim=claims, write=st.sampled_from(WRITES))
    def write(self, claim, write):
        before = self.world.jobs.get(claim.job_id)
        owned = before.state in {"running", "cancelling"} and self.owners[claim.job_id] == claim.token
        try:
            self.world.write(write, claim)
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
        self.world.recovery.sweep(held=0)
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
                self.world.attempts.claim(job.id)
                if self.world.state(job.id) in {"running", "cancelling"}:
                    self.world.expire(job.id)
                self.world.recovery.sweep(held=0)
            assert self.world.state(job.id) in TERMINAL


def live(world, **how):
    chosen = {"stateful_step_count": 20, "deadline": None, "derandomize": True, "database": None}
    machine = type("LifeHere", (Life,), {"world": world})
    run_state_machine_as_test(machine, settings=effort(suppress_health_check=list(HealthCheck), **chosen, **how))


def test_any_order_of_events(world):
    live(world, max_examples=8)


BREAKAGES = {
    "no fence": ("jobs.leases._lease", lambda job_id, _: (JobRow.id == job_id, JobRow.id == job_id)),
    "no graph": ("jobs.job_states.SOURCES", {state: set(JobState) for state in JobState}),
    "no sweeper": ("jobs.leases.LeaseRepository.expired", lambda *_: []),
    "a model without its success": ("jobs.leases.LeaseRepository.succeed", lambda *_, **__: None),
}


@pytest.mark.slow
@pytest.mark.parametrize("breakage", BREAKAGES)
def test_the_machine_notices_what_is_broken(world, monkeypatch, breakage):
    place, instead = BREAKAGES[breakage]
    monkeypatch.setattr(f"app.store.{place}", instead)
    with pytest.raises((AssertionError, IntegrityError)):
        live(world, max_examples=12, phases=[Phase.generate])
