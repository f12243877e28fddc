"""Failures of online sessions."""

from app.base.errors import ValiantError


class SessionNotFound(ValiantError):
    code, status, title = "session_not_found", 404, "No such session"


class RevisionConflict(ValiantError):
    code, status, title = "revision_conflict", 409, "The session has another revision"
    remedy = "Read the session, and send the rounds with its present revision: those refused were not learned."


class RoundsApplied(ValiantError):
    code, status, title = "rounds_applied", 409, "The rounds of this Idempotency-Key were learned before"
    remedy = "Go on: only the response of the last request is kept. Take a fresh key for other rounds."


class TooManyOpenRounds(ValiantError):
    code, status, title = "too_many_open_rounds", 409, "Too many rounds wait for their labels"
    remedy = "Send labels of rounds that were predicted before, then the further rows."


class NoHypothesis(ValiantError):
    code, status, title = "no_hypothesis", 409, "The session has no such hypothesis"
    remedy = "Play rounds with labels first, or publish the last hypothesis, a random round or the longest survivor."
