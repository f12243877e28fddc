"""The API on one port: one process, drained before it stops."""

import threading
from types import FrameType

import uvicorn
from fastapi import FastAPI

from app import logs
from app.api.connection import Receiver
from app.lean import settle
from app.ports import listen
from app.settings import Settings


def serve(app: FastAPI, settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises StartFailed if the address is taken."""
    logs.configure(settings.log_level)
    settle()
    with listen(settings.host, settings.port) as listener:
        _Draining(configured(app), app, settings.drain_seconds).run(sockets=[listener])


def configured(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Receiver,  # type: ignore[arg-type]  # asyncio knows two kinds of protocols, uvicorn one
        proxy_headers=False,  # nothing asks who the client is, or by which scheme it came
        access_log=False,  # the application writes one line a request itself
        log_config=None,
        server_header=False,
        timeout_keep_alive=75,  # longer than a load balancer's idle timeout, else it sees resets
        timeout_graceful_shutdown=25,
    )


class _Draining(uvicorn.Server):
    """On the first signal answers "not ready", waits so that load balancers notice, and then closes."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, drain_seconds: float) -> None:
        super().__init__(config)
        self._app = app
        self._drain_seconds = drain_seconds

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """Unlike uvicorn's own, does not raise the signal again at the end: being asked to stop is no failure."""
        if self._app.state.draining:
            self.should_exit = True  # asked twice
            return
        self._app.state.draining = True
        timer = threading.Timer(self._drain_seconds, self._close)
        timer.daemon = True
        timer.start()

    def _close(self) -> None:
        self.should_exit = True
