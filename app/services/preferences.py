"""Preferences: a person compares candidates, and the weights of goals follow; each comparison is taken exactly once.

Comparisons are appended under a lock on their row, with the revision that took them. All else is computed from them
when it is read, so that a request sent again returns the same response, whatever came after.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple
from uuid import UUID

from app.base.errors import IdempotencyConflict, InvalidRequest, PreferenceChanged
from app.base.faults import Fault, place
from app.ml.decisions.front_candidates import front_candidates
from app.ml.decisions.goal import LIMITS
from app.ml.decisions.preference_study import (
    Candidate,
    LearnedWeights,
    PairComparison,
    PreferenceGoal,
    PreferenceStudy,
)
from app.ml.jobs.optimise import OptimiseRequest, OptimiseResult
from app.schemas.preferences import (
    MOST_CANDIDATES,
    MOST_COMPARISONS,
    CandidateUtility,
    ComparisonsRequest,
    GoalWeight,
    LearnedPreferences,
    NextPair,
    Preference,
    PreferenceDetail,
    PreferencePage,
    PreferenceSpec,
)
from app.store.base.new_ids import uuid7
from app.store.preferences.preferences import KeptRequests, StoredPreference
from app.store.unit_of_work import Work, WorkFactory

KEYS = 256
"""Idempotency keys of the last requests that are remembered."""
SECONDS = 5.0
"""Time during which a decision is repeated while the database does not respond."""
TWO_SIDED = NormalDist().inv_cdf(0.975)


class _Opened(NamedTuple):
    """Goals and candidates of a request, given or those of a job."""

    goals: Sequence[PreferenceGoal]
    candidates: Sequence[Candidate]
    optimise: Mapping[str, Any] | None


class Preferences:
    def __init__(self, work: WorkFactory) -> None:
        self._work = work

    def open(self, spec: PreferenceSpec, *, key: str | None) -> PreferenceDetail:
        """Raises InvalidRequest with every fault, JobNotFound, IdempotencyConflict."""
        made, preference_id = self._made(spec), uuid7()
        request_hash = _fingerprint(spec.model_dump(mode="json"))

        def add(w: Work) -> StoredPreference:
            if key is not None:
                w.preferences.lock_key(key)
                if (opened := w.preferences.opened(key)) is not None:
                    if opened[1] != request_hash:
                        raise IdempotencyConflict
                    return w.preferences.get(opened[0])
            w.audit.note_created(f"/v1/preferences/{preference_id}")
            return w.preferences.add(
                preference_id,
                name=spec.name,
                goals=[goal.model_dump() for goal in made.goals],
                l2=spec.l2,
                optimise=made.optimise,
                candidates=[candidate.model_dump() for candidate in made.candidates],
                request_hash=request_hash,
                key=key,
            )

        return _detail(self._work.retry(add, seconds=SECONDS))

    def page(self, limit: int, cursor: str | None = None) -> PreferencePage:
        with self._work() as w:
            items, next_cursor = w.preferences.page(limit, cursor)
        return PreferencePage(items=[Preference(**_described(item)) for item in items], next_cursor=next_cursor)

    def get(self, preference_id: UUID) -> PreferenceDetail:
        """Raises PreferenceNotFound."""
        with self._work() as w:
            stored = w.preferences.get(preference_id)
        return _detail(stored)

    def delete(self, preference_id: UUID) -> None:
        """Raises PreferenceNotFound."""
        with self._work() as w:
            w.preferences.delete(preference_id)

    def compare(self, preference_id: UUID, request: ComparisonsRequest, *, key: str | None) -> LearnedPreferences:
        """Take comparisons once. Raises InvalidRequest with every fault, PreferenceNotFound, PreferenceChanged,
        IdempotencyConflict: then nothing was taken now.
        """
        if request.revision is None and key is None:
            detail = "Send the revision, or an Idempotency-Key: else a retry would be taken twice."
            raise InvalidRequest(faults=[Fault("/revision", detail, "missing")])
        request_hash = _fingerprint(request.model_dump(mode="json"))

        def take(w: Work) -> StoredPreference:
            stored, earlier = w.preferences.locked(preference_id)
            before = _taken(stored, earlier, request, key, request_hash)
            if before is not None:
                return stored.at(before)
            if faults := [*_faults(stored, request)]:
                raise InvalidRequest(faults=faults)
            return w.preferences.append(
                preference_id,
                [candidate.model_dump() for candidate in request.candidates],
                [comparison.model_dump() for comparison in request.comparisons],
                _kept(earlier, key, stored.revision + 1, request_hash),
            )

        return _learned(self._work.retry(take, seconds=SECONDS))

    def _made(self, spec: PreferenceSpec) -> _Opened:
        """Raises InvalidRequest, JobNotFound."""
        goals, candidates = spec.goals, spec.candidates
        if spec.job is not None and goals is None and candidates is None:
            return self._front(spec.job)
        if spec.job is not None or goals is None or candidates is None:
            raise InvalidRequest(faults=[Fault("", "Give goals and candidates, or a job alone.")])
        names = [goal.name for goal in goals]
        faults = [
            Fault(f"/goals/{index}/name", "Another goal has the same name.", "duplicate")
            for index, name in enumerate(names)
            if names.count(name) > 1
        ]
        faults += _value_faults(names, candidates)
        if faults:
            raise InvalidRequest(faults=faults)
        return _Opened(goals, candidates, None)

    def _front(self, reference: UUID | str) -> _Opened:
        with self._work() as w:
            job = w.jobs.get(w.jobs.identify(reference))
            accepted = w.jobs.accepted(job.id)
        if not isinstance(job.result, OptimiseResult) or accepted is None:
            raise InvalidRequest(faults=[Fault("/job", "It is no job of the kind optimise that has succeeded.")])
        request = OptimiseRequest.model_validate(accepted.request, strict=False)
        front = front_candidates(request.goals, job.result.solutions)
        if min(len(front.goals), len(front.candidates)) < 2:
            detail = "It has no front: two solutions, and two goals that are no limits, are the least to compare."
            raise InvalidRequest(faults=[Fault("/job", detail, "no_front")])
        again = request.model_dump(mode="json", exclude_defaults=True, exclude={"name"})
        return _Opened(front.goals, front.candidates, again | {"combine": "weighted_sum"})


def _value_faults(names: Sequence[str], candidates: Sequence[Candidate]) -> Iterator[Fault]:
    for index, candidate in enumerate(candidates):
        missing = [name for name in names if name not in candidate.values]
        if missing:
            yield Fault(f"/candidates/{index}/values", f"It has no value of {', '.join(missing)}.", "missing")
        for name in candidate.values:
            if name not in names:
                yield Fault(place("candidates", index, "values", name), "There is no such goal.", "unknown_goal")


def _faults(stored: StoredPreference, request: ComparisonsRequest) -> Iterator[Fault]:
    if not request.comparisons and not request.candidates:
        yield Fault("", "Send comparisons, candidates or both.", "missing")
    yield from _value_faults([goal["name"] for goal in stored.goals], request.candidates)
    count = len(stored.candidates) + len(request.candidates)
    if count > MOST_CANDIDATES:
        yield Fault("/candidates", f"They would be {count}; at most {MOST_CANDIDATES} are compared.", "too_many")
    if len(stored.comparisons) + len(request.comparisons) > MOST_COMPARISONS:
        yield Fault("/comparisons", f"At most {MOST_COMPARISONS} are taken.", "too_many")
    for index, comparison in enumerate(request.comparisons):
        for end, number in (("first", comparison.first), ("second", comparison.second)):
            if number >= count:
                yield Fault(f"/comparisons/{index}/{end}", f"Candidates have numbers from 0 to {count - 1}.", "unknown")
        if comparison.first == comparison.second:
            yield Fault(f"/comparisons/{index}/second", "A candidate is compared with another one.")


def _taken(
    stored: StoredPreference, requests: KeptRequests, request: ComparisonsRequest, key: str | None, request_hash: str
) -> int | None:
    """The revision that this request made before; None: it is to be taken. Raises where it is refused."""
    if key is not None and key in requests.keys:
        revision, earlier_hash = requests.keys[key]
        if earlier_hash != request_hash:
            raise IdempotencyConflict
        return int(revision)
    if request.revision in {None, stored.revision}:
        return None
    if key is None and request.revision == stored.revision - 1 and requests.last_hash == request_hash:
        return stored.revision
    detail = f"It must be {stored.revision}."
    raise PreferenceChanged(f"They have revision {stored.revision}.", faults=[Fault("/revision", detail, "stale")])


def _kept(requests: KeptRequests, key: str | None, revision: int, request_hash: str) -> KeptRequests:
    keys = dict(requests.keys)
    if key is not None:
        keys[key] = [revision, request_hash]
    newest = sorted(keys, key=lambda key_: keys[key_][0])[-KEYS:]
    return KeptRequests({key_: keys[key_] for key_ in newest}, request_hash)


def _described(stored: StoredPreference) -> dict[str, Any]:
    return {
        "id": stored.id,
        "name": stored.name,
        "created_at": stored.created_at,
        "updated_at": stored.updated_at,
        "revision": stored.revision,
        "goals": [goal["name"] for goal in stored.goals],
        "candidates": len(stored.candidates),
        "comparisons": len(stored.comparisons),
    }


def _detail(stored: StoredPreference) -> PreferenceDetail:
    comparisons = [PairComparison.model_validate(comparison) for _, comparison in stored.comparisons]
    return PreferenceDetail(**_described(stored), l2=stored.l2, given=comparisons, learned=_learned(stored))


def _learned(stored: StoredPreference) -> LearnedPreferences:
    study = PreferenceStudy(
        [PreferenceGoal.model_validate(goal) for goal in stored.goals],
        [Candidate.model_validate(candidate) for _, candidate in stored.candidates],
        [PairComparison.model_validate(comparison) for _, comparison in stored.comparisons],
        stored.l2,
    )
    learned = study.learned()
    pair = learned.next_pair()
    return LearnedPreferences(
        preference=stored.id,
        revision=stored.revision,
        comparisons=len(stored.comparisons),
        contradicted=learned.contradicted,
        weights=[*_weights(study.goals, learned)],
        candidates=[*_candidates(study.candidates, learned)],
        next_pair=None if pair is None else NextPair(**pair._asdict()),
        optimise=None if stored.optimise is None else _weighted(stored.optimise, learned.mean.tolist()),
    )


def _weights(goals: Sequence[PreferenceGoal], learned: LearnedWeights) -> Iterator[GoalWeight]:
    numbers = (learned.mean.tolist(), learned.errors.tolist(), learned.positive.tolist(), learned.shares.tolist())
    for goal, weight, error, positive, share in zip(goals, *numbers, strict=True):
        yield GoalWeight(
            name=goal.name,
            aim=goal.aim,
            value=goal.value,
            weight=weight,
            standard_error=error,
            lower=weight - TWO_SIDED * error,
            upper=weight + TWO_SIDED * error,
            probability_positive=positive,
            share=share,
        )


def _candidates(candidates: Sequence[Candidate], learned: LearnedWeights) -> Iterator[CandidateUtility]:
    for number in (-learned.utilities).argsort(kind="stable").tolist():
        candidate = candidates[number]
        yield CandidateUtility(
            number=number,
            values=candidate.values,
            row=candidate.row,
            utility=float(learned.utilities[number]),
            probability_best=float(learned.best[number]),
        )


def _weighted(request: Mapping[str, Any], weights: Sequence[float]) -> dict[str, Any]:
    """The request of a job with the weights of its goals that are no limits."""
    left = iter(weights)
    goals = [goal if goal.get("aim") in LIMITS else goal | {"weight": next(left)} for goal in request["goals"]]
    return {**request, "goals": goals}


def _fingerprint(request: object) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
