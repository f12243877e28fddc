"""Online to batch: a model version from the hypotheses of a session, with a bound on its error.

References: Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, exercise 21.5; Cesa-Bianchi, Conconi &
Gentile (2004), IEEE Trans. Inf. Theory 50:2050; Kearns, Li, Pitt & Valiant (1987), Proc. 4th ICML, 337.
"""

import hashlib
import math
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Accepts, Vector
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.evaluation.report import Report
from app.ml.models import model as models
from app.ml.models.golden import record_golden
from app.ml.models.model import Model
from app.ml.sessions.session_errors import NoHypothesis
from app.ml.sessions.session_spec import OnlineSession
from app.ml.sessions.session_state import SessionState, encode
from app.ml.statistics.metric_value import Metric
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.reporting.receipt import libraries

Choice: TypeAlias = Literal["last", "average", "random_round", "longest_survivor"]
CONFIDENCE = 0.95
GOLDEN_ROWS = 8


class ErrorBound(NamedTuple):
    """Bound on the error of a published hypothesis for new rows, if all rows are drawn alike and independently."""

    value: float
    statement: str


class PublishedModel(NamedTuple):
    """A model made of a session, as a training leaves it behind."""

    blob: bytes
    report: Report
    golden: dict[str, Any]
    bound: ErrorBound | None


def publish(session: OnlineSession, state: SessionState, choice: Choice, *, name: str) -> PublishedModel:
    """name: the session's, for the receipt. Raises NoHypothesis where there is none of this choice."""
    turn = state.rest.tally.learned
    if turn == 0:
        raise NoHypothesis("The session has learned no round yet.")
    vector, rounds = _chosen(session, state, choice)
    bound = _bound(session, state, choice, rounds)
    model = _model(session, state, vector, _receipt(session, state, choice, name))
    table = _shown(model)
    return PublishedModel(
        models.encode(model), _report(session, state, choice, bound), record_golden(model, table), bound
    )


def _chosen(session: OnlineSession, state: SessionState, choice: Choice) -> tuple[Vector, int]:
    """The hypothesis, and the number of rounds in a row that it predicted, where that is known."""
    learner, turn = session.learner, state.rest.tally.learned
    candidates = learner.kept(state.learner)
    match choice:
        case "last":
            return candidates.last, 0
        case "random_round":
            return candidates.chosen, 0
        case "longest_survivor":
            return candidates.longest(turn)
        case "average":
            if learner.average is None:
                raise NoHypothesis("The mean of hypotheses of this learner is no hypothesis of its class.")
            return learner.average(session.spec.learner, state.learner, turn), 0


def _bound(session: OnlineSession, state: SessionState, choice: Choice, rounds: int) -> ErrorBound | None:
    learner, params, tally = session.learner, session.spec.learner, state.rest.tally
    most = learner.hypotheses(params, state.learner)
    if choice == "longest_survivor" and rounds > 0 and not math.isnan(most):
        value = math.log(most * tally.learned / (1 - CONFIDENCE)) / rounds
        return ErrorBound(min(value, 1.0), f"With probability {CONFIDENCE:g} the error on new rows is at most this.")
    if math.isnan(tally.bound) or choice not in {"random_round", "average"}:
        return None
    value = tally.bound / tally.learned
    if learner.bounded(params) == "regret" and (choice == "random_round" or learner.average_bounded):
        return ErrorBound(value, "The expected loss on new rows exceeds that of the best hypothesis by at most this.")
    if learner.bounded(params) == "mistakes" and choice == "random_round":
        return ErrorBound(min(value, 1.0), "The expected error on new rows is at most this.")
    return None


def _receipt(session: OnlineSession, state: SessionState, choice: Choice, name: str) -> dict[str, Any]:
    spec = session.spec
    trained = {
        "target": spec.target, "features": list(session.inputs.names), "seed": spec.seed,
        "algorithm": {"name": "perceptron"}, "preprocessing": {"scaling": "none"},
    }  # fmt: skip
    return {
        "seed": spec.seed,
        "data_digest": f"sha256:{hashlib.sha256(encode(state)).hexdigest()}",
        "spec": TrainSpec.model_validate(trained).model_dump(mode="json", include=set(TrainSpec.model_fields)),
        "session": {
            "id": name,
            "learned": state.rest.tally.learned,
            "hypothesis": choice,
            "learner": spec.learner.model_dump(mode="json"),
        },
        "libraries": libraries(),
    }


def _model(session: OnlineSession, state: SessionState, vector: Vector, receipt: dict[str, Any]) -> Model:
    made = session.learner.hypothesis(session.spec.learner, vector)
    algorithm = find(made.algorithm).algorithm
    receipt["spec"]["algorithm"] = {"name": made.algorithm, **algorithm.params(**made.params).model_dump(mode="json")}
    record, kinds = state.rest, session.inputs.kinds
    columns = [
        _seen(column, low, high) if kind == ColumnKind.NUMERIC else column
        for column, kind, low, high in zip(
            session.columns, kinds, record.low.tolist(), record.high.tolist(), strict=True
        )
    ]
    return Model(
        name=made.algorithm,
        task=session.task,
        params=algorithm.params(**made.params),
        state=algorithm.state(**made.fields),
        preparation=session.prepared(columns, categories=Accepts.CATEGORIES in algorithm.accepts),
        target=session.spec.target,
        classes=session.classes,
        receipt=receipt,
    )


def _seen(column: InputColumn, low: float, high: float) -> InputColumn:
    """With the range of its values; infinite before there is one."""
    return column.model_copy(update={"minimum": low, "maximum": high}) if low <= high else column


def _shown(model: Model) -> pa.Table:
    """Rows over the range of the inputs, as golden rows."""
    turns, columns = np.arange(GOLDEN_ROWS), {}
    for place, column in enumerate(model.inputs):
        if column.kind == ColumnKind.CATEGORICAL:
            levels = column.levels or []
            columns[column.name] = pa.array([levels[turn % len(levels)] for turn in turns.tolist()])
        elif column.kind == ColumnKind.BOOLEAN:
            columns[column.name] = pa.array((turns >> place % 3) % 2 == 1)
        else:
            share = (turns * (2 * place + 1)) % GOLDEN_ROWS / (GOLDEN_ROWS - 1)
            columns[column.name] = pa.array((1 - share) * (column.minimum or 0.0) + share * (column.maximum or 0.0))
    return pa.table(columns)


def _report(session: OnlineSession, state: SessionState, choice: Choice, bound: ErrorBound | None) -> Report:
    tally = state.rest.tally
    name, value = "accuracy", 1 - tally.mistakes / tally.learned
    if session.numeric:
        name, value = "rmse", math.sqrt(tally.loss / tally.learned)
    metric = Metric(
        name=name,
        value=value,
        n=tally.learned,
        display=f"{value:.3g}",
        note="Mean over the rounds of the session, each predicted by the hypothesis of its round before its label was "
        "learned; the published hypothesis is one of them.",
    )
    return Report(
        task=str(session.task),
        evidence=f"{tally.learned} rounds of an online session, each predicted before its label was learned.",
        rows_train=tally.learned,
        rows_test=0,
        seed=session.spec.seed,
        converged=True,
        iterations=tally.learned,
        test=[],
        train=[metric],
        summary={
            "hypothesis": choice,
            "error_bound": None if bound is None else bound._asdict(),
            "theorem": session.learner.bound,
            **session.learner.summary(session.spec.learner, state.learner, session.inputs),
        },
        warnings=["A bound holds for rows that are drawn alike and independently, not for any order of rows."]
        if bound is not None
        else [],
    )
