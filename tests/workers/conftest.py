"""A fleet: a database and a broker of its own on the shared servers, and real workers that can be hurt."""

import itertools
import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

collect_ignore_glob = ["poison/*"]

HASTY = {
    "lease_seconds": 3, "beat_seconds": 0.2, "sweep_seconds": 0.3, "republish_seconds": 1,
    "retry_backoff_seconds": 0.1, "job_memory_bytes": 1 << 30, "worker_grace_seconds": 0.1,
    "worker_concurrency": 1,
}  # fmt: skip
PATIENCE = 90
"""Seconds until a test gives up on what must happen; no promise is measured by it."""


class Fleet:
    def __init__(self, settings, folder, add_iris):
        from app.composition.wiring import build

        self.settings, self.folder = settings, folder
        self.services = build(settings, role="api")
        self.dataset = add_iris(self.services.work)
        self.workers = []
        self.temporary = tempfile.TemporaryDirectory(prefix="valiant-fleet-")
        self._numbers = itertools.count(1000 * os.getpid() % 1_000_000)

    def start(self, **changes):
        """One more worker, with the poison in its catalogue."""
        from app.commands import processes

        settings = self.settings.model_copy(update=changes)
        worker = processes.worker(settings, self.folder, number=next(self._numbers))
        poison = str(Path(__file__).with_name("poison"))
        # Its cores are its own: those of other workers on this machine are not held there.
        worker.environment = {**worker.environment, "PYTHONPATH": poison, "TMPDIR": self.temporary.name}
        worker.start()
        self.workers.append(worker)
        return worker

    def keep(self, number):
        """Replace the dead until so many live."""
        while sum(worker.alive for worker in self.workers) < number:
            self.start()

    def log_of(self, worker, job_id):
        return [line for line in worker.logfile.read_text().splitlines() if str(job_id) in line]

    def owner(self, job_id):
        """The worker whose trainer has reported progress."""
        self.running(job_id)
        return next(worker for worker in self.workers if worker.alive and self.log_of(worker, job_id))

    def submit(
        self, how="work", *, algorithm=None, announce=True, time_limit_seconds=300, max_attempts=2, **parameters
    ):
        """A job for the poison, or an algorithm that has it within, put into the queue as `Submission` does."""
        from app.messaging.queue import publish
        from app.store.base.new_ids import uuid7
        from app.store.jobs.job_records import NewJob

        job_id = uuid7()
        algorithm = algorithm or {"name": "poison", "how": how, **parameters}
        request = {
            "model": f"m{uuid4().hex}", "dataset": str(self.dataset), "target": "petal_width",
            "algorithm": algorithm, "time_limit_seconds": time_limit_seconds,
        }  # fmt: skip
        new = NewJob(
            id=job_id, kind="train", request=request, request_hash="", request_id=f"request-{job_id}",
            idempotency_key=None, dataset_id=self.dataset, model=request["model"], algorithm=algorithm["name"],
            warnings=[], max_attempts=max_attempts, time_limit_seconds=time_limit_seconds,
        )  # fmt: skip
        with self.services.work() as w:
            w.jobs.add(new)
        if announce:
            publish(self.services.celery, job_id)
        return job_id

    def job(self, job_id):
        return self.services.jobs.get(job_id)

    def until(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not (found := condition()):
            assert time.monotonic() < end, f"{what} did not happen{self._last_lines()}"
            time.sleep(0.05)
        return found

    def _last_lines(self, number=20):
        """For a failure: unfinished jobs, and the end of every worker's log."""
        from sqlalchemy import text

        with self.services.work() as w:
            query = text("select id, state, attempt, progress, lease_until from jobs where finished_at is null limit 5")
            jobs = [str(row) for row in w.session.execute(query)]
        logs = [
            f"{w.name}, {'alive' if w.alive else 'dead'}:\n" + "\n".join(w.logfile.read_text().splitlines()[-number:])
            for w in self.workers
        ]
        return "\n".join(["", *jobs, *logs])

    def ended(self, job_id):
        return self.until(lambda: (job := self.job(job_id)).state.terminal and job, f"the end of {job_id}")

    def running(self, job_id):
        """Wait until the trainer itself has reported something."""
        return self.until(lambda: (job := self.job(job_id)).progress > 0 and job, f"progress of {job_id}")

    def models(self, job_id):
        from sqlalchemy import text

        with self.services.work() as w:
            count = text("select count(*) from model_versions where job_id = :id")
            return w.session.scalar(count, {"id": job_id})

    def close(self):
        for worker in self.workers:
            worker.kill()
        self.services.close()
        self.temporary.cleanup()


@contextmanager
def _fleet(settings, folder, add_iris):
    made = Fleet(settings, folder, add_iris)
    try:
        yield made
    finally:
        made.close()


_broker_databases = itertools.count(1)


def _own_broker(settings):
    """Another numbered database of the shared broker: no worker of another test listens there."""
    from pydantic import SecretStr

    return SecretStr(f"{settings.broker_url.get_secret_value()}?virtual_host={next(_broker_databases)}")


@pytest.fixture(scope="module")
def fleet(database_factory, stack, add_iris):
    """Shared by a module; its workers are not to be hurt."""
    settings = database_factory(broker_url=_own_broker(stack.settings), **HASTY)
    with _fleet(settings, stack.folder, add_iris) as made:
        yield made


@pytest.fixture(scope="module")
def servers(module_stack_factory, add_iris):
    """`(stack, fleet)` on servers of the module's own, to be hurt."""
    stack = module_stack_factory(**HASTY)
    with _fleet(stack.settings, stack.folder, add_iris) as made:
        yield stack, made
