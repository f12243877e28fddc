"""A job's progress as server-sent events.

`DATA` states what each event carries. Each batch ends with an id that states what was sent, so that `Last-Event-ID`
continues where the stream was cut, on any replica: nothing is remembered here.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

import anyio
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from app.base.wire import Wire
from app.schemas.jobs import CurvePoints, Job, JobProgress, Transition
from app.schemas.problems import Problem

FIRST_PAUSE, BUSY_PAUSE, LONGEST_PAUSE = 0.1, 0.25, 1.0
"""Seconds between two reads of the job: the first after each change of its state, then longer and longer, up to the
second while there is progress and up to the last while there is none.
"""
KEEPALIVE_SECONDS = 15.0
EVENT_ID = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})")
DATA: Mapping[str, type[Wire]] = {
    "state": Transition,
    "progress": JobProgress,
    "curve": CurvePoints,
    "end": Job,
    "refused": Problem,
}
"""The JSON object that an event carries, by the event's name."""
SCHEMA = {
    "type": "string",
    "description": "Server-sent events. `event: state` carries a `Transition` of the job, `progress` a `JobProgress`, "
    "`curve` a `CurvePoints` with new values of one monitored measure, and `end` the finished `Job`, after which "
    "nothing follows. `refused` carries the `Problem` of a key that was revoked or has expired meanwhile, and is "
    "the last event too. `data` is one JSON object on one line. The `id` of the last event, sent back as "
    "Last-Event-ID, continues a stream that was cut. A line that begins with a colon keeps the connection alive.",
    "x-events": {name: {"$ref": f"#/components/schemas/{data.__name__}"} for name, data in DATA.items()},
}
EXAMPLE = """event: state
data: {"at":"2026-05-04T10:00:00Z","state":"running","attempt":1}

event: progress
data: {"progress":0.4,"message":"fitting"}
id: 2.1.0

"""


@dataclass(frozen=True)
class Seen:
    """The events that a client has received."""

    transitions: int = 0
    attempt: int = 0
    points: Mapping[str, int] = field(default_factory=dict)
    least_points: int = 0
    """Least number of points of a curve that `points` does not name."""
    progress: JobProgress | None = None

    @classmethod
    def of(cls, last_event_id: str | None) -> Self:
        """Anything but an id of ours begins at the beginning."""
        match = EVENT_ID.fullmatch(last_event_id or "")
        return cls(int(match[1]), int(match[2]), least_points=int(match[3])) if match else cls()

    @property
    def event_id(self) -> str:
        return f"{self.transitions}.{self.attempt}.{min(self.points.values(), default=self.least_points)}"

    def covers(self, job: Job) -> bool:
        """True at the end of a job that is over."""
        return job.state.terminal and self.transitions >= len(job.transitions)


def news(job: Job, seen: Seen) -> tuple[list[tuple[str, Wire]], Seen]:
    """The events since then, in the order to send them, and what the client has received after them."""
    result: list[tuple[str, Wire]] = [("state", step) for step in job.transitions[seen.transitions :]]
    same = seen.attempt == job.attempt  # another attempt draws its curves anew
    points = {c.name: seen.points.get(c.name, seen.least_points) if same else 0 for c in job.curves}
    fresh = [(c.name, points[c.name], c.values[points[c.name] :]) for c in job.curves]
    result += [("curve", CurvePoints(name=name, start=start, values=new)) for name, start, new in fresh if new]
    progress = JobProgress(progress=job.progress, message=job.message)
    if progress != seen.progress:
        result.append(("progress", progress))
    if job.state.terminal:
        result.append(("end", job))
    reached = {curve.name: len(curve.values) for curve in job.curves}
    return result, Seen(len(job.transitions), job.attempt, reached, progress=progress)


async def stream(
    job: Job,
    seen: Seen,
    read: Callable[[], Awaitable[Job]],
    stopping: Callable[[], Awaitable[bool]],
    refusal: Callable[[], Problem | None] = lambda: None,
) -> AsyncIterator[bytes]:
    """The events until the job is over or `stopping` is set. Between reads it holds nothing, only the line.

    refusal: what the caller is refused with from now on, if anything, which is the last event.
    """
    pause, quiet = FIRST_PAUSE, 0.0
    while True:
        steps = seen.transitions
        result, seen = news(job, seen)
        if result:
            yield b"".join(_written(result, seen))
        elif quiet >= KEEPALIVE_SECONDS:
            yield KEEPALIVE_COMMENT
        quiet = 0.0 if result or quiet >= KEEPALIVE_SECONDS else quiet + pause
        longest = BUSY_PAUSE if result else LONGEST_PAUSE
        pause = FIRST_PAUSE if seen.transitions > steps else min(1.5 * pause, longest)
        if job.state.terminal or await stopping():
            return
        await anyio.sleep(pause)
        if (problem := refusal()) is not None:
            yield format_sse_event(event="refused", data_str=problem.model_dump_json())
            return
        job = await read()


def _written(result: list[tuple[str, Wire]], seen: Seen) -> list[bytes]:
    last = len(result) - 1
    return [
        format_sse_event(event=name, data_str=data.model_dump_json(), id=seen.event_id if i == last else None)
        for i, (name, data) in enumerate(result)
    ]
