"""Ends of an attempt."""

import pytest

from app.base.errors import GoldenMismatch, WorkerLost
from app.ml.kinds.job import Outcome
from app.schemas.jobs import JobState
from app.schemas.problems import Problem


def states(job):
    return [line.state for line in job.transitions]


def test_success_is_a_version_and_a_state_at_once(world):
    claim = world.attempts.claim(world.submit(warnings=["as planned"]))
    world.attempts.succeed(claim, world.outcome, curves={"loss": [2.0, 1.0]})
    job = world.jobs.get(claim.job_id)
    assert (job.state, job.progress) == (JobState.SUCCEEDED, 1.0)
    assert job.curves[0].values == [2.0, 1.0]
    with world.work() as w:
        assert w.models.version(job.model, job.version).job == job.id


def test_a_version_that_cannot_be_stored_leaves_no_success(world):
    claim = world.attempts.claim(world.submit())
    trained = world.outcome.trained
    broken = Outcome(trained._replace(golden=trained.golden | {"note": "\0"}))  # jsonb refuses it
    with pytest.raises(Exception, match="u0000"):
        world.attempts.succeed(claim, broken)
    assert world.state(claim.job_id) is JobState.RUNNING
    assert world.models(claim.job_id) == 0


def uses(world):
    return world.run("select coalesce(sum(times), 0) from uses").scalar()


def test_uses_of_test_rows_are_counted_with_the_success_or_not_at_all(world):
    trained, before = world.outcome.trained, uses(world)
    for outcome in (world.outcome, world.outcome):
        world.attempts.succeed(world.attempts.claim(world.submit()), outcome)
    assert uses(world) == before + 2
    with world.work() as w:
        (newest,) = w.models.get("m").versions[-1:]
        assert w.models.report("m", newest).reuse.uses == before + 2
    broken = Outcome(trained._replace(golden=trained.golden | {"note": "\0"}))
    with pytest.raises(Exception, match="u0000"):
        world.attempts.succeed(world.attempts.claim(world.submit()), broken)
    assert uses(world) == before + 2


def test_a_model_that_forgets_its_golden_rows_does_not_go_live(world):
    claim = world.attempts.claim(world.submit())
    trained = world.outcome.trained
    lied = trained._replace(golden=trained.golden | {"predictions": trained.golden["predictions"][::-1]})
    with pytest.raises(GoldenMismatch):
        world.attempts.succeed(claim, Outcome(lied))
    assert world.models(claim.job_id) == 0


def test_a_crash_is_tried_again_after_a_pause_until_attempts_are_spent(world):
    job_id, pauses = world.submit(), []
    for attempt in (1, 2, 3):
        claim = world.attempts.claim(job_id)
        assert claim.attempt == attempt
        world.attempts.fail(claim, world.crash, retry=True)
        pause = "select extract(epoch from not_before - clock_timestamp()) from jobs where id = :id"
        pauses.append(float(world.run(pause, id=job_id).scalar()))
        if attempt < 3:
            assert world.attempts.claim(job_id) is None
        world.hasten()
    job = world.jobs.get(job_id)
    assert (job.state, job.error.code) == (JobState.FAILED, "trainer_crashed")
    assert states(job) == ["queued", "running", "queued", "running", "queued", "running", "failed"]
    assert pauses[0] == pytest.approx(1, abs=0.5)
    assert pauses[1] == pytest.approx(2, abs=0.5)


def test_a_failure_that_will_come_again_is_final(world):
    claim = world.attempts.claim(world.submit())
    world.attempts.fail(claim, Problem.of(WorkerLost()))
    assert world.state(claim.job_id) is JobState.FAILED


def test_a_release_does_not_count_and_is_announced(world):
    claim = world.attempts.claim(world.submit())
    world.attempts.release(claim)
    assert world.announced == [claim.job_id]
    job = world.jobs.get(claim.job_id)
    assert (job.state, job.attempt) == (JobState.QUEUED, 0)
    assert world.attempts.claim(claim.job_id).attempt == 1
