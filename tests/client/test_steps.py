"""The client without input or output: retries, addresses, events, and the line of progress."""

import io
import json

import pytest

import valiant
from valiant.event_stream import EventStream
from valiant.failures import ConnectionLost, problem_of
from valiant.progress_line import ProgressLine
from valiant.steps import FIRST_PAUSE, RETRIES, Call, Pause, Reply, send

CALL = Call("GET", "/v1/models")
REFUSED = ConnectionLost("refused", sent=False)
CUT = ConnectionLost("cut", sent=True)


def busy(seconds):
    return Reply(503, {"retry-after": seconds}, json.dumps({"code": "overloaded"}).encode())


def driven(steps, replies):
    """Result or error of the steps, and their pauses in seconds."""
    replies, pauses = iter(replies), []
    try:
        step = next(steps)
        while True:
            if isinstance(step, Pause):
                pauses.append(step.seconds)
                step = next(steps)
            else:
                reply = next(replies)
                step = steps.throw(reply) if isinstance(reply, Exception) else steps.send(reply)
    except StopIteration as end:
        return end.value, pauses
    except valiant.ValiantError as error:
        return error, pauses


OK = Reply(200, {}, b"{}")


@pytest.mark.parametrize("failure", [REFUSED, CUT, busy("0"), Reply(429, {}, b"")])
def test_what_may_pass_is_tried_again(failure):
    result, pauses = driven(send(CALL, 64), [failure, failure, OK])
    assert result == OK
    assert [0.75 * 2**k <= pause <= 1.25 * 2**k for k, pause in enumerate(pauses)] == [True, True]


def test_five_times_at_most():
    error, pauses = driven(send(CALL, 640), [REFUSED] * 9)
    assert error is REFUSED
    assert len(pauses) == RETRIES == 5
    assert 0.75 * 310 <= sum(pauses) <= 1.25 * 310


def test_never_after_the_time_is_over():
    error, pauses = driven(send(CALL, 0.5 * FIRST_PAUSE), [busy("0")] * 9)
    assert (type(error), error.code, pauses) == (valiant.Unavailable, "overloaded", [])


def test_retry_after_is_the_least_pause():
    _, pauses = driven(send(CALL, 100), [busy("20"), OK])
    assert 20 <= pauses[0] <= 25
    error, pauses = driven(send(CALL, 10), [busy("20"), OK])
    assert (error.code, pauses) == ("overloaded", [])


def test_what_would_do_something_else_is_not_sent_twice():
    once = Call("POST", "/v1/reviews/export", repeatable=False)
    assert driven(send(once, 100), [CUT, OK])[0] is CUT
    assert driven(send(once, 100), [REFUSED, OK])[0] == OK


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, valiant.InvalidRequest),
        (404, valiant.NotFound),
        (409, valiant.Conflict),
        (412, valiant.Conflict),
        (422, valiant.InvalidRequest),
        (500, valiant.ServiceFault),
        (502, valiant.ServiceFault),
        (507, valiant.Unavailable),
    ],
)
def test_a_refusal_is_of_the_class_of_its_status(status, kind):
    error, pauses = driven(send(CALL, 100), [Reply(status, {}, b"<html>")])
    assert (type(error), error.status, error.code, pauses) == (kind, status, "unknown", [])


def test_a_problem_prints_every_place():
    errors = [{"pointer": "/target", "detail": "No such column.", "code": "unknown_column"}]
    problem = problem_of(422, {"code": "invalid_request", "detail": "Bad.", "errors": errors, "remedy": "Mend it."})
    assert str(problem) == "Bad. [invalid_request]\n  /target: No such column.\nMend it."


def test_events_arrive_in_any_chunks():
    stream = b': alive\n\nevent: progress\ndata: {"progress":0.5,"message":"a: b"}\nid: 1.1.0\n\n'
    stream += b"event: end\ndata: {}\nid: 2.1.0\n\n"
    for size in (1, 7, len(stream)):
        received = []
        events = EventStream(lambda *event, found=received: found.append(event))
        ends = [events.take(stream[start : start + size]) for start in range(0, len(stream), size)]
        assert received == [("progress", {"progress": 0.5, "message": "a: b"}), ("end", {})]
        assert (ends[-1], events.ended, events.last_id) == (True, True, "2.1.0")


def test_half_an_event_is_read_again_after_a_cut():
    received = []
    events = EventStream(lambda *event: received.append(event))
    events.take(b'event: progress\ndata: {"pro')
    events.begin()
    events.take(b'event: progress\ndata: {"progress":1}\n\n')
    assert received == [("progress", {"progress": 1})]


def test_the_line_fits_the_terminal():
    stream = io.StringIO()
    line = ProgressLine("train churn", shown=True, stream=stream)
    line.draw(0.5, "round 5 of 10" * 20)
    line.end()
    assert stream.getvalue().startswith("\rtrain churn [############............]  50% 0:00 round 5")
    assert len(stream.getvalue().strip("\r\n")) == 79
    assert not ProgressLine("x", stream=io.StringIO())._shown


def test_the_first_of_argument_environment_and_file(monkeypatch, tmp_path):
    from valiant.configuration import configured, store

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert configured() == ("http://127.0.0.1:8000", None)
    path = store("https://models.example/", 'a "key"')
    assert path.stat().st_mode & 0o777 == 0o600
    assert configured() == ("https://models.example", 'a "key"')
    assert configured("http://elsewhere") == ("http://elsewhere", None)  # the key belongs to its address
    monkeypatch.setenv("VALIANT_URL", "http://other")
    monkeypatch.setenv("VALIANT_KEY", "k")
    assert configured() == ("http://other", "k")
    assert configured("http://argument", "own") == ("http://argument", "own")


@pytest.mark.parametrize(
    ("header", "warned"), [("9.0.0; min_client=0.2.0", 1), ("9.0.0; min_client=0.1.0", 0), ("", 0)]
)
def test_an_old_client_warns_and_goes_on(recwarn, header, warned):
    reply = OK._replace(headers={"valiant-version": header})
    assert driven(send(CALL, 1), [reply]) == (reply, [])
    assert len(recwarn) == warned
    assert not warned or "release 9.0.0, expects 0.2.0" in str(recwarn[0].message)


def test_two_releases_side_by_side_are_a_warning(tmp_path, recwarn, monkeypatch):
    from valiant import release

    monkeypatch.setattr(release, "__file__", str(tmp_path / "valiant" / "release.py"))
    (tmp_path / "valiant-0.1.0.dist-info").mkdir()
    (tmp_path / "valiant_client-0.1.0.dist-info").mkdir()
    release.check_installation()
    assert len(recwarn) == 0
    (tmp_path / "valiant_client-0.1.0.dist-info").rename(tmp_path / "valiant_client-0.2.0.dist-info")
    release.check_installation()
    assert "valiant-0.1.0 and valiant_client-0.2.0" in str(recwarn[0].message)


def test_the_release_is_that_of_the_service():
    from importlib.metadata import version

    assert valiant.__version__ == version("valiant")
