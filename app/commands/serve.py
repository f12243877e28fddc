"""The API on one port: one process, drained before it stops."""

import asyncio
import math
import socket
import ssl
import threading
from types import FrameType
from typing import Any

import structlog
import uvicorn

from app.api.edge.middleware import CLOSE_HEADER
from app.api.fast.bounded_connection import BoundedConnection
from app.api.fast.route import Application
from app.base import logs
from app.base.errors import StartFailed
from app.base.settings import Settings
from app.processes.ports import accepts, bind, demand_keys, is_loopback, refuse_new
from app.processes.process_memory import settle

log = structlog.get_logger(__name__)
HSTS = ("strict-transport-security", "max-age=31536000")
HANDSHAKE_SECONDS = 0.01
"""Within a data centre a connection is established in less. Those who connect meanwhile are delayed by a second."""
LATE_SECONDS = 0.5
"""Time for the request of a caller who connected just before the listener closed."""


def serve(app: Application, settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises StartFailed if the address is taken or needs keys, or TLS has no files.

    Connections are refused until what is on disk is loaded: a proxy goes on to another replica at once.
    """
    demand_keys(settings)
    logs.configure(settings.log_level, request_share=settings.log_requests)
    if settings.auth != "keys" and not is_loopback(settings.host):
        log.warning("anonymous_network", host=settings.host)
    _check_certificate(settings)
    settle()
    app.state.listens_when_warm = True
    with bind(settings.host, settings.port) as listener:
        _Draining(configured(app), app, settings.drain_seconds).run(sockets=[listener])


def _check_certificate(settings: Settings) -> None:
    """Raises StartFailed for files that no TLS can be made of."""
    if settings.tls_cert is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
        except OSError as error:
            raise StartFailed(
                f"VALIANT_TLS_CERT and VALIANT_TLS_KEY are no certificate in PEM and its key: {error.strerror}."
            ) from error


def configured(app: Application) -> uvicorn.Config:
    settings = app.settings
    return uvicorn.Config(
        app,
        http=_shortcut().Receiver if app.fast else BoundedConnection,
        ws="none",  # there is no such route
        proxy_headers=False,  # nothing needs to know who the client is, or by which scheme it came
        access_log=False,  # the application writes one line a request itself
        log_config=None,
        server_header=False,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,  # Python's own contexts accept TLS 1.2 and newer
        headers=[HSTS] if settings.tls_cert else None,
        timeout_keep_alive=75,  # longer than a load balancer's idle timeout, else it sees resets
        timeout_graceful_shutdown=math.ceil(settings.request_grace_seconds),
    )


def _shortcut() -> Any:
    """Imported where it is used: another version of uvicorn may lack the private parts that it stands on."""
    from app.api.fast import connection  # noqa: PLC0415

    return connection


class _Draining(uvicorn.Server):
    """Loses no request of a proxy when it stops.

    On the first signal it is not ready, and every response closes its connection: the proxy's idle connections are used
    up one by one, none is closed while a request may be in transit. After `drain_seconds` it stops to accept, serves
    those who had connected, and closes what is idle still.
    """

    def __init__(self, config: uvicorn.Config, app: Application, drain_seconds: float) -> None:
        super().__init__(config)
        self._app = app
        self._drain_seconds = drain_seconds

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """Unlike uvicorn's own, does not raise the signal again at the end: a stop on request is no failure."""
        if self._app.state.draining:
            self.should_exit = True  # the second signal
            return
        self._app.state.draining = True
        if self.started:
            self._end_connections()
        timer = threading.Timer(self._drain_seconds, self._close)
        timer.daemon = True
        timer.start()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Raises StartFailed where another process has begun to listen at the address meanwhile."""
        try:
            await super().startup(sockets)
        except OSError as error:
            raise StartFailed(f"Cannot listen: {error.strerror}.") from error

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._drain_seconds:
            for listener in sockets or ():
                await _accept_rest(listener)
                listener.close()
            for server in self.servers:
                server.close()
            await asyncio.sleep(LATE_SECONDS)
        await super().shutdown(sockets)

    def _close(self) -> None:
        self.should_exit = True

    def _end_connections(self) -> None:
        """Each with its next response."""
        self.config.encoded_headers.append(CLOSE_HEADER)  # from which the headers of all responses are made each second
        self.server_state.default_headers = [*self.server_state.default_headers, CLOSE_HEADER]
        for connection in tuple(self.server_state.connections):
            if isinstance(connection, BoundedConnection):
                connection.end()


async def _accept_rest(listener: socket.socket) -> None:
    """A listener that closes resets the connections it has not accepted: so these are accepted, and no new ones."""
    if refuse_new(listener):
        await asyncio.sleep(HANDSHAKE_SECONDS)
        while accepts(listener):  # noqa: ASYNC110 - the kernel does not notify when it is empty
            await asyncio.sleep(HANDSHAKE_SECONDS)
