"""Workers and servers that die, hang, forget or lie: no job is lost, none is doubled."""

import os
import signal
import subprocess
import sys

import psutil
import pytest
from redis import Redis
from sqlalchemy import delete

from app.commands.processes import variables
from app.schemas.jobs import JobState
from app.store.jobs.job_tables import WorkerRow
from workers.watchdog import EX_TEMPFAIL


def succeeded_once(fleet, job_id):
    job = fleet.ended(job_id)
    assert job.state is JobState.SUCCEEDED, job
    assert fleet.models(job_id) == 1
    assert [line.state for line in job.transitions].count("succeeded") == 1
    return job


def gone(fleet, processes):
    """Ended, whether or not somebody has noticed."""
    zombie = psutil.STATUS_ZOMBIE
    fleet.until(lambda: all(not p.is_running() or p.status() == zombie for p in processes), "the end of the trainers")


def flushed(stack):
    with Redis(unix_socket_path=str(stack.folder.sockets / "broker.sock")) as client:
        client.flushall()


def seen(fleet):
    with fleet.services.work() as w:
        return w.workers.count(fleet.settings.lease_seconds)


def listening(stack):
    with Redis(unix_socket_path=str(stack.folder.sockets / "broker.sock")) as client:
        return any(one["cmd"] == "brpop" for one in client.client_list())


# two workers, of which one is hurt


def test_a_killed_worker_takes_its_trainer_along_and_its_job_is_done_by_another(fleet):
    fleet.keep(2)
    job_id = fleet.submit("work", seconds=2)
    owner = fleet.owner(job_id)
    trainers = psutil.Process(owner.pid).children(recursive=True)
    assert trainers
    owner.kill()
    gone(fleet, trainers)
    job = succeeded_once(fleet, job_id)
    assert (job.attempt, job.transitions[2].reason) == (2, "worker_lost")


@pytest.mark.slow
def test_a_worker_that_slept_past_its_lease_writes_nothing(fleet):
    fleet.keep(2)
    job_id = fleet.submit("work", seconds=1)
    owner = fleet.owner(job_id)
    os.kill(owner.pid, signal.SIGSTOP)
    done = succeeded_once(fleet, job_id)
    assert done.attempt == 2
    fleet.until(lambda: seen(fleet).silent >= 1, "its silence")
    os.kill(owner.pid, signal.SIGCONT)
    fleet.until(lambda: any("lease_lost" in line for line in fleet.log_of(owner, job_id)), "the refusal")
    assert fleet.job(job_id) == done
    assert fleet.models(job_id) == 1
    assert owner.alive


@pytest.mark.slow
def test_a_worker_that_is_stopped_gives_its_job_back_at_once(fleet):
    fleet.keep(2)
    job_id = fleet.submit("work", seconds=2)
    owner = fleet.owner(job_id)
    owner.process.send_signal(signal.SIGTERM)
    assert owner.process.wait(60) == 0
    job = succeeded_once(fleet, job_id)
    assert job.attempt == 1
    assert [line.reason for line in job.transitions] == [None, None, "worker_stopped", None, None]


@pytest.mark.slow
def test_killed_at_any_moment_small_jobs_are_neither_lost_nor_doubled(fleet):
    jobs = [fleet.submit("work", seconds=0.05 * (place % 3), max_attempts=5) for place in range(6)]
    for ended in (1, 4):
        fleet.keep(2)
        fleet.until(lambda least=ended: sum(fleet.job(one).state.terminal for one in jobs) >= least, "progress")
        next(worker for worker in fleet.workers if worker.alive).kill()
    fleet.keep(1)
    for job_id in jobs:
        succeeded_once(fleet, job_id)


@pytest.mark.slow
def test_a_worker_that_is_stopped_lets_a_short_job_end(fleet):
    for worker in fleet.workers:
        worker.kill()
    with fleet.services.work() as w:
        w.session.execute(delete(WorkerRow))  # those who were killed
    worker = fleet.start(worker_grace_seconds=60)
    job_id = fleet.submit("work", seconds=1)
    fleet.owner(job_id)
    worker.process.send_signal(signal.SIGTERM)
    assert seen(fleet).alive == 1
    assert worker.process.wait(60) == 0
    assert succeeded_once(fleet, job_id).attempt == 1
    assert (seen(fleet).alive, seen(fleet).silent) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["template", "trainer"])
def test_a_frozen_process_of_a_worker_is_replaced_and_its_job_ends(fleet, victim):
    for worker in fleet.workers:
        worker.kill()
    worker = fleet.start(watchdog_seconds=3)
    job_id = fleet.submit("work", seconds=2)
    fleet.running(job_id)
    (template,) = psutil.Process(worker.pid).children()
    frozen = template if victim == "template" else template.children()[0]
    frozen.suspend()
    job = succeeded_once(fleet, job_id)  # a trainer may end before somebody needs its template
    assert victim == "template" or (job.attempt, job.transitions[2].reason) == (2, "trainer_crashed")
    gone(fleet, [frozen])
    assert worker.alive


@pytest.mark.slow
def test_a_slot_that_waits_for_its_template_is_no_lost_consumer(fleet):
    """A message takes the slot; the template responds later than a consumer may be silent."""
    for worker in fleet.workers:
        worker.kill()
    worker = fleet.start(watchdog_seconds=4)
    (template,) = psutil.Process(worker.pid).children()
    template.suspend()
    job_id = fleet.submit()
    assert succeeded_once(fleet, job_id).attempt == 1
    assert "template_died" in worker.logfile.read_text()
    assert "consumer_lost" not in worker.logfile.read_text()
    assert worker.alive


# servers that are hurt, under one worker


@pytest.mark.slow
def test_a_broker_that_forgets_everything_loses_no_job(servers):
    stack, fleet = servers
    jobs = [fleet.submit("work", seconds=0.2) for _ in range(3)]
    flushed(stack)
    fleet.keep(1)
    for job_id in jobs:
        succeeded_once(fleet, job_id)


@pytest.mark.slow
def test_without_a_broker_jobs_are_done_and_when_it_is_back_they_are_announced(servers):
    stack, fleet = servers
    fleet.keep(1)
    stack.servers["broker"].kill()
    succeeded_once(fleet, fleet.submit())
    stack.servers["broker"].start()
    fleet.until(lambda: listening(stack), "the worker's return")
    succeeded_once(fleet, fleet.submit())
    assert len(fleet.workers) == 1
    assert fleet.workers[0].alive


@pytest.mark.slow
def test_a_database_that_restarts_fails_no_job_and_no_worker(servers):
    stack, fleet = servers
    fleet.keep(1)
    job_id = fleet.submit("work", seconds=3)
    fleet.owner(job_id)
    postgres = stack.servers["postgres"]
    os.kill(postgres.pid, signal.SIGQUIT)  # immediate shutdown: connections cut, recovery at the next start
    postgres.process.wait()
    postgres.start()
    assert succeeded_once(fleet, job_id).attempt == 1
    succeeded_once(fleet, fleet.submit())
    assert len(fleet.workers) == 1
    assert fleet.workers[0].alive


# a worker that cannot hear

DEAF = """
import time
from app.composition.wiring import build
from app.base.settings import Settings
from workers.compiler import Compiler
from app.processes.processor_cores import Cores
from workers.job_slots import Runner
from workers.periodic_duties import Tending
from workers.watchdog import Watchdog

services = build(Settings(), role="worker")
runner = Runner(services, None, Cores.of_machine())
watchdog = Watchdog(services, runner, "valiant.deaf")
watchdog.begin()
Tending(services, runner, watchdog, Compiler()).start()  # and no consumer
time.sleep(600)
"""


@pytest.mark.slow
def test_a_worker_that_hears_nothing_from_a_living_broker_leaves(fleet):
    settings = fleet.settings.model_copy(update={"watchdog_seconds": 1})
    command = [sys.executable, "-c", DEAF]
    deaf = subprocess.run(command, env=variables(settings), capture_output=True, timeout=60, check=False)
    assert deaf.returncode == EX_TEMPFAIL
    assert b"consumer_lost" in deaf.stdout + deaf.stderr
