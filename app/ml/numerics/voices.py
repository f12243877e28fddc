"""What each member of several says, as an explanation."""

from collections.abc import Sequence

from app.ml.contract import JSON, Learned, Matrix


def voices(members: Sequence[tuple[Learned, Matrix]]) -> list[JSON]:
    """For each row the answer of every member, which is asked about its own matrix (n, ·): a number, or the shares."""
    told = [(member.name, member.predict(x).tolist()) for member, x in members]
    return [
        {"members": [{"algorithm": name, "answer": answers[row]} for name, answers in told]}
        for row in range(len(members[0][1]))
    ]
