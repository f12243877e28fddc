"""The broker: it carries a job's id and nothing else, and may vanish at any time.

Messages are acknowledged before the work begins: the lease in the database, not the broker, brings
back what a dead worker leaves, so there is no visibility timeout to outlive and no message that kills twice.
"""

from typing import Any
from uuid import UUID

import structlog
from celery import Celery

from app.base.settings import Settings
from app.messaging import broker
from app.messaging.broker import QUEUE, RUN
from app.processes.processor_cores import count_slots

RESPONSE_SECONDS = 0.5
"""A broker that stays silent for so long is taken for gone: nothing of ours takes it a millisecond."""

log = structlog.get_logger(__name__)


def make_celery(settings: Settings) -> Celery:
    """Connects to nothing yet."""
    if settings.broker_url is None:
        raise ValueError("There is no broker: set VALIANT_BROKER_URL, or run `valiant up`.")
    broker.install()
    celery = Celery("valiant", broker=settings.broker_url.get_secret_value(), set_as_current=False)
    celery.conf.update(_CONFIGURATION, worker_concurrency=count_slots(settings))
    return celery


def publish(celery: Celery, job_id: UUID, task: str = RUN, queue: str = QUEUE) -> bool:
    """Notify the workers of a queued job: a hint. False, within 2 seconds, if the broker does not take it."""
    try:
        celery.send_task(task, args=[str(job_id)], queue=queue, ignore_result=True)
    except Exception as error:  # noqa: BLE001 - a hint has no right to fail what it hints at
        log.warning("announcement_failed", job_id=str(job_id), reason=type(error).__name__)
        return False
    return True


def reachable(celery: Celery) -> bool:
    """True if the broker takes a connection. Raises what the transport raises, or returns within 2 seconds."""
    with celery.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=RESPONSE_SECONDS)
        return bool(connection.connected)


def depth(celery: Celery) -> int | None:
    """Messages that no worker has taken yet; None if the broker does not respond."""
    try:
        with celery.pool.acquire(block=True, timeout=RESPONSE_SECONDS) as connection:
            try:
                return int(connection.default_channel.queue_declare(QUEUE, passive=True).message_count)
            except connection.channel_errors:  # to Redis an empty queue is none at all
                return 0
    except Exception as error:  # noqa: BLE001 - every transport has its own
        log.warning("broker_silent", reason=type(error).__name__)
        return None


_CONFIGURATION: dict[str, Any] = {
    "task_default_queue": QUEUE,
    "task_serializer": "json",
    "accept_content": ["json"],
    "task_ignore_result": True,
    "task_acks_late": False,
    "task_publish_retry": True,
    "task_publish_retry_policy": {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0},
    "broker_connection_timeout": RESPONSE_SECONDS,
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    "broker_pool_acquire_timeout": RESPONSE_SECONDS,
    "broker_pool_limit": 10,
    "broker_transport_options": {
        "socket_timeout": RESPONSE_SECONDS,
        "socket_connect_timeout": RESPONSE_SECONDS,
        "socket_keepalive": True,
        "health_check_interval": 25,
    },
    "worker_prefetch_multiplier": 1,
    "worker_disable_prefetch": True,
    "worker_send_task_events": False,
    "worker_enable_remote_control": False,
    "worker_hijack_root_logger": False,
    "worker_redirect_stdouts": False,
}
