"""Limits of requests a second: a process counts what it lets through, and settles it with the others in Redis.

What a project may still send is one time in Redis (the generic cell rate algorithm, as in networks of ATM cells): that
at which all that was let through would have been due. A process lets requests through up to what was left when it last
looked. So several may let through too many within a tenth of a second; it is owed then, and the average holds.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping
from uuid import UUID, uuid4

from redis import Redis

from app.base.errors import ValiantError
from app.services.threads.lasting_threads import repeat
from app.store.models.model_cache import Cache

SETTLE_SECONDS = 0.1
SILENT_SECONDS = 10.0
"""A process that has not settled for so long shares no limit any more."""
PROCESSES = "valiant:rate:processes"
SETTLE = """
local time = redis.call('TIME')
local now, interval, burst, used = time[1] + time[2] / 1e6, 1 / ARGV[1], ARGV[2] / ARGV[1], tonumber(ARGV[3])
local due = math.max(tonumber(redis.call('GET', KEYS[1])) or now, now) + used * interval
if used > 0 then
    redis.call('SET', KEYS[1], string.format('%.6f', due), 'PX', math.ceil(1000 * (due - now)) + 1000)
end
return string.format('%.6f', (now + burst - due) / interval)
"""
"""Rate, burst and what was let through, to what is left: less than none where more than that is owed."""


class RateLimited(ValiantError):
    code, status, title = "rate_limited", 429, "The project sends too many requests"
    remedy = "Send the request again after the time in Retry-After, or have an operator raise requests_per_second."


class Allowance:
    """Requests of one project that this process may let through until it next settles."""

    __slots__ = ("given", "left", "rate")

    def __init__(self) -> None:
        """Without a limit."""
        self.rate = self.given = self.left = math.inf

    @property
    def burst(self) -> float:
        """Requests that may come at once: those of a second."""
        return max(1.0, self.rate)

    def limit(self, rate: float) -> None:
        """rate: infinite where there is no limit."""
        if rate != self.rate:
            self.rate = rate
            self.given = self.left = self.burst

    def take(self) -> None:
        """Raises RateLimited."""
        if self.left < 1:
            raise self._refusal()
        self.left -= 1

    def settled(self, left: float) -> None:
        """left: by the account of all processes."""
        self.given = self.left = left

    def _refusal(self) -> RateLimited:
        seconds = math.ceil(max(1.0, (1 - self.left) / self.rate))
        policy = f'"requests";q={self.burst:.0f};w={math.ceil(self.burst / self.rate)}'
        limit = f'"requests";r=0;t={seconds}'
        return RateLimited(headers={"Retry-After": str(seconds), "RateLimit": limit, "RateLimit-Policy": policy})


class RequestRates:
    """Allowances of the projects whose keys this process knows."""

    def __init__(self, cache: Cache, clock: Callable[[], float] = time.monotonic) -> None:
        self._cache, self._clock = cache, clock
        self._allowances: dict[UUID, Allowance] = {}
        self._own = uuid4().hex
        self._settled_at = clock()
        self.processes = 1
        """Processes among which a limit is shared while Redis is away."""
        self._stopped = threading.Event()

    def start(self) -> None:
        repeat(self.settle, SETTLE_SECONDS, self._stopped, name="rates")

    def close(self) -> None:
        self._stopped.set()

    def of(self, project_id: UUID) -> Allowance:
        """The same object at all times."""
        return self._allowances.setdefault(project_id, Allowance())

    def limit(self, rates: Mapping[UUID, float]) -> None:
        """Requests a second of the projects that are limited."""
        for project_id, allowance in list(self._allowances.items()):
            allowance.limit(rates.get(project_id, math.inf))

    def settle(self) -> None:
        """With the other processes; while Redis is away each lets its part of the limits through."""
        now = self._clock()
        seconds, self._settled_at = now - self._settled_at, now
        limited = {key: allowance for key, allowance in list(self._allowances.items()) if allowance.rate < math.inf}
        if not limited:
            return
        used = {key: allowance.given - allowance.left for key, allowance in limited.items()}
        settled = self._cache.attempt(lambda redis: self._report(redis, limited, used))
        for key, allowance in limited.items():
            if settled is None:
                share = allowance.rate * seconds / self.processes
                allowance.settled(min(allowance.burst, allowance.left + share))
            else:
                allowance.settled(settled[key])

    def _report(
        self, redis: Redis, limited: Mapping[UUID, Allowance], used: Mapping[UUID, float]
    ) -> Mapping[UUID, float]:
        now = time.time()
        with redis.pipeline(transaction=False) as pipe:
            pipe.zadd(PROCESSES, {self._own: now})
            pipe.zremrangebyscore(PROCESSES, 0, now - SILENT_SECONDS)
            pipe.zcard(PROCESSES)
            for key, allowance in limited.items():
                pipe.eval(SETTLE, 1, f"valiant:rate:{key}", allowance.rate, allowance.burst, used[key])
            _, _, self.processes, *left = pipe.execute()
        return dict(zip(limited, map(float, left), strict=True))
