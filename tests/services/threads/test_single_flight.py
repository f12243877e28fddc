"""One call for many, whatever comes of it."""

import threading

import pytest

from app.services.threads.single_flight import SingleFlight


def test_those_who_ask_meanwhile_share_the_outcome():
    flights = SingleFlight(2, "test")
    gate, calls = threading.Event(), []

    def call():
        calls.append(1)
        gate.wait()
        return object()

    joined = [flights.join("a", call) for _ in range(100)]
    gate.set()
    assert len({id(future.result()) for future in joined}) == 1
    assert len(calls) == 1


def test_keys_do_not_wait_for_each_other():
    flights = SingleFlight(2, "test")
    gate = threading.Event()
    slow = flights.join("a", gate.wait)
    assert flights.join("b", lambda: 1).result() == 1
    gate.set()
    assert slow.result()


def test_an_outcome_is_not_kept():
    flights = SingleFlight(1, "test")

    def fail():
        raise KeyError("once")

    with pytest.raises(KeyError):
        flights.join("a", fail).result()
    assert flights.join("a", lambda: 1).result() == 1
    assert flights.join("a", lambda: 2).result() == 2
