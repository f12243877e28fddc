"""The stop of a worker by SIGTERM or SIGINT: it claims nothing more, and its jobs have a while to end."""

import threading
from typing import Any

from celery import signals

from workers.job_slots import Runner
from workers.periodic_duties import Tending


def stop_gracefully(tending: Tending, runner: Runner, grace_seconds: float) -> None:
    """Once Celery begins to shut down: jobs that run longer than the grace are given back to the queue."""

    def wind_down(**_: Any) -> None:
        """Called within a signal handler, hence the timer: nothing here may wait."""
        tending.stop()
        timer = threading.Timer(grace_seconds, runner.stop)
        timer.daemon = True
        timer.start()

    signals.worker_shutting_down.connect(wind_down, weak=False)
