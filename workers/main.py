"""The worker: Celery hands out ids in a pool of threads, each of which watches one trainer at a time."""

import logging
import threading
import warnings
from typing import Any
from uuid import uuid4

import structlog
from celery import signals
from celery.exceptions import SecurityWarning
from kombu.entity import Queue

from app.base.logs import configure
from app.base.settings import Settings
from app.composition.wiring import build
from app.messaging.broker import QUEUE
from app.processes.processor_cores import Cores, count_cores, count_slots
from workers.compiler import Compiler
from workers.graceful_stop import stop_gracefully
from workers.heartbeat import beat
from workers.job_slots import Runner
from workers.metrics_server import serve
from workers.periodic_duties import Tending
from workers.restarts import is_supervised
from workers.tasks import register
from workers.trainers import Trainers
from workers.watchdog import Watchdog

CANARY_EXPIRY_SECONDS = 3600
UNSUPERVISED = (
    "This worker ends itself, with status 75, when it no longer receives messages, and nothing is known here that "
    "starts it again. Run it by `valiant up`, by systemd with Restart=always, or in a container that restarts."
)
log = structlog.get_logger(__name__)


def main(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT; the exit status. Trainers at work then have `worker_grace_seconds` to end."""
    configure(settings.log_level)
    # Two lines a message, canaries included; and "ready" before it is.
    for chatty in ("celery.worker.strategy", "celery.app.trace", "celery.apps.worker"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    warnings.simplefilter("ignore", SecurityWarning)  # it is about root and pickle; nothing here reads pickle
    if not is_supervised(settings):
        log.warning("no_supervisor", consequence=UNSUPERVISED)
    services = build(settings, role="worker")
    trainers = Trainers(patience_seconds=settings.watchdog_seconds)
    incarnation = uuid4().hex  # a name that no earlier life of this worker had
    own_queue = f"{QUEUE}.{incarnation}"
    runner = Runner(services, trainers, Cores.of_machine())
    serve(services, runner)
    watchdog = Watchdog(services, runner, own_queue)
    compiler = Compiler()
    tending = Tending(services, runner, watchdog, compiler)
    register(services.celery, runner, watchdog.received)
    services.celery.conf.task_queues = [
        Queue(QUEUE),  # type: ignore[no-untyped-call] # kombu is half typed
        Queue(own_queue, expires=CANARY_EXPIRY_SECONDS, auto_delete=True),  # type: ignore[no-untyped-call] # as above
    ]
    celery = services.celery.Worker(
        hostname=f"{incarnation}@%h",
        pool="threads",
        concurrency=count_slots(settings),
        loglevel=settings.log_level,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )

    def begin(**_: Any) -> None:
        watchdog.begin()

    signals.setup_logging.connect(_keep_our_logs)
    signals.worker_ready.connect(begin)
    stop_gracefully(tending, runner, settings.worker_grace_seconds)
    compiler.start()
    tending.start()
    threading.Thread(target=_report_ready, args=(trainers, tending, settings), name="start", daemon=True).start()
    celery.start()
    runner.join()
    tending.leave()
    compiler.stop()
    trainers.close()
    services.close()
    return int(celery.exitcode or 0)


def _report_ready(trainers: Trainers, tending: Tending, settings: Settings) -> None:
    """Once this worker can run jobs: trainers can be started, and it has looked for jobs in the database."""
    try:
        trainers.wait()
    except RuntimeError:  # it is stopping
        return
    tending.wait()
    log.info("ready", slots=count_slots(settings), cores=count_cores())
    if settings.beat_file is not None:
        beat(settings.beat_file)


def _keep_our_logs(**_: Any) -> None:
    """Connected, it keeps Celery from configuring logs of its own."""
