"""The breaker by its own clock."""

import pytest

from app.store.base.circuit_breaker import Breaker


@pytest.fixture
def clock():
    return type("Clock", (), {"now": 100.0, "__call__": lambda self: self.now})()


@pytest.fixture
def breaker(clock):
    return Breaker(failures=3, seconds=5, clock=clock)


def fail(breaker, times):
    for _ in range(times):
        assert breaker.allows()
        breaker.failed()


def test_it_opens_after_three_failures_in_a_row(breaker):
    fail(breaker, 2)
    breaker.succeeded()
    fail(breaker, 3)
    assert not breaker.allows()


def test_after_a_while_one_may_try(breaker, clock):
    fail(breaker, 3)
    clock.now += 4.9
    assert not breaker.allows()
    clock.now += 0.2
    assert breaker.allows()
    assert not breaker.allows()  # only one


def test_a_success_closes_it(breaker, clock):
    fail(breaker, 3)
    clock.now += 5.1
    assert breaker.allows()
    breaker.succeeded()
    fail(breaker, 2)
    assert breaker.allows()


def test_a_failed_trial_opens_it_for_as_long_again(breaker, clock):
    fail(breaker, 3)
    clock.now += 5.1
    fail(breaker, 1)
    clock.now += 4.9
    assert not breaker.allows()
    clock.now += 0.2
    assert breaker.allows()
