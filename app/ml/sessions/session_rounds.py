"""Rounds of a session: rows are read, predicted and learned in their order."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from app.base.errors import InvalidData, InvalidRequest
from app.base.faults import Fault, place
from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.labels import UNKNOWN, Class, codes_of
from app.ml.online_learner import Rounds
from app.ml.sessions.session_errors import TooManyOpenRounds
from app.ml.sessions.session_spec import OnlineSession
from app.ml.sessions.session_state import OpenRounds, SessionState, counted
from app.ml.tables.cells import flaw
from app.ml.tables.rows import MAX_FAULTS, read_rows

MOST_ROWS = 10_000
"""Rows of a request."""
MOST_OPEN = 1000
"""Rounds that may wait for their labels."""
MAX_NUMBER = 1e50
"""Numbers whose sums and products stay finite."""
PREDICTING, KEEPING = 0, 1
"""Streams of draws."""


class LateLabel(NamedTuple):
    """The label of a round that was predicted before."""

    number: int
    label: Class


class Incoming(NamedTuple):
    """Rows of a request."""

    x: Matrix
    labels: Vector
    """(n,) NaN where there is none."""


class Outcome(NamedTuple):
    """The session after a request, and the predictions of its rows."""

    state: SessionState
    first: int
    """Number of the first row's round."""
    predictions: list[Class]


def play(session: OnlineSession, state: SessionState, late: Sequence[LateLabel], body: Mapping[str, Any]) -> Outcome:
    """Learn the labels of earlier rounds, then predict and learn the rows.

    body: rows in one of the forms of a prediction; empty for none. Raises InvalidRequest, InvalidData, BodyTooLarge,
    TooManyOpenRounds: then nothing was learned.
    """
    waiting, tally = state.rest.waiting, state.rest.tally
    places, labels_late = _late(session, waiting, late)
    rows = _read(session, body) if body else Incoming(np.zeros((0, len(session.columns))), np.zeros(0))
    left = np.setdiff1d(np.arange(waiting.numbers.size), places)
    new = tally.rounds + 1 + np.arange(len(rows.x))
    unlabelled = np.isnan(rows.labels)
    if left.size + unlabelled.sum() > MOST_OPEN:
        raise TooManyOpenRounds(f"{left.size} rounds wait for their labels; {MOST_OPEN} may.")
    x = np.ascontiguousarray(np.vstack([waiting.x[places], rows.x]))
    labels = np.concatenate([labels_late, rows.labels])
    scores = np.concatenate([waiting.scores[places], np.full(len(new), np.nan)])
    numbers = np.concatenate([waiting.numbers[places], new])
    late_by = np.cumsum(left.size + np.cumsum(unlabelled) - unlabelled > 0)
    delayed = tally.delayed + np.concatenate([np.zeros(len(places), np.intp), late_by])
    draws = _draws(session.spec.seed, numbers, len(new), labels, tally.learned)
    done = session.learner.play(session.spec.learner, state.learner, Rounds(x, labels, scores, draws, tally.learned))
    record = counted(state.rest, done, labels, delayed, numeric=session.numeric)
    open_rows = len(places) + np.flatnonzero(unlabelled)
    record = record._replace(
        tally=record.tally._replace(rounds=tally.rounds + len(new)),
        waiting=OpenRounds(
            np.append(waiting.numbers[left], numbers[open_rows]),
            np.vstack([waiting.x[left], x[open_rows]]),
            np.append(waiting.scores[left], scores[open_rows]),
        ),
        low=np.minimum(record.low, rows.x.min(axis=0, initial=np.inf)),
        high=np.maximum(record.high, rows.x.max(axis=0, initial=-np.inf)),
    )
    predictions = _labelled(session, done.predictions[len(places) :])
    return Outcome(SessionState(done.state, record), tally.rounds + 1, predictions)


def _draws(seed: int, numbers: Labels, new: int, labels: Vector, turn: int) -> Matrix:
    """(n, 2): for predictions by the numbers of the rounds, the last `new` of which follow each other; for what is
    kept by the order of learning.
    """
    is_labelled = ~np.isnan(labels)
    draws, late = np.zeros((len(numbers), 2)), len(numbers) - new
    for row, number in enumerate(numbers[:late].tolist()):
        draws[row, 0] = _stream(seed, PREDICTING, number, 1)[0]
    if new:
        draws[late:, 0] = _stream(seed, PREDICTING, int(numbers[late]), new)
    draws[is_labelled, 1] = _stream(seed, KEEPING, turn, int(is_labelled.sum()))
    return draws


def _stream(seed: int, which: int, start: int, count: int) -> Vector:
    """Draws from the `start`-th on of a stream that belongs to the seed."""
    bits = np.random.PCG64([seed, which])
    return np.random.Generator(bits.advance(start)).random(count)


def _labelled(session: OnlineSession, predictions: Vector) -> list[Class]:
    classes = session.classes
    values: list[Any] = predictions.tolist()
    return values if classes is None else [classes[int(code)] for code in values]


def _late(session: OnlineSession, waiting: OpenRounds, late: Sequence[LateLabel]) -> tuple[Any, Vector]:
    """Places of the rounds among those that wait, and their labels. Raises InvalidRequest."""
    positions = {number: position for position, number in enumerate(waiting.numbers.tolist())}
    faults, places = [], []
    for index, (number, label) in enumerate(late):
        if number in positions:
            places.append(positions.pop(number))
        else:
            detail = "No open round has this number: it has its label already, or was never predicted."
            faults.append(Fault(f"/labels/{index}/number", detail, "not_open"))
        label_flaw = flaw(session.label_column, label)
        if label_flaw is not None:
            faults.append(Fault(f"/labels/{index}/label", label_flaw.detail, label_flaw.code))
    values = _codes(session, [label for _, label in late])
    if not faults:
        faults = [Fault(f"/labels/{index}/label", text, code) for index, text, code in _unfit(session, values)]
    if faults:
        raise InvalidRequest(faults=faults[:MAX_FAULTS])
    return np.array(places, np.intp), values


def _read(session: OnlineSession, body: Mapping[str, Any]) -> Incoming:
    """Raises InvalidRequest, BodyTooLarge, InvalidData with the place of each fault."""
    target, columns = session.spec.target, [*session.columns]
    if labelled := _has(body, target):
        columns.append(session.label_column)
        body = _filled(body, target)
    incoming = read_rows(body, columns, max_rows=MOST_ROWS)
    x = session.preparation.raw(incoming.table)
    labels = np.full(len(x), np.nan)
    if labelled:
        table: Any = incoming.table
        labels = _codes(session, table.column(target).to_pylist())
    unfit = [
        (row, session.inputs.names[column], TOO_LARGE) for row, column in np.argwhere(np.abs(x) > MAX_NUMBER).tolist()
    ]
    faults = [_fault(body, row, name, text, "too_large") for row, name, text in unfit]
    faults += [_fault(body, row, target, text, code) for row, text, code in _unfit(session, labels)]
    if faults:
        raise InvalidData(faults=faults[:MAX_FAULTS])
    return Incoming(x, labels)


TOO_LARGE = f"Numbers may not exceed {MAX_NUMBER:g}: scale them."


def _codes(session: OnlineSession, labels: Sequence[Any]) -> Vector:
    """(n,) labels as the learner has them; NaN where there is none, infinite where it is no label of the session."""
    is_labelled = np.array([label is not None for label in labels], np.bool_)
    values = np.full(len(labels), np.nan)
    present = [label for label in labels if label is not None]
    if session.classes is None:
        values[is_labelled] = present
    else:
        codes = codes_of(present, session.classes)
        values[is_labelled] = np.where(codes == UNKNOWN, np.inf, codes)
    return values


def _unfit(session: OnlineSession, values: Vector) -> list[tuple[int, str, str]]:
    """Places of values that are no label, each with a sentence and a code."""
    if session.classes is None:
        return [(row, TOO_LARGE, "too_large") for row in np.flatnonzero(np.abs(values) > MAX_NUMBER).tolist()]
    text = "It is none of the two labels of the session."
    return [(row, text, "unknown_label") for row in np.flatnonzero(np.isinf(values)).tolist()]


def _has(body: Mapping[str, Any], target: str) -> bool:
    if "rows" in body:
        rows = body["rows"] if isinstance(body["rows"], list) else []
        return any(isinstance(row, dict) and target in row for row in rows)
    return target in (body.get("columns") or ())


def _filled(body: Mapping[str, Any], target: str) -> Mapping[str, Any]:
    """Rows that lack the label have a null."""
    if "rows" not in body:
        return body
    rows = [row if not isinstance(row, dict) or target in row else row | {target: None} for row in body["rows"]]
    return {"rows": rows}


def _fault(body: Mapping[str, Any], row: int, name: str, text: str, code: str) -> Fault:
    if "rows" in body:
        return Fault(place("rows", row, name), text, code)
    return Fault(place("data", row, body["columns"].index(name)), text, code)
