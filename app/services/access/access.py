"""Admission of requests: what a key may do, looked up once and remembered until it is revoked or expires."""

import math
import os
import threading
import time
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.base.errors import StartFailed
from app.base.settings import Settings
from app.services.access.identity_tokens import Identity, IdentityTokens
from app.services.access.key_tokens import digest_of, is_token
from app.services.access.passes import (
    AuthUnavailable,
    CredentialExpired,
    CredentialInvalid,
    Pass,
    ProjectNotCovered,
    refusal,
)
from app.services.access.request_rates import Allowance, RequestRates
from app.services.threads.lasting_threads import repeat
from app.store.access.projects import ProjectNotFound
from app.store.base.database_errors import DatabaseNotPrepared, is_not_prepared, to_log
from app.store.unit_of_work import Work, WorkFactory

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

LOOKS_PER_SECOND = 50
"""Lookups of keys that this process has not read of: whoever guesses keys does not load the database. A key that was
created meanwhile is looked up within these too, and at the latest with the next reading it is one of those read of."""
UNKNOWN_SECONDS = 1.0
"""Time for which a key that does not exist is remembered."""
MOST_UNKNOWN = 1024
AHEAD, AHEAD_SECONDS = 100, 1.0
"""Requests that may pass without a check, where a key has no limit and is good for longer than until the next reading
of the keys and these seconds."""
USED_SECONDS = 60.0
"""Time between two notes of which keys were used."""
log = structlog.get_logger(__name__)


class Access:
    """Passes of the keys that callers have sent, by a digest with which nobody outside this process can calculate.

    A thread reads every `revocation_seconds` what has changed. While it cannot, passes are good for
    `auth_stale_seconds` from the last time it could.
    """

    def __init__(
        self, work: WorkFactory, rates: RequestRates, settings: Settings, clock: Callable[[], float] = time.time
    ) -> None:
        self.anyone = Pass(Allowance())
        """The caller of a service that needs none."""
        self._rates, self._tokens = rates, IdentityTokens(settings)
        self._work, self._settings, self._clock = work.across_projects, settings, clock
        self._hash = blake2b(digest_size=16, key=os.urandom(32))
        self._passes: dict[bytes, Pass] = {}
        self._by_key: dict[UUID, Pass] = {}
        self._stored: set[bytes] = set()
        """Digests of the keys in the database, as last read: a request with one of them waits for no guess."""
        self._unknown: dict[bytes, float] = {}
        """Digest → the time until which it counts as unknown."""
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        self._looks, self._second = 0, 0
        self._fresh_until = 0.0
        self._seen: datetime | None = None
        self._used_at = clock()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Follow the changes of keys, in a process that serves requests. Raises StartFailed if policies do not hold."""
        if self._settings.needs_keys:
            self._demand_policies()
            repeat(self._follow, self._settings.revocation_seconds, self._stopped, name="keys")
            self._rates.start()
            self._tokens.start()

    def close(self) -> None:
        self._rates.close()
        self._tokens.close()
        self._stopped.set()

    def known(self, token: bytes) -> Pass | None:
        return self._passes.get(self._digest(token))

    def check(self, caller: Pass) -> None:
        """With every request, but for those that it lets pass ahead of its next look.

        Raises CredentialInvalid, CredentialExpired, AuthUnavailable, RateLimited.
        """
        now = self.demand_rights(caller)
        caller.rate.take()
        caller.used = True
        until = now + self._settings.revocation_seconds + AHEAD_SECONDS
        lasting = until < caller.expires and until < self._fresh_until
        caller.ahead = AHEAD if lasting and caller.rate.rate == math.inf else 0

    def demand_rights(self, caller: Pass) -> float:
        """The present, at which the credential is still good: without a request that counts.

        Raises CredentialInvalid, CredentialExpired, AuthUnavailable.
        """
        now = self._clock()
        if not caller.live:
            raise refusal(CredentialInvalid)
        if now >= caller.expires:
            raise refusal(CredentialExpired)
        if now >= self._fresh_until:
            raise AuthUnavailable
        return now

    def find(self, credential: bytes) -> Pass:
        """credential: a key or a token, behind which the name of a project may follow after a space.

        Raises CredentialInvalid, CredentialExpired, ProjectNotCovered, ScopeMissing, AuthUnavailable.
        """
        token, _, named = credential.partition(b" ")
        project = named.decode(errors="replace")
        if is_token(token):
            digest = digest_of(token)
            caller = self._read(token, lambda w: self._pass_of_key(w, digest), counted=digest not in self._stored)
            if project not in {"", caller.project}:
                raise ProjectNotCovered
        elif self._tokens.accepted:
            identity = self._tokens.identify(token, project)
            caller = self._read(credential, lambda w: self._pass_of_identity(w, identity), counted=False)
        else:
            raise refusal(CredentialInvalid)
        with self._lock:  # one object for each, which changes reach
            return self._passes.setdefault(self._digest(credential), caller)

    def _read(self, credential: bytes, find: Callable[[Work], Pass | None], *, counted: bool) -> Pass:
        """From the database. Raises CredentialInvalid, AuthUnavailable, DatabaseNotPrepared.

        counted: False of what nobody can guess, a stored key or a token that its provider has signed.
        """
        digest = self._digest(credential)
        if self._unknown.get(digest, 0.0) > self._clock():
            raise refusal(CredentialInvalid)
        if counted:
            self._count_look()
        try:
            with self._work() as w:
                caller, rates = find(w), w.projects.request_rates()
        except SQLAlchemyError as error:
            log.warning("key_not_read", **to_log(error))
            raise DatabaseNotPrepared if is_not_prepared(error) else AuthUnavailable from error
        with self._lock:
            self._fresh_until = self._clock() + self._settings.auth_stale_seconds
            self._rates.limit(rates)
            if caller is None:
                if len(self._unknown) >= MOST_UNKNOWN:
                    self._unknown.clear()
                self._unknown[digest] = self._clock() + UNKNOWN_SECONDS
                raise refusal(CredentialInvalid)
            return caller

    def _pass_of_key(self, w: Work, digest: bytes) -> Pass | None:
        stored = w.keys.find(digest)
        if stored is None:
            return None
        return self._by_key.setdefault(stored.key.id, Pass.of_key(stored, self._rates.of(stored.project_id)))

    def _pass_of_identity(self, w: Work, identity: Identity) -> Pass:
        """Raises ProjectNotCovered."""
        try:
            project_id = w.projects.get(identity.project).id
        except ProjectNotFound:
            raise ProjectNotCovered from None
        return Pass.of_identity(identity, project_id, self._rates.of(project_id))

    def refresh(self) -> None:
        """Read what has changed, and note which keys were used; one at a time, so that the last to end read last."""
        with self._refreshing:
            self._refresh()

    def _refresh(self) -> None:
        used = []
        if self._clock() - self._used_at >= USED_SECONDS:
            self._used_at = self._clock()
            used = [key_id for key_id, caller in list(self._by_key.items()) if caller.used]
        with self._work() as w:
            now, changed, rates = w.keys.now(), w.keys.changed(self._seen), w.projects.request_rates()
            if used:
                w.keys.used(used)
        for key_id in used:
            self._by_key[key_id].used = False
        with self._lock:
            for key, digest in changed:
                self._stored.add(digest)
                if caller := self._by_key.get(key.id):
                    caller.update(key)
            self._rates.limit(rates)
            self._drop_tokens()
            self._seen, self._fresh_until = now, self._clock() + self._settings.auth_stale_seconds

    def _drop_tokens(self) -> None:
        """Forget those that have ended: each caller comes with another soon. Refuse those signed by a withdrawn key."""
        now = self._clock()
        for digest, caller in list(self._passes.items()):
            if caller.identity is None:
                continue
            caller.live, caller.ahead = self._tokens.trusts(caller.identity.signed_by), 0
            if now >= caller.expires:
                del self._passes[digest]

    def _demand_policies(self) -> None:
        """While the database is away there is nothing to protect."""
        try:
            with self._work() as w:
                held = w.keys.is_bound_by_policies()
        except SQLAlchemyError as error:
            log.warning("policies_not_checked", **to_log(error))
            return
        if not held:
            raise StartFailed(
                "The roles valiant_app and valiant_queue must be neither superusers nor BYPASSRLS: projects would see "
                "each other's rows. Mend them: alter role valiant_app nosuperuser nobypassrls, and valiant_queue alike."
            )

    def _follow(self) -> None:
        for caller in list(self._passes.values()):
            caller.ahead = 0
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
