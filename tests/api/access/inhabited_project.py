"""A project with one of everything, and requests of every operation to it."""

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path

from app.api.edge.examples import EXAMPLES
from app.base.project_context import PROJECT
from app.ml.monitoring.window_tests import StreamTest
from app.schemas.monitoring import MonitorWindow

ROOT = Path(__file__).parents[3]
DOCUMENT = json.loads((ROOT / "app" / "openapi.json").read_text())
IRIS = (ROOT / "app" / "samples" / "iris.csv").read_bytes()
FLOWER = {"sepal_length_cm": 5.1, "sepal_width_cm": 3.5, "petal_length_cm": 1.4, "petal_width_cm": 0.2}
RAW = {"create_dataset": "?name=other&file_format=csv", "create_file": "", "append_to_upload": ""}
OPERATIONS = {
    operation["operationId"]: (method, path)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if method in {"get", "put", "post", "patch", "delete"}
}


def inhabit(client, header):
    """The parameters of addresses that lead to something in the project of this key, of which it has all scopes."""

    def send(method, path, body=None, **options):
        response = client.request(method, path, json=body, headers=header, **options)
        assert response.is_success, response.text
        return response

    dataset = send("POST", "/v1/datasets?name=iris&file_format=csv", content=IRIS).json()["id"]
    body = {"model": "species", "dataset": "iris", "target": "species", "algorithm": {"name": "logistic"}}
    job = send("POST", "/v1/jobs/train", body | {"name": "train-species"}).json()["id"]
    until = time.monotonic() + 120
    while (state := send("GET", f"/v1/jobs/{job}").json()["state"]) in {"queued", "running"}:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert state == "succeeded"
    send("PUT", "/v1/models/species/aliases/champion", {"version": 1})
    send("POST", "/v1/models/species/predict?review=true&min_probability=0.99999", {"rows": [FLOWER]})
    send("PUT", "/v1/models/species/monitor", {})
    return {
        "alarm_id": raise_alarm(client.app.services.work, send("GET", "/v1/me").json()["project"]),
        "dataset_id": dataset,
        "job_id": job,
        "review_id": send("GET", "/v1/reviews").json()["items"][0]["id"],
        "session_id": send("POST", "/v1/sessions", EXAMPLES["create_session"]["request"]).json()["id"],
        "preference_id": send("POST", "/v1/preferences", EXAMPLES["create_preference"]["request"]).json()["id"],
        "file_id": send("POST", "/v1/files", content=b"tree").json()["id"],
        "upload_id": send("POST", "/v1/uploads", {"size_bytes": len(IRIS)}).json()["id"],
        "key_id": send("GET", "/v1/keys").json()["items"][0]["id"],
        "model": "species",
        "version": 1,
        "alias": "champion",
        "name": "confusion_heatmap",
    }


def raise_alarm(work, project):
    """The id of an alarm in the project, as a sweep of its monitor raises it."""
    test = StreamTest(
        column="probability", aspect="prediction", psi=4, p_value=1e-5, design_effect=1, evidence=1e6, alarm=True,
        histogram=[],
    )  # fmt: skip
    window = MonitorWindow(version=1, start=datetime.now(UTC), seconds=3600, rows=100, threshold=9e4, tests=[test])
    with work.across_projects() as w:
        token = PROJECT.set(w.projects.ensure(project).id)
    try:
        with work() as w:
            w.alarms.raise_drift("species", window, test)
            return str(w.alarms.page(1, None, model="species", state=None).items[0].id)
    finally:
        PROJECT.reset(token)


def requested(client, operation, parameters, headers, body=None):
    """The response to an operation with these parameters in its address; body: null for that of its example."""
    method, path = OPERATIONS[operation]
    path = re.sub(r"{(\w+)}", lambda found: str(parameters.get(found[1], "ridge")), path) + RAW.get(operation, "")
    if operation in RAW:
        return client.request(method, path, headers={**headers, "Upload-Offset": "0"}, content=IRIS)
    if operation == "upload_dataset":
        return client.request(method, path, headers=headers, files={"file": ("iris.csv", IRIS)}, data={"name": "other"})
    body = EXAMPLES.get(operation, {}).get("request") if body is None else body
    return client.request(method, path, headers=headers, json=body)
