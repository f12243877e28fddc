"""Limits of requests a second on a real Redis, shared by several processes, and without it."""

import time
from uuid import uuid4

import pytest

from app.services.access.request_rates import Allowance, RateLimited, RequestRates
from app.store.models.model_cache import Cache


@pytest.fixture
def process(settings):
    """`process(rate)`: the rates of one process, and the allowance of a project that all of them share."""
    project, opened = uuid4(), []

    def start(rate, cache=None, **options):
        opened.append(cache or Cache(settings))
        rates = RequestRates(opened[-1], **options)
        allowance = rates.of(project)
        rates.limit({project: rate})
        rates.settle()
        return rates, allowance

    yield start
    for cache in opened:
        cache.close()


def taken(allowance, attempts):
    """The number of requests let through."""
    count = 0
    for _ in range(attempts):
        try:
            allowance.take()
        except RateLimited:
            continue
        count += 1
    return count


def test_without_a_limit_all_are_let_through():
    assert taken(Allowance(), 1000) == 1000


def test_those_of_a_second_may_come_at_once(process):
    _, allowance = process(50)
    assert taken(allowance, 80) == 50
    with pytest.raises(RateLimited) as refused:
        allowance.take()
    assert refused.value.headers == {
        "Retry-After": "1",
        "RateLimit": '"requests";r=0;t=1',
        "RateLimit-Policy": '"requests";q=50;w=1',
    }


def test_a_slow_limit_lets_one_through_and_says_how_long_the_next_takes(process):
    _, allowance = process(0.1)
    assert taken(allowance, 3) == 1
    with pytest.raises(RateLimited) as refused:
        allowance.take()
    assert refused.value.headers["RateLimit-Policy"] == '"requests";q=1;w=10'
    assert int(refused.value.headers["Retry-After"]) == 10


def test_processes_share_a_limit_and_owe_what_was_too_much(process):
    (first, one), (second, other) = process(0.01), process(0.01)
    assert (taken(one, 5), taken(other, 5)) == (1, 1)  # within one settling
    first.settle()
    second.settle()
    first.settle()
    assert -1.01 < one.left < -0.9  # two were let through, where there was room for one
    assert (taken(one, 5), taken(other, 5)) == (0, 0)


def test_a_changed_limit_holds_from_the_next_reading(process):
    rates, allowance = process(1)
    taken(allowance, 5)
    (project,) = rates._allowances
    rates.limit({project: 1000})
    assert taken(allowance, 5000) == 1000
    rates.limit({})
    assert taken(allowance, 5000) == 5000


def test_without_redis_each_process_has_its_part(process, settings):
    now = 100.0
    rates, allowance = process(100, Cache(settings.model_copy(update={"cache_url": None})), clock=lambda: now)
    rates.processes = 4
    assert taken(allowance, 500) == 100
    now += 0.2
    rates.settle()
    assert taken(allowance, 500) == 5
    now += 1000
    rates.settle()
    assert taken(allowance, 500) == 100  # no more than those of a second


@pytest.mark.slow
def test_three_processes_together_keep_the_rate(process):
    """Each could send ten times as much. Over seconds the rate holds within a tenth."""
    rate, seconds = 1000, 8
    processes = [process(rate) for _ in range(3)]
    assert processes[-1][0].processes >= 3
    begun = time.monotonic()
    count = 0
    while (elapsed := time.monotonic() - begun) < seconds:
        for rates, allowance in processes:
            count += taken(allowance, 1000)
            rates.settle()
        time.sleep(0.1)
    assert abs(count - rate * (elapsed + 1)) < 0.1 * rate * elapsed
