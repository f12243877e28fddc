import asyncio
import json
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from app.api.edge import server_sent_events
from app.schemas.jobs import Curve, Job, JobState, Transition

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ID = uuid4()


def job(*states, attempt=1, progress=0.0, message="", **curves):
    return Job(
        id=ID, kind="train", state=states[-1], progress=progress, message=message, attempt=attempt, max_attempts=3,
        created_at=NOW, transitions=[Transition(at=NOW, state=state, attempt=attempt) for state in states],
        curves=[Curve(name=name, values=values) for name, values in curves.items()],
    )  # fmt: skip


QUEUED, RUNNING, DONE = JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED
LIFE = [
    job(QUEUED, attempt=0),
    job(QUEUED, attempt=0),
    job(QUEUED, RUNNING, progress=0.1, message="reading"),
    job(QUEUED, RUNNING, progress=0.5, message="fitting", loss=[3.0, 2.0]),
    job(QUEUED, RUNNING, progress=0.5, message="fitting", loss=[3.0, 2.0]),
    job(QUEUED, RUNNING, QUEUED, progress=0.0, loss=[3.0, 2.0]),
    job(QUEUED, RUNNING, QUEUED, RUNNING, attempt=2, progress=0.2, loss=[5.0], accuracy=[0.5]),
    job(QUEUED, RUNNING, QUEUED, RUNNING, attempt=2, progress=0.9, loss=[5.0, 4.0, 1.0], accuracy=[0.5]),
    job(QUEUED, RUNNING, QUEUED, RUNNING, DONE, attempt=2, progress=1.0, loss=[5.0, 4.0, 1.0], accuracy=[0.5, 0.9]),
]


def listen(life, last_event_id=None, stop_after=10**6):
    """All events of a job that lives through these states, one a reading, as a client parses them."""
    rest = iter(life[1:])
    left = stop_after

    async def read():
        return next(rest)

    async def stopping():
        nonlocal left
        left -= 1
        return left <= 0

    async def collect():
        stream = server_sent_events.stream(life[0], server_sent_events.Seen.of(last_event_id), read, stopping)
        return b"".join([chunk async for chunk in stream]).decode()

    return [parse(block) for block in asyncio.run(collect()).split("\n\n") if block and not block.startswith(":")]


def parse(block):
    fields = dict(line.split(": ", 1) for line in block.splitlines())
    return fields["event"], json.loads(fields["data"]), fields.get("id")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(server_sent_events, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(server_sent_events, "LONGEST_PAUSE", 0.0)


def test_a_whole_life_is_reported_once_and_in_order():
    result = listen(LIFE)
    states = [data["state"] for event, data, _ in result if event == "state"]
    assert states == ["queued", "running", "queued", "running", "succeeded"]
    curves = [(d["name"], d["start"], d["values"]) for event, d, _ in result if event == "curve"]
    assert curves == [
        ("loss", 0, [3.0, 2.0]),
        ("loss", 0, [5.0]),
        ("accuracy", 0, [0.5]),
        ("loss", 1, [4.0, 1.0]),
        ("accuracy", 1, [0.9]),
    ]
    messages = [(d["progress"], d["message"]) for event, d, _ in result if event == "progress"]
    assert messages == [(0.0, ""), (0.1, "reading"), (0.5, "fitting"), (0.0, ""), (0.2, ""), (0.9, ""), (1.0, "")]
    assert result[-1][0] == "end"
    assert Job.model_validate(result[-1][1]) == LIFE[-1]


@pytest.mark.parametrize("cut", range(1, len(LIFE)))
def test_a_line_that_broke_goes_on_where_it_was(cut):
    """Wherever it broke, the two parts tell every state once and every point of the last attempt."""
    before = listen(LIFE, stop_after=cut)
    last_id = [event_id for _, _, event_id in before if event_id][-1]
    after = listen(LIFE[cut:], last_event_id=last_id)
    states = [data["state"] for event, data, _ in before + after if event == "state"]
    assert states == ["queued", "running", "queued", "running", "succeeded"]
    drawn = {}
    for event, data, _ in before + after:
        if event == "curve":
            drawn.setdefault(data["name"], [])[data["start"] :] = data["values"]
    assert drawn == {"loss": [5.0, 4.0, 1.0], "accuracy": [0.5, 0.9]}


@pytest.mark.parametrize("odd", ["", "x", "1.2", "-1.0.0", "1.2.3.4", "9" * 50 + ".0.0", "1.1.1\n"])
def test_an_id_that_is_not_ours_begins_at_the_beginning(odd):
    assert server_sent_events.Seen.of(odd) == server_sent_events.Seen()


def test_who_has_received_the_end_is_informed():
    last_id = listen(LIFE)[-1][2]
    assert server_sent_events.Seen.of(last_id).covers(LIFE[-1])
    assert not server_sent_events.Seen.of(last_id).covers(LIFE[-2])
    assert not server_sent_events.Seen().covers(LIFE[-1])


def test_silence_is_broken_by_comments(monkeypatch):
    monkeypatch.setattr(server_sent_events, "KEEPALIVE_SECONDS", 0.0)

    async def collect():
        rest = iter([LIFE[0], LIFE[-1]])

        async def read():
            return next(rest)

        async def never():
            return False

        return [chunk async for chunk in server_sent_events.stream(LIFE[0], server_sent_events.Seen(), read, never)]

    assert asyncio.run(collect())[1] == b": ping\n\n"
