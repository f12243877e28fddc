"""Rounds a second of online sessions, in requests of 1,000: the core alone, and over HTTP with the database.

    taskset -c 0 python tests/benchmarks/online_sessions.py

CPU time of one thread, the least of several turns. `core`: rows are read from parsed JSON, played, and the state is
encoded. `service`: the same with the database, wall time. The mark is 10,000 rounds a second.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from app.base.settings import Settings
from app.composition.wiring import build
from app.embedded.stack import Stack
from app.ml.sessions.session_rounds import play
from app.ml.sessions.session_spec import OnlineSession, SessionSpec
from app.ml.sessions.session_state import decode, encode, first_state
from app.schemas.sessions import RoundsRequest
from migrations.schema_revision import upgrade

BATCH, TURNS, MARK = 1000, 10, 10_000
GRID = [float(one) for one in range(1, 256)]
STEPS = {"name": "thresholds", "grid": GRID}
PLANES = [{"name": f"x{place}"} for place in range(20)]
CASES = {
    "perceptron, 20 inputs": ({"name": "perceptron"}, PLANES),
    "ogd, 20 inputs": ({"name": "ogd"}, PLANES),
    "halving, 256 hypotheses": ({"name": "halving", "hypotheses": STEPS}, PLANES[:1]),
    "consistent, 256 hypotheses": ({"name": "consistent", "hypotheses": STEPS}, PLANES[:1]),
    "soa, 64 hypotheses": ({"name": "soa", "hypotheses": {"name": "thresholds", "grid": GRID[:63]}}, PLANES[:1]),
    "weighted_majority, 256 hypotheses": ({"name": "weighted_majority", "hypotheses": STEPS}, PLANES[:1]),
    "disjunction, 20 inputs": ({"name": "disjunction"}, [one | {"kind": "boolean"} for one in PLANES]),
}


def least(turn: Callable[[int], object], clock: Callable[[], float]) -> float:
    """Seconds, after a first turn that does not count."""
    times = []
    for number in range(TURNS + 1):
        begun = clock()
        turn(number)
        times.append(clock() - begun)
    return min(times[1:])


def rows_of(inputs: list[dict[str, str]]) -> list[list[float | bool]]:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(BATCH, len(inputs))) * (1 if len(inputs) > 1 else 100)
    table = numbers > 0 if "kind" in inputs[0] else numbers
    return [[*row, bool(first > 0)] for row, first in zip(table.tolist(), numbers[:, 0], strict=True)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Stack(Settings(data=Path(folder))) as stack:
        assert stack.settings.database_url is not None
        upgrade(stack.settings.database_url.get_secret_value())
        services = build(stack.settings, role="api")
        for name, (learner, inputs) in CASES.items():
            spec = SessionSpec.model_validate({"learner": learner, "inputs": inputs, "target": "y"})
            session, body = OnlineSession.of(spec), {"columns": [one["name"] for one in inputs] + ["y"]}
            body["data"] = rows_of(inputs)
            kept = [encode(first_state(session))]

            def alone(_: int, session=session, body=body, kept=kept) -> None:
                kept[0] = encode(play(session, decode(session, kept[0]), [], body).state)

            opened = services.sessions.open(spec, key=None)

            def stored(number: int, opened=opened, body=body) -> None:
                request = RoundsRequest.model_validate(body | {"revision": number})
                services.sessions.play(opened.id, request, key=None)

            core, service = BATCH / least(alone, time.process_time), BATCH / least(stored, time.perf_counter)
            size = len(kept[0]) / 1024
            print(
                f"{name:36} core {core:10,.0f}/s ({core / MARK:5.1f}x)  service {service:9,.0f}/s "
                f"({service / MARK:4.1f}x)  state {size:.0f} KiB"
            )
        services.close()


if __name__ == "__main__":
    main()
