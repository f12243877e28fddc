"""Online sessions: each request with rounds is learned exactly once, whoever retries and whatever dies.

A request names the revision that it continues, or has an Idempotency-Key, or both. The rounds are played outside any
transaction, and the new state is written by compare-and-set on the revision, together with the response: who comes
second plays again, or is refused.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any
from uuid import UUID

from app.base.errors import IdempotencyConflict, InvalidRequest
from app.base.faults import Fault
from app.ml.models.model import digest
from app.ml.sessions.session_errors import (
    RevisionConflict,
    RoundsApplied,
)
from app.ml.sessions.session_model import PublishedModel, publish
from app.ml.sessions.session_rounds import LateLabel, play
from app.ml.sessions.session_spec import OnlineSession, SessionSpec
from app.ml.sessions.session_state import SessionState, decode, encode, first_state
from app.schemas.sessions import (
    HypothesisBound,
    Publication,
    PublishRequest,
    RoundCounts,
    RoundCurve,
    RoundsRequest,
    RoundsResult,
    Session,
    SessionDetail,
    SessionPage,
)
from app.store.base.new_ids import uuid7
from app.store.sessions.sessions import Advance, HeldSession, StoredSession
from app.store.unit_of_work import Work, WorkFactory

KEYS = 256
"""Idempotency keys of the last requests that a session remembers."""
TRIES = 100
"""Attempts of a request that names no revision, while others come first."""
SECONDS = 5.0
"""Time during which a decision is repeated while the database does not respond."""


class Sessions:
    def __init__(self, work: WorkFactory) -> None:
        self._work = work
        self._opened = lru_cache(maxsize=64)(_opened)

    def open(self, spec: SessionSpec, *, key: str | None) -> Session:
        """Raises InvalidRequest with every fault, IdempotencyConflict."""
        session = OnlineSession.of(spec)
        state = first_state(session)
        written, session_id = spec.model_dump(mode="json"), uuid7()
        request_hash = _fingerprint(written)
        tally = counts(session, state).model_dump(mode="json")

        def add(w: Work) -> StoredSession:
            if key is not None:
                w.sessions.lock_key(key)
                if (opened := w.sessions.opened(key)) is not None:
                    if opened[1] != request_hash:
                        raise IdempotencyConflict
                    return w.sessions.get(opened[0])
            w.audit.note_created(f"/v1/sessions/{session_id}")
            return w.sessions.add(
                session_id, spec=written, tally=tally, state=encode(state), request_hash=request_hash, key=key
            )

        return _described(self._work.retry(add, seconds=SECONDS))

    def page(self, limit: int, cursor: str | None = None) -> SessionPage:
        with self._work() as w:
            items, next_cursor = w.sessions.page(limit, cursor)
        return SessionPage(items=[_described(item) for item in items], next_cursor=next_cursor)

    def get(self, session_id: UUID) -> SessionDetail:
        """Raises SessionNotFound."""
        with self._work() as w:
            stored, held = w.sessions.get(session_id), w.sessions.held(session_id)
        session = self._session(held)
        state = decode(session, held.state)
        fields = _described(stored._replace(revision=held.revision)).model_dump()
        points = [
            [None if math.isnan(value) else value for value in column] for column in state.rest.curve.values.T.tolist()
        ]
        mistakes, loss, regret, bound = points
        return SessionDetail.model_validate(
            fields
            | {
                "counts": counts(session, state).model_dump(),
                "spec": session.spec.model_dump(mode="json"),
                "theorem": session.learner.bound,
                "curve": RoundCurve(
                    learned=state.rest.curve.rounds.tolist(),
                    mistakes=mistakes or [],
                    loss=loss or [],
                    regret=regret or [],
                    bound=bound or [],
                ),
                "open_rounds": state.rest.waiting.numbers.tolist(),
                "summary": session.learner.summary(session.spec.learner, state.learner, session.inputs),
            }
        )

    def delete(self, session_id: UUID) -> None:
        """Raises SessionNotFound."""
        with self._work() as w:
            w.sessions.delete(session_id)

    def play(self, session_id: UUID, request: RoundsRequest, *, key: str | None) -> RoundsResult:
        """Learn the rounds once. Raises InvalidRequest, InvalidData, BodyTooLarge, TooManyOpenRounds,
        SessionNotFound, RevisionConflict, IdempotencyConflict, RoundsApplied: then nothing was learned now.
        """
        body = _body(request)
        if request.revision is None and key is None:
            detail = "Send the session's revision, or an Idempotency-Key: else a retry would be learned twice."
            raise InvalidRequest(faults=[Fault("/revision", detail, "missing")])
        request_hash = _fingerprint(request.model_dump(mode="json"))
        late = [LateLabel(label.number, label.label) for label in request.labels]
        for _ in range(TRIES):
            held = self._work.retry(lambda w: w.sessions.held(session_id), seconds=SECONDS)
            replay = _replayed(held, request, key, request_hash)
            if replay is not None:
                return replay
            session = self._session(held)
            outcome = play(session, decode(session, held.state), late, body)
            result = RoundsResult(
                session=session_id,
                revision=held.revision + 1,
                first_round=outcome.first,
                predictions=outcome.predictions,
                counts=counts(session, outcome.state),
            )
            after = _advance(held, outcome.state, result, key, request_hash)
            if self._work.retry(partial(_written, session_id, held.revision, after), seconds=SECONDS):
                return result
        raise RevisionConflict("Other writers came first each time.")

    def publish(self, session_id: UUID, request: PublishRequest) -> tuple[Publication, bool]:
        """The version, and whether it is new: the same hypothesis of the same rounds is published once.

        Raises SessionNotFound, RevisionConflict, NoHypothesis, QuotaExceeded.
        """
        held = self._work.retry(lambda w: w.sessions.held(session_id), seconds=SECONDS)
        if request.revision not in {None, held.revision}:
            raise _conflict(held.revision)
        session = self._session(held)
        made = publish(session, decode(session, held.state), request.hypothesis, name=str(session_id))

        def add(w: Work) -> tuple[Publication, bool]:
            w.sessions.held(session_id, locked=True)  # of two that publish, the second finds the first one's version
            published = w.models.published(request.model, session_id, digest(made.blob))
            version = published or w.models.add_version(
                model=request.model,
                job_id=None,
                dataset_id=None,
                session_id=session_id,
                blob=made.blob,
                report=made.report,
                golden=made.golden,
            )
            w.quotas.demand(storage_bytes=0, model_versions=0)
            w.audit.note_created(f"/v1/models/{version.model}/versions/{version.version}")
            return Publication(version=version, hypothesis=request.hypothesis, bound=_bound(made)), published is None

        return self._work.retry(add, seconds=SECONDS)

    def _session(self, held: HeldSession) -> OnlineSession:
        return self._opened(json.dumps(held.spec, sort_keys=True))


def _written(session_id: UUID, revision: int, after: Advance, w: Work) -> bool:
    return w.sessions.advance(session_id, revision, after)


def _opened(spec: str) -> OnlineSession:
    """With the tables of its class, which are made once."""
    return OnlineSession(SessionSpec.model_validate_json(spec))


def counts(session: OnlineSession, state: SessionState) -> RoundCounts:
    tally = state.rest.tally
    return RoundCounts(
        rounds=tally.rounds,
        learned=tally.learned,
        waiting=state.rest.waiting.numbers.size,
        delayed=tally.delayed,
        mistakes=None if session.numeric else tally.mistakes,
        loss=tally.loss,
        regret=None if math.isnan(tally.regret) else tally.regret,
        bound=None if math.isnan(tally.bound) else tally.bound,
        bounded=session.learner.bounded(session.spec.learner),
    )


def _described(stored: StoredSession) -> Session:
    return Session(
        id=stored.id,
        name=stored.name,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
        revision=stored.revision,
        learner=stored.spec["learner"]["name"],
        target=stored.spec["target"],
        labels=stored.spec["labels"],
        counts=RoundCounts.model_validate(stored.tally),
    )


def _body(request: RoundsRequest) -> Mapping[str, Any]:
    """The rows in one of the forms of a prediction; empty where there are none. Raises InvalidRequest."""
    values = {name: value for name in ("rows", "columns", "data") if (value := getattr(request, name)) is not None}
    if values and values.keys() not in ({"rows"}, {"columns", "data"}):
        raise InvalidRequest(faults=[Fault("", "Send rows, or columns and data, not both.")])
    if not values and not request.labels:
        raise InvalidRequest(faults=[Fault("", "Send labels of earlier rounds, rows, or columns and data.")])
    return values


def _replayed(held: HeldSession, request: RoundsRequest, key: str | None, request_hash: str) -> RoundsResult | None:
    """The response of a request that was learned before; None: it is to be learned. Raises where it is refused."""
    if key is not None and key in held.keys:
        revision, earlier_hash = held.keys[key]
        if earlier_hash != request_hash:
            raise IdempotencyConflict
        if revision != held.revision:
            raise RoundsApplied(f"They made revision {revision}; the session is at {held.revision}.")
        return RoundsResult.model_validate(held.last_response)
    if request.revision in {None, held.revision}:
        return None
    if key is None and request.revision == held.revision - 1 and held.last_hash == request_hash:
        return RoundsResult.model_validate(held.last_response)
    raise _conflict(held.revision)


def _conflict(revision: int) -> RevisionConflict:
    return RevisionConflict(
        f"It has revision {revision}.", faults=[Fault("/revision", f"It must be {revision}.", "stale")]
    )


def _advance(
    held: HeldSession, state: SessionState, result: RoundsResult, key: str | None, request_hash: str
) -> Advance:
    keys = dict(held.keys)
    if key is not None:
        keys[key] = [result.revision, request_hash]
        newest = sorted(keys, key=lambda key_: keys[key_][0])[-KEYS:]
        keys = {key_: keys[key_] for key_ in newest}
    written = result.model_dump(mode="json")
    return Advance(encode(state), written["counts"], keys, request_hash, written)


def _bound(made: PublishedModel) -> HypothesisBound | None:
    return None if made.bound is None else HypothesisBound(**made.bound._asdict())


def _fingerprint(request: object) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
