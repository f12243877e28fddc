"""State of a session: its learner, counts, a curve of bounded size, and rounds whose labels have not come."""

from typing import Any, NamedTuple

import numpy as np

from app.base.errors import CorruptModel
from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.models import safetensors_format, state_format
from app.ml.online_learner import Played
from app.ml.sessions.session_spec import OnlineSession

FORMAT = 1
MOST_POINTS = 256
"""Points of a curve."""


class Tally(NamedTuple):
    """Counts of the rounds so far."""

    rounds: int = 0
    learned: int = 0
    """Rounds whose label has come."""
    delayed: int = 0
    """Rounds that were predicted while an earlier one waited for its label."""
    mistakes: int = 0
    """Rounds whose prediction was another label; 0 of numbers."""
    loss: float = 0.0
    regret: float = np.nan
    bound: float = np.nan


class LossCurve(NamedTuple):
    """Every `stride`-th round that was learned; the stride doubles as the rounds do."""

    stride: int
    rounds: Labels
    values: Matrix
    """(m, 4) mistakes, loss, regret, bound after each."""

    def extended(self, rounds: Labels, values: Matrix) -> "LossCurve":
        """With further rounds: the same however they are split."""
        fits = rounds % self.stride == 0
        stride = self.stride
        rounds, values = np.append(self.rounds, rounds[fits]), np.vstack([self.values, values[fits]])
        while rounds.size > MOST_POINTS:
            stride *= 2
            fits = rounds % stride == 0
            rounds, values = rounds[fits], values[fits]
        return LossCurve(stride, rounds, values)


class OpenRounds(NamedTuple):
    """Rounds that were predicted and have no label yet."""

    numbers: Labels
    """(k,) ascending."""
    x: Matrix
    scores: Vector


class Rest(NamedTuple):
    """All of the state but the learner's."""

    tally: Tally
    curve: LossCurve
    waiting: OpenRounds
    low: Vector
    """(p,) least and greatest values of the inputs so far."""
    high: Vector


class SessionState(NamedTuple):
    learner: Any
    rest: Rest


def first_state(session: OnlineSession) -> SessionState:
    """Before the first round."""
    width = len(session.columns)
    waiting = OpenRounds(np.zeros(0, np.int64), np.zeros((0, width)), np.zeros(0))
    curve = LossCurve(1, np.zeros(0, np.int64), np.zeros((0, 4)))
    record = Rest(Tally(), curve, waiting, np.full(width, np.inf), np.full(width, -np.inf))
    return SessionState(session.learner.start(session.spec.learner, width), record)


def counted(record: Rest, played: Played, labels: Vector, delayed: Labels, *, numeric: bool) -> Rest:
    """After rounds (n,). delayed: (n,) such rounds up to each."""
    is_labelled, before = ~np.isnan(labels), record.tally
    wrong = (played.predictions != labels) & is_labelled & (not numeric)
    bound = np.where(delayed > 0, np.nan, played.bound)
    mistakes = before.mistakes + np.cumsum(wrong)
    loss = np.cumsum([before.loss, *np.where(is_labelled, played.losses, 0.0)])[1:]  # one after the other
    values = np.column_stack([mistakes, loss, played.regret, bound])
    turns = before.learned + np.cumsum(is_labelled)
    tally = before._replace(
        learned=int(turns[-1]),
        delayed=int(delayed[-1]),
        mistakes=int(mistakes[-1]),
        loss=float(loss[-1]),
        regret=float(played.regret[-1]),
        bound=float(bound[-1]),
    )
    return record._replace(tally=tally, curve=record.curve.extended(turns[is_labelled], values[is_labelled]))


def encode(state: SessionState) -> bytes:
    """Equal states give equal bytes."""
    arrays: dict[str, Any] = {}
    document = {
        "format": FORMAT,
        "learner": state_format.pack(state.learner, "learner", arrays),
        "rest": state_format.pack(state.rest, "rest", arrays),
    }
    return safetensors_format.write(document, arrays)


def decode(session: OnlineSession, blob: bytes) -> SessionState:
    """Raises CorruptModel for anything that `encode` did not write for this session."""
    document, arrays = safetensors_format.read(blob)
    try:
        learner = state_format.unpack(session.learner.state, document["learner"], arrays)
        return SessionState(learner, state_format.unpack(Rest, document["rest"], arrays))
    except (KeyError, TypeError, ValueError, RecursionError):
        raise CorruptModel("The stored session does not fit this version's format.") from None
