"""Checks of `valiant doctor` that need no database: this machine, its settings, and both Redis."""

import os
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kombu.exceptions import KombuError
from redis import Redis
from redis.exceptions import RedisError

from app.base.settings import MiB, Settings
from app.base.suggestions import closest
from app.messaging.queue import make_celery
from app.ml.numerics.kernel_folders import tag
from app.processes.disk_space import free
from app.services.kernels.warming import count_compiled
from app.services.observability.machine_metrics import read_expiry

REDIS_SECONDS = 2.0
MIN_CERTIFICATE_DAYS = 14
OF_THE_CLIENT = {"VALIANT_KEY", "VALIANT_URL"}


class Result(NamedTuple):
    """A check: what it is of, what it found, and the remedy; None where all is right."""

    name: str
    detail: str
    remedy: str | None = None


def check_machine(settings: Settings) -> Iterator[Result]:
    room = free(settings.data)
    crowded = room < settings.reserve_bytes
    remedy = "Free room: uploads and jobs are refused." if crowded else None
    yield Result("disk", f"{room // MiB} MiB are free at {settings.data}", remedy)
    yield _check_folder(settings.spool or settings.data)
    yield _check_variables(os.environ)
    if settings.tls_cert is not None and settings.tls_key is not None:
        yield _check_certificate(settings.tls_cert, settings.tls_key)
    compiled, count = count_compiled()
    late = "" if compiled == count else "; a worker compiles the others beside its jobs, and `valiant warm` at once"
    yield Result("kernels", f"{compiled} of {count} are compiled for {tag()}{late}")
    if settings.cache_url is not None:
        url = settings.cache_url.get_secret_value()
        yield _check_redis("cache", lambda: _read_policy(Redis.from_url(url, socket_timeout=REDIS_SECONDS)), "allkeys-")
    if settings.cache_url is not None and settings.cache_url == settings.broker_url:
        yield Result("servers", "broker and cache are the same.", "Give the broker a Redis that forgets nothing.")
    if settings.broker_url is not None:
        yield _check_redis("broker", lambda: _read_policy_of_broker(settings), "noeviction")


def _read_policy(client: Redis) -> str:
    values = client.config_get("maxmemory-policy")
    (policy,) = values.values()
    return policy.decode() if isinstance(policy, bytes) else str(policy)


def _read_policy_of_broker(settings: Settings) -> str:
    celery = make_celery(settings)
    with celery.connection_for_read() as connection:
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=REDIS_SECONDS)
        return _read_policy(connection.default_channel.client)


def _check_redis(name: str, read: Callable[[], str], policy: str) -> Result:
    try:
        actual = read()
    except (RedisError, KombuError, OSError) as error:
        return Result(
            name, f"its policy is unknown ({type(error).__name__}).", f"See that VALIANT_{name.upper()}_URL responds."
        )
    remedy = (
        None if actual.startswith(policy) else f"Set maxmemory-policy to {policy}{'lfu' if policy[-1] == '-' else ''}."
    )
    return Result(name, f"maxmemory-policy is {actual}", remedy)


def _check_folder(folder: Path) -> Result:
    """Uploads are written there while they are read. Nothing is left behind."""
    probe = folder / ".valiant-doctor"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        return Result("folder", f"{folder} cannot be written: {error.strerror}.", "Let the user of the service own it.")
    return Result("folder", f"{folder} can be written")


def _check_variables(environment: Iterable[str]) -> Result:
    """Names of the environment that mean nothing, so that a misspelt setting is not taken for one."""
    variables = {f"VALIANT_{name.upper()}" for name in Settings.model_fields} | OF_THE_CLIENT
    unknown = [
        name for name in environment if name.startswith("VALIANT_") and name.removesuffix("_FILE") not in variables
    ]
    if not unknown:
        return Result("settings", "every VALIANT_ variable is one")
    meant = [f"{name} (is it {close}?)" if (close := closest(name, variables)) else name for name in sorted(unknown)]
    return Result("settings", f"no setting has the name {', '.join(meant)}.", "Correct or remove it.")


def _check_certificate(chain: Path, key: Path) -> Result:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(chain, key)
    except OSError as error:
        detail = f"{chain} and {key} are no pair: {error.strerror or error}."
        return Result("certificate", detail, "Put both in place again.")
    expiry = read_expiry(chain)
    if expiry is None:
        return Result("certificate", f"{chain} fits its key; when it expires is unknown without `cryptography`")
    days = (expiry - time.time()) / 86_400
    late = "Renew it, and restart the API." if days < MIN_CERTIFICATE_DAYS else None
    return Result("certificate", f"{chain} expires in {days:.0f} days", late)
