"""A world of jobs: a real database, the service on it. Time passes by moving the lease, not by waiting."""

import pytest
from sqlalchemy import text

from app.base.errors import TrainerCrashed
from app.ml.kinds.job import Outcome
from app.schemas.problems import Problem
from app.services.jobs.attempts import Attempts
from app.services.jobs.jobs import Jobs
from app.services.jobs.recovery import Recovery
from app.services.predictions.pointer_cache import Pointers
from app.store.base.new_ids import uuid7
from app.store.engine import make_engine
from app.store.jobs.job_records import NewJob
from app.store.unit_of_work import WorkFactory

CRASH = Problem.of(TrainerCrashed())
WRITES = {
    "beat": lambda attempts, claim, _: attempts.beat(claim, progress=0.5),
    "succeed": lambda attempts, claim, outcome: attempts.succeed(claim, outcome),
    "fail": lambda attempts, claim, _: attempts.fail(claim, CRASH),
    "retry": lambda attempts, claim, _: attempts.fail(claim, CRASH, retry=True),
    "time_out": lambda attempts, claim, _: attempts.time_out(claim),
    "stop": lambda attempts, claim, _: attempts.stop(claim),
    "release": lambda attempts, claim, _: attempts.release(claim),
}


class World:
    """A database of its own, the service on it, and what it announced."""

    def __init__(self, settings, add_iris, trained):
        self.settings = settings
        self.work = WorkFactory(make_engine(settings, role="test"))
        self.announced = []
        self.jobs = Jobs(self.work, Pointers(self.work, 0.0))
        self.attempts = Attempts(self.work, self.announced.append, settings)
        self.recovery = Recovery(self.work, self.announced.append, settings, self.attempts.counts)
        self.dataset = add_iris(self.work)
        self.outcome = Outcome(trained)
        self.crash, self.writes = CRASH, frozenset(WRITES)

    def submit(self, **changes):
        new = NewJob(
            id=uuid7(), kind="train", request={}, request_hash="", request_id="r", idempotency_key=None,
            dataset_id=self.dataset, model="m", algorithm="logistic", warnings=[], max_attempts=3,
            time_limit_seconds=60,
        )._replace(**changes)  # fmt: skip
        with self.work() as w:
            return w.jobs.add(new).id

    def write(self, how, claim):
        return WRITES[how](self.attempts, claim, self.outcome)

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


@pytest.fixture(params=sorted(WRITES))
def write(request):
    """Whatever is written under a lease."""
    return request.param


@pytest.fixture(params=sorted(set(WRITES) - {"stop", "beat"}))
def end(request):
    """Whatever ends an attempt."""
    return request.param
