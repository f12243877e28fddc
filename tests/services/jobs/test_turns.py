"""Turns of projects at the workers, and quotas of jobs that run."""

from contextlib import contextmanager

import pytest

from app.base.project_context import PROJECT
from app.schemas.projects import ProjectChange, Quotas


@pytest.fixture
def project(world):
    """`project(name, **quotas)`: a context in which the world acts for that project."""
    made = []

    def make(name, **quotas):
        with world.work.across_projects() as w:
            w.projects.ensure(name)
            made.append(w.projects.change(name, ProjectChange(quotas=Quotas(**{"running_jobs": None} | quotas))).id)
        return _within(made[-1])

    yield make
    for project_id in made:
        with _within(project_id)():
            world.settle()


def _within(project_id):
    @contextmanager
    def within():
        before = PROJECT.set(project_id)
        try:
            yield
        finally:
            PROJECT.reset(before)

    return within


def test_projects_take_turns(world, project):
    """A project of many jobs does not keep the one job of another waiting."""
    busy, calm = project("busy"), project("calm")
    with busy():
        many = [world.submit() for _ in range(4)]
    with calm():
        late = world.submit()
    with world.work.across_projects() as w:
        assert w.leases.held_back(w.projects.get("busy").id) is None  # all of its jobs may run
    claimed = [world.attempts.claim_next().job_id for _ in range(5)]
    assert claimed == [many[0], late, *many[1:]]


def test_no_more_jobs_of_a_project_run_than_its_quota(world, project):
    small, other = project("small", running_jobs=1), project("other")
    with small():
        first, second = world.submit(), world.submit()
    with other():
        third = world.submit()
    claims = [world.attempts.claim_next(), world.attempts.claim_next()]
    assert [claim.job_id for claim in claims] == [first, third]
    assert world.attempts.claim_next() is None
    with small():
        world.write("fail", claims[0])
    world.announced.clear()
    world.attempts.announce_held_back(claims[0])
    world.attempts.announce_held_back(claims[1])  # of a project whose jobs wait for nothing
    assert world.announced == [second]
    assert world.attempts.claim_next().job_id == second


def test_a_job_that_is_being_cancelled_still_has_its_slot(world, project):
    within = project("cancelling", running_jobs=1)
    with within():
        running, waiting = world.submit(), world.submit()
        claim = world.attempts.claim_next()
        assert claim.job_id == running
        world.jobs.cancel(running)
        assert world.attempts.claim_next() is None
        world.write("stop", claim)
        assert world.attempts.claim_next().job_id == waiting
