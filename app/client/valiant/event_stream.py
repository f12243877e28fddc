"""Server-sent events of a job, read from the chunks in which they arrive."""

import json
from collections.abc import Callable
from typing import Any


class EventStream:
    """Reads events and hands each on as `receive(name, data)`. After a cut, `last_id` continues where it was."""

    def __init__(self, receive: Callable[[str, Any], None]) -> None:
        self.receive = receive
        self.last_id: str | None = None
        self.ended = False
        """True after the event `end`, the last one."""
        self._rest = b""

    def begin(self) -> None:
        """Forget the half of an event that a cut connection left."""
        self._rest = b""

    def take(self, chunk: bytes) -> bool:
        """True at the end of the stream."""
        *events, self._rest = (self._rest + chunk).split(b"\n\n")
        for event in events:
            self._read(event.decode())
        return self.ended

    def _read(self, event: str) -> None:
        fields = dict(line.split(": ", 1) for line in event.split("\n") if ": " in line and not line.startswith(":"))
        self.last_id = fields.get("id", self.last_id)
        name = fields.get("event")
        if name is not None:
            self.ended |= name == "end"
            self.receive(name, json.loads(fields.get("data", "null")))
