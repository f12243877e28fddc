"""The embedded stack: real Postgres and real Redis from wheels, living in one data folder.

    with Stack(settings) as stack:
        stack.settings  # the same settings, with the addresses of what was started

An address already present in the settings is used as it is, and nothing is started for it.
The servers belong to the process that started them: they end with it, however it ends.
"""

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from pydantic import SecretStr

from app.base.settings import Settings
from app.embedded.child_process import Child, end_leftovers, stop_all
from app.embedded.data_folder import Folder
from app.embedded.postgres import postgres
from app.embedded.postgres import url as database_url
from app.embedded.redis import broker, broker_url, cache, cache_url


class Stack:
    """The servers of one data folder. Enter it from the main thread.

    `connections` is how many clients its Postgres shall take at once.
    """

    def __init__(self, settings: Settings, *, connections: int = 100) -> None:
        self.folder = Folder(settings.data)
        self.settings = settings.model_copy(update={"data": self.folder.root})
        self.connections = connections
        self.servers: dict[str, Child] = {}
        """By name: "postgres", "broker", "cache"; only those that were started."""

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            undo.enter_context(self.folder)
            end_leftovers(self.folder.root)
            self.folder.clear_sockets()
            undo.callback(self._stop)
            self._start()
            self._undo = undo.pop_all()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._undo.close()

    def _start(self) -> None:
        settings, addresses = self.settings, {}
        if settings.broker_url is None:
            self.servers["broker"] = broker(self.folder)
            addresses["broker_url"] = SecretStr(broker_url(self.folder))
        if settings.cache_url is None:
            self.servers["cache"] = cache(self.folder, memory=settings.cache_memory_bytes)
            addresses["cache_url"] = SecretStr(cache_url(self.folder))
        if settings.database_url is None:
            self.servers["postgres"] = postgres(self.folder, connections=self.connections)
            addresses["database_url"] = SecretStr(database_url(self.folder))
        for server in self.servers.values():
            server.spawn()
        for server in self.servers.values():
            server.wait()
        self.settings = settings.model_copy(update=addresses)

    def _stop(self) -> None:
        stop_all(self.servers.values())
