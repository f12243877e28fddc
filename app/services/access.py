"""Admission of requests: what a key may do, looked up once and remembered until it is revoked or expires."""

import math
import os
import re
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.errors import StartFailed, ValiantError
from app.faults import Fault
from app.project_context import DEFAULT_PROJECT
from app.schemas.keys import ApiKey, Caller, Scope
from app.schemas.projects import DEFAULT_NAME
from app.services.key_tokens import digest_of, is_token
from app.services.request_rates import Allowance, RequestRates
from app.settings import Settings
from app.store.keys import StoredKey
from app.store.unit_of_work import WorkFactory

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

ANY_SCOPE = frozenset(Scope)
PUBLIC = frozenset[Scope]()
LOOKS_PER_SECOND = 50
"""Lookups of keys that this process does not know: whoever guesses keys does not load the database."""
UNKNOWN_SECONDS = 1.0
"""Time for which a key that does not exist is remembered."""
MOST_UNKNOWN = 1024
USED_SECONDS = 60.0
"""Time between two notes of which keys were used."""
log = structlog.get_logger(__name__)


class CredentialInvalid(ValiantError):
    code, status, title = "credential_invalid", 401, "The key is not valid"
    remedy = "See that the key is whole; if it was revoked, an administrator of the project creates another."


class CredentialExpired(ValiantError):
    code, status, title = "credential_expired", 401, "The key has expired"
    remedy = "An administrator of the project creates another, or rotates keys before they expire."


class ScopeMissing(ValiantError):
    code, status, title = "scope_missing", 403, "The key may not do this"
    remedy = "Use a key that has a scope named in errors."


class ModelNotCovered(ValiantError):
    """The same whether or not there is such a model."""

    code, status, title = "model_not_covered", 403, "The key is for other models"
    remedy = "Use a key whose patterns of models match, or one for all models: GET /v1/me shows what a key is for."


class AuthUnavailable(ValiantError):
    code, status, title = "auth_unavailable", 503, "The key cannot be checked at present"
    remedy = "Send the request again after the time in Retry-After."

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail, headers={"Retry-After": "1"})


class Pass:
    """The rights of a key: one object for all requests that bring it, so that a change of it reaches them all."""

    __slots__ = ("expires", "key", "live", "models", "project", "project_id", "rate", "scopes", "used")

    def __init__(self, stored: StoredKey | None, rate: Allowance) -> None:
        """stored: None is anyone, where no key is needed; rate: that of the project."""
        self.key: ApiKey | None = None
        self.project_id, self.project = DEFAULT_PROJECT, DEFAULT_NAME
        self.scopes: frozenset[str] = ANY_SCOPE
        self.models: re.Pattern[str] | None = None
        self.live, self.used, self.expires, self.rate = True, False, math.inf, rate
        if stored is not None:
            key = stored.key
            self.project_id, self.project, self.scopes = stored.project_id, key.project, frozenset(key.scopes)
            self.models = None if key.models is None else _pattern(tuple(key.models))
            self.update(key)

    def update(self, key: ApiKey) -> None:
        """Take over that the key is revoked, and its expiry."""
        self.key, self.live, self.expires = key, key.revoked_at is None, key.expires_at.timestamp()

    @property
    def key_id(self) -> str | None:
        """The id that what this caller does is noted with."""
        return None if self.key is None else str(self.key.id)

    def described(self) -> Caller:
        scopes = sorted(self.scopes)
        if self.key is None:
            return Caller(project=self.project, scopes=scopes)
        key = self.key
        return Caller(
            key=key.id,
            name=key.name,
            project=self.project,
            scopes=scopes,
            models=key.models,
            expires_at=key.expires_at,
        )

    def allow(self, needs: frozenset[Scope], model: str | None) -> None:
        """needs: of these one; model: that of the route, None: it has none. Raises ScopeMissing, ModelNotCovered."""
        if self.scopes.isdisjoint(needs):
            faults = [Fault("/header/Authorization", f"The scope {scope} is needed.") for scope in sorted(needs)]
            raise ScopeMissing(faults=faults)
        if self.models is not None and needs != ANY_SCOPE and not (model and self.models.fullmatch(model)):
            raise ModelNotCovered


def needs_keys(settings: Settings) -> bool:
    return settings.auth == "keys"


class Access:
    """Passes of the keys that callers have sent, by a digest with which nobody outside this process can calculate.

    A thread reads every `revocation_seconds` what has changed. While it cannot, passes are good for
    `auth_stale_seconds` from the last time it could.
    """

    def __init__(
        self, work: WorkFactory, rates: RequestRates, settings: Settings, clock: Callable[[], float] = time.time
    ) -> None:
        self.anyone = Pass(None, Allowance())
        """The caller of a service that needs none."""
        self._rates = rates
        self._work, self._settings, self._clock = work.across_projects, settings, clock
        self._hash = blake2b(digest_size=16, key=os.urandom(32))
        self._passes: dict[bytes, Pass] = {}
        self._by_key: dict[UUID, Pass] = {}
        self._unknown: dict[bytes, float] = {}
        """Digest → the time until which it counts as unknown."""
        self._lock = threading.Lock()
        self._looks, self._second = 0, 0
        self._fresh_until = 0.0
        self._seen: datetime | None = None
        self._used_at = clock()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Follow the changes of keys, in a process that serves requests. Raises StartFailed if policies do not hold."""
        if needs_keys(self._settings):
            self._demand_policies()
            threading.Thread(target=self._follow, name="keys", daemon=True).start()
            self._rates.start()

    def close(self) -> None:
        self._rates.close()
        self._stopped.set()

    def known(self, token: bytes) -> Pass | None:
        return self._passes.get(self._digest(token))

    def check(self, own: Pass) -> None:
        """With every request. Raises CredentialInvalid, CredentialExpired, AuthUnavailable, RateLimited."""
        now = self._clock()
        if not own.live:
            raise _refusal(CredentialInvalid)
        if now >= own.expires:
            raise _refusal(CredentialExpired)
        if now >= self._fresh_until:
            raise AuthUnavailable
        own.rate.take()
        own.used = True

    def find(self, token: bytes) -> Pass:
        """From the database. Raises CredentialInvalid, AuthUnavailable."""
        digest = self._digest(token)
        if not is_token(token) or self._unknown.get(digest, 0.0) > self._clock():
            raise _refusal(CredentialInvalid)
        self._count_look()
        try:
            with self._work() as w:
                stored, rates = w.keys.find(digest_of(token)), w.projects.request_rates()
        except SQLAlchemyError as error:
            log.warning("key_not_read", error=type(error).__name__)
            raise AuthUnavailable from error
        with self._lock:
            self._fresh_until = self._clock() + self._settings.auth_stale_seconds
            if stored is None:
                if len(self._unknown) >= MOST_UNKNOWN:
                    self._unknown.clear()
                self._unknown[digest] = self._clock() + UNKNOWN_SECONDS
                raise _refusal(CredentialInvalid)
            rate = self._rates.of(stored.project_id)
            found = self._by_key.setdefault(stored.key.id, Pass(stored, rate))
            self._passes[digest] = found
            self._rates.limit(rates)
            return found

    def refresh(self) -> None:
        """Read what has changed, and note which keys were used."""
        used = []
        if self._clock() - self._used_at >= USED_SECONDS:
            self._used_at = self._clock()
            used = [key_id for key_id, own in list(self._by_key.items()) if own.used]
        with self._work() as w:
            now, changed, rates = w.keys.now(), w.keys.changed(self._seen), w.projects.request_rates()
            if used:
                w.keys.used(used)
        for key_id in used:
            self._by_key[key_id].used = False
        with self._lock:
            for key in changed:
                if own := self._by_key.get(key.id):
                    own.update(key)
            self._rates.limit(rates)
            self._seen, self._fresh_until = now, self._clock() + self._settings.auth_stale_seconds

    def _demand_policies(self) -> None:
        """While the database is away there is nothing to protect."""
        try:
            with self._work() as w:
                held = w.keys.is_bound_by_policies()
        except SQLAlchemyError as error:
            log.warning("policies_not_checked", error=type(error).__name__)
            return
        if not held:
            raise StartFailed(
                "The roles valiant_app and valiant_queue must be neither superusers nor BYPASSRLS: projects would see "
                "each other's rows. Mend them: alter role valiant_app nosuperuser nobypassrls, and valiant_queue alike."
            )

    def _follow(self) -> None:
        while not self._stopped.wait(self._settings.revocation_seconds):
            try:
                self.refresh()
            except SQLAlchemyError as error:
                log.warning("keys_not_read", error=type(error).__name__)

    def _digest(self, token: bytes) -> bytes:
        hashed = self._hash.copy()
        hashed.update(token)
        return hashed.digest()

    def _count_look(self) -> None:
        """Raises AuthUnavailable."""
        with self._lock:
            second = int(self._clock())
            if second != self._second:
                self._second, self._looks = second, 0
            self._looks += 1
            if self._looks > LOOKS_PER_SECOND:
                raise AuthUnavailable("Too many keys that are not known here were sent within a second.")


def _refusal(kind: type[ValiantError]) -> ValiantError:
    return kind(headers={"WWW-Authenticate": 'Bearer realm="valiant", error="invalid_token"'})


@lru_cache(1024)
def _pattern(models: tuple[str, ...]) -> re.Pattern[str]:
    """`*` stands for any characters."""
    return re.compile("|".join(".*".join(map(re.escape, one.split("*"))) for one in models))
