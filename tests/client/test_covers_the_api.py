"""The client beside `openapi.json`: every operation is requested as it is described, or is left out for a reason."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from valiant.api_key import ApiKey
from valiant.dataset import Dataset
from valiant.model_monitor import Alarm, Monitor
from valiant.model_version import Alias, Model, Prediction, Version
from valiant.online_session import OnlineSession
from valiant.preference import Preference
from valiant.review import Review
from valiant.service import TRAIN_FIELDS, Service
from valiant.steps import Call
from valiant.submitted_job import Job
from valiant.version_report import Report

DOCUMENT = json.loads((Path(__file__).parents[2] / "app" / "openapi.json").read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]
LEFT_OUT = {
    "upload_dataset": "a form of browsers; create_dataset takes the file itself",
    **dict.fromkeys(
        ("create_upload", "append_to_upload", "create_dataset_from_upload"),
        "steps of an upload in parts, which are requested in test_resumed_upload",
    ),
    "delete_upload": "an upload that was given up is deleted after a day",
    **dict.fromkeys(("check_liveness", "check_readiness", "read_metrics"), "for orchestrators and Prometheus"),
    **dict.fromkeys(
        (
            *("get_server_metadata", "check_server_live", "check_server_ready", "get_model_metadata", "infer_model"),
            *("check_model_ready", "get_version_metadata", "infer_version", "check_version_ready"),
        ),
        "the Open Inference Protocol has clients of its own",
    ),
}
ADDED = {"Idempotency-Key", "Accept", "Content-Type"}
"""Headers that a request may have though its operation does not name them."""


class Recorded(Exception):
    """The first request of an operation."""


class Recorder:
    """A driver that raises the first request instead of sending it."""

    timeout = 1.0

    def run(self, steps):
        raise Recorded(next(steps))


DRIVER = Recorder()
SERVICE = Service(DRIVER)
DATASET = Dataset(DRIVER, {"id": "1", "name": "Iris"})
JOB = Job(DRIVER, {"id": "1", "state": "running", "kind": "train", "progress": 0.5, "message": "m"})
VERSION = Version(DRIVER, {"model": "m", "version": 1})
MODEL = Model(DRIVER, {"name": "m", "latest_version": 1})
ALIAS = MODEL.alias("champion")
SESSION = OnlineSession(DRIVER, {"id": "1"})
PREFERENCE = Preference(DRIVER, {"id": "1"})
KEY = ApiKey(DRIVER, {"id": "1"})
MONITOR = Monitor(DRIVER, {"model": "m"})
ALARM = Alarm(DRIVER, {"id": "1"})
REVIEW = Review(DRIVER, {"id": "1"})
ROWS = [{"x": 1}]
CALLS = [
    lambda: SERVICE.upload(__file__, kinds={"a": "text"}, header="present", encoding="latin-1", missing="-", sheet="1"),
    lambda: SERVICE.upload(__file__, resume="1"),
    lambda: SERVICE.train(DATASET, "species", n_estimators=3, **dict.fromkeys(TRAIN_FIELDS)),
    lambda: SERVICE.dataset("iris"),
    lambda: SERVICE.datasets(name="iris"),
    lambda: SERVICE.upload_file(__file__),
    lambda: SERVICE.file("1"),
    lambda: SERVICE.job("1"),
    lambda: SERVICE.jobs(3, state="failed", name="n"),
    lambda: SERVICE.model("m"),
    SERVICE.models,
    lambda: SERVICE.reproduce(VERSION),
    SERVICE.algorithms,
    lambda: SERVICE.algorithm("ridge"),
    SERVICE.calculators,
    lambda: SERVICE.open_session(learner={}, inputs=[], target="y"),
    lambda: SERVICE.session("1"),
    SERVICE.sessions,
    lambda: SERVICE.open_preference(job="front"),
    lambda: SERVICE.preference("1"),
    SERVICE.preferences,
    lambda: SERVICE.reviews("m", state="waiting"),
    lambda: SERVICE.export_reviews("m"),
    lambda: DATASET.preview(columns=["a"]),
    DATASET.frame,
    DATASET.delete,
    JOB.refresh,
    JOB.cancel,
    lambda: next(Job._listen(JOB, _events(), 1)),
    SERVICE.versions,
    MODEL.version,
    MODEL.delete,
    lambda: MODEL.predict(ROWS, alias="champion", review=True, costs="0,1"),
    lambda: VERSION.predict(ROWS, confidence=0.9, include=["distance"], on_error="null"),
    lambda: VERSION.report,
    VERSION.delete,
    lambda: next(_download()),
    lambda: next(_download("onnx")),
    VERSION.plots,
    lambda: VERSION.plot("roc"),
    VERSION.cluster_names,
    lambda: VERSION.name_clusters([], if_revision=1),
    VERSION.cluster_name_changes,
    lambda: ALIAS.move(VERSION, if_revision=7),
    ALIAS.history,
    SESSION.refresh,
    lambda: SESSION.play(ROWS),
    lambda: SESSION.publish("m"),
    SESSION.delete,
    PREFERENCE.refresh,
    lambda: PREFERENCE.compare(0, 1, "first"),
    lambda: PREFERENCE.add_candidates([{"values": {"gain": 1.0}}]),
    PREFERENCE.delete,
    SERVICE.me,
    SERVICE.keys,
    lambda: SERVICE.key("1"),
    lambda: SERVICE.create_key("batch", "caller", models=["fraud-*"]),
    KEY.revoke,
    lambda: KEY.rotate(60),
    SERVICE.audit,
    SERVICE.projects,
    lambda: SERVICE.create_project("alpha", queued_jobs=10),
    lambda: SERVICE.change_project("alpha", queued_jobs=None),
    SERVICE.usage,
    lambda: SERVICE.watch("m", min_rows=100),
    lambda: SERVICE.monitor("m"),
    lambda: MONITOR.windows(version=1),
    MONITOR.delete,
    lambda: SERVICE.alarms("m", state="open"),
    lambda: SERVICE.alarm("1"),
    lambda: ALARM.acknowledge("ann"),
    lambda: REVIEW.give("yes"),
    REVIEW.delete,
]
"""Each operation of a fixed name."""


def _events():
    from valiant.event_stream import EventStream

    return EventStream(print)


def _download(artifact_format=None):
    from valiant.record import request

    query = {"query": {"as": artifact_format}} if artifact_format else {}
    return request(DRIVER, "GET", *VERSION._path, "artifact", **query)


def last(path):
    return path.rpartition("/")[2]


def paths(pattern):
    return [path for path, methods in DOCUMENT["paths"].items() if re.fullmatch(pattern, path) and "post" in methods]


NAMED = {
    SERVICE.run: r"/v1/jobs/\w+",
    lambda name: SERVICE.validate(name.removesuffix(":validate")): r"/v1/jobs/\w+:validate",
    SERVICE.calculate: r"/v1/theory/\w+",
    SERVICE.measure: r"/v1/(metrics|distances)",
    lambda name: VERSION.query(
        name, rows=ROWS if name in {"explain", "intervals"} else None
    ): r"/v1/models/{model}/\w+",
}
"""Operations that take the name of a kind of job, a query or a calculator."""


def recorded(operation):
    try:
        return operation()
    except Recorded as found:
        return found.args[0]


def operation_of(call):
    """The operation of the document that serves a request: a literal path before a template."""
    fitting = [
        path
        for path, methods in DOCUMENT["paths"].items()
        if call.method.lower() in methods and re.fullmatch(re.sub(r"{\w+}", "[^/]+", path), call.path)
    ]
    return DOCUMENT["paths"][min(fitting, key=lambda path: path.count("{"))][call.method.lower()]


def properties(schema):
    """Names of the fields of an object, or of all objects that it may be."""
    if "$ref" in schema:
        return properties(SCHEMAS[last(schema["$ref"])])
    return set(schema.get("properties", {})).union(*map(properties, schema.get("oneOf", ())))


def requests():
    named = [recorded(partial(make, last(path))) for make, pattern in NAMED.items() for path in paths(pattern)]
    return [*map(recorded, CALLS), *named]


@pytest.fixture(scope="module")
def calls():
    return requests()


def test_every_operation_is_covered_or_left_out_for_a_reason(calls):
    assert all(type(call) is Call for call in calls)
    covered = {operation_of(call)["operationId"] for call in calls}
    every = {
        operation["operationId"]
        for methods in DOCUMENT["paths"].values()
        for method, operation in methods.items()
        if method in {"get", "put", "post", "patch", "delete"}
    }
    assert covered | set(LEFT_OUT) == every
    assert covered & set(LEFT_OUT) == set()


def test_requests_hold_what_the_document_describes(calls):
    for call in calls:
        operation = operation_of(call)
        declared = {(parameter["in"], parameter["name"].lower()) for parameter in operation.get("parameters", [])}
        given = {name for name, value in call.query.items() if value is not None}
        assert {("query", name) for name in given} <= declared, call
        assert {("header", name.lower()) for name in set(call.headers) - ADDED} <= declared, call
        assert ("Idempotency-Key" in call.headers) == (call.method == "POST")
        if call.headers.get("Content-Type") == "application/json":
            body = operation["requestBody"]["content"]["application/json"]["schema"]
            assert set(json.loads(call.body)) <= properties(body), call


def test_fields_of_a_training_and_parameters_of_an_algorithm_are_kept_apart():
    given = {"dataset", "target", "model", "algorithm"}
    assert TRAIN_FIELDS | given == properties(SCHEMAS["TrainRequest"])
    assert not TRAIN_FIELDS & given
    call = recorded(lambda: SERVICE.train(DATASET, "y", algorithm={"name": "knn", "weights": "distance"}, seed=3, p=1))
    assert json.loads(call.body) == {
        "dataset": "1",
        "target": "y",
        "model": "iris",
        "seed": 3,
        "algorithm": {"name": "knn", "weights": "distance", "p": 1},
    }


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        *((Dataset, "Dataset"), (Job, "Job"), (Model, "Model"), (Version, "ModelVersion"), (Review, "Review")),
        *(
            (OnlineSession, "SessionDetail"),
            (Preference, "PreferenceDetail"),
            (Prediction, "Prediction"),
            (Report, "Report"),
        ),
    ],
)
def test_declared_fields_are_those_of_the_schema(kind, schema):
    declared, described = set(kind.__annotations__), set(SCHEMAS[schema]["properties"])
    assert declared <= described
    if kind not in {Report, Prediction}:  # these declare what is read most
        assert declared == described


def test_a_field_that_is_absent_is_none_and_one_that_is_unknown_an_error():
    assert JOB.error is None
    with pytest.raises(AttributeError, match="'stat'"):
        _ = JOB.stat
    assert isinstance(ALIAS, Alias)
    assert "progress" in dir(JOB)
