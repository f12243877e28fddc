"""Worked examples of the OpenAPI document: a walk through all operations on a real service, kept current by this test.

Ids, times and digests are replaced by fixed ones, numbers have four digits, and lists but enums are cut to their first
entries.
"""

import json
import math
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID as UUID_TYPE

import jsonschema
import pytest
from starlette.testclient import TestClient

from app.api.edge.examples import EXAMPLES, LISTED
from app.ml.monitoring.reference import decode
from app.ml.monitoring.row_counter import TableCounts
from app.schemas.projects import STANDARD
from app.store.monitoring.monitors import Minute

ROOT = Path(__file__).parents[1]
STORED = ROOT / "app" / "api" / "edge" / "examples.json"
DOCUMENT = json.loads((ROOT / "app" / "openapi.json").read_text())
METHODS = {"get", "put", "post", "patch", "delete"}
BODILESS = {
    "delete_dataset", "delete_model", "delete_model_version", "delete_monitor", "delete_preference", "delete_review",
    "delete_session", "delete_upload", "download_dataset_file", "download_model_artifact", "read_metrics", "revoke_key",
}  # fmt: skip
"""Operations whose response has no body, or bytes or text that are not JSON."""
USED = {"run_seconds_per_day": 12.5, "storage_bytes": 200_000}
"""Parts of quotas that depend on the machine."""
STREAMED = {"stream_job_events"}
IRIS = (ROOT / "app" / "samples" / "iris.csv").read_bytes()
DIABETES = (ROOT / "app" / "samples" / "diabetes.csv").read_bytes()
FLOWER = {"sepal_length_cm": 5.1, "sepal_width_cm": 3.5, "petal_length_cm": 1.4, "petal_width_cm": 0.2}
PATIENT = dict(
    zip(DIABETES.decode().splitlines()[0].split(",")[:-1], [59, 2, 32.1, 101, 157, 93.2, 38, 4, 4.9, 87], strict=True)
)
TRAIN = {"model": "species", "dataset": "iris", "target": "species", "algorithm": {"name": "logistic"}}
SEARCH = {
    "dataset": "diabetes", "target": "progression", "algorithm": {"name": "ridge"},
    "alternatives": [{"name": "linear"}], "rule": "one_standard_error",
}  # fmt: skip
BEST = {
    "model": "best", "dataset": "diabetes", "target": "progression", "units": 10,
    "include": ["ridge", "knn", "decision_tree"], "validation": {"folds": 3},
}  # fmt: skip
MAP = {"model": "map", "dataset": "iris", "features": list(FLOWER), "algorithm": {"name": "pca"}}
EVALUATE = {"model": "species", "dataset": "iris", "examples": 2}
CALIBRATE = {"model": "species", "dataset": "iris", "new_model": "calibrated", "test_fraction": 0.4, "n_bins": 4}
UPDATE = {"model": "online", "dataset": "diabetes"}
ONLINE = {
    "model": "online", "dataset": "diabetes", "target": "progression", "algorithm": {"name": "linear_sgd"},
    "validation": {"test_fraction": 0.5},
}  # fmt: skip
PREDICT = {"model": "species", "dataset": "iris", "keep": ["petal_length_cm"]}
BOOTSTRAP = {"model": "progression", "dataset": "diabetes", "resamples": 50}
COMBINE = {"model": "both", "dataset": "iris", "members": [{"model": "species"}, {"model": "neighbours"}]}
COMPARE = {"dataset": "iris", "versions": [{"model": "species"}, {"model": "neighbours"}]}
DRIFT = {"model": {"model": "species"}, "current": "iris"}
RANK = {"dataset": "iris", "target": "species"}
SELECT = {"dataset": "diabetes", "target": "progression", "algorithm": {"name": "ridge"}, "max_columns": 4}
SUGGEST = {
    "dataset": "diabetes", "target": "progression", "features": ["bmi", "log_triglycerides"], "n_suggestions": 2,
}  # fmt: skip
OPTIMISE = {
    "goals": [{"model": "progression", "aim": "minimise", "confidence": 0.9}], "fixed": {"age": 40, "sex": 1},
    "constraints": [{"coefficients": {"bmi": 1}, "at_least": 25}], "effort": "quick", "dataset": "diabetes",
}  # fmt: skip
LIGHTGBM = b"""tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=1
objective=binary sigmoid:1
feature_names=age plan
feature_infos=[18:90] 0:1:2

Tree=0
num_leaves=3
num_cat=1
split_feature=0 1
split_gain=1 1
threshold=40.5 0
decision_type=10 1
left_child=-1 -2
right_child=1 -3
leaf_value=-0.8 0.9 0.2
cat_boundaries=0 1
cat_threshold=4
shrinkage=1

end of trees

pandas_categorical:[["basic", "plus", "pro"]]
"""
IMPORT = {"model": "churn", "file_format": "lightgbm", "classes": ["stays", "leaves"]}
NEIGHBOURS = TRAIN | {"model": "neighbours", "algorithm": {"name": "knn"}}
DENDROGRAM = {key: value for key, value in TRAIN.items() if key != "target"} | {
    "model": "dendrogram",
    "algorithm": {"name": "agglomerative", "n_clusters": 3},
}
GRAPH = DENDROGRAM | {"model": "graph", "algorithm": {"name": "spectral", "n_clusters": 3}}
CELLS = TRAIN | {"model": "cells", "algorithm": {"name": "som", "grid_height": 2, "grid_width": 3, "radius_end": 0.5}}
CLOUD = MAP | {"model": "cloud", "algorithm": {"name": "gaussian"}}
TREE = TRAIN | {"model": "tree", "algorithm": {"name": "decision_tree", "max_depth": 2}}
PROGRESSION = {"model": "progression", "dataset": "diabetes", "target": "progression", "algorithm": {"name": "ridge"}}
TENSOR = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP64", "data": list(FLOWER.values())}]}
CALCULATIONS = [
    ("calculate_sample_size", "pac", {"class_size": 1000, "epsilon": 0.1, "delta": 0.05}),
    ("calculate_vc_bound", "vc_bound", {"rows": 10_000, "vc_dimension": 10, "empirical_risk": 0.12}),
    ("calculate_margin_bound", "margin_bound", {"radius": 2, "norm": 1.5, "columns": 100, "rows": 10_000}),
    ("calculate_majority_error", "majority_error", {"members": 21, "error": 0.3, "correlation": 0.1}),
    ("calculate_boosting_rounds", "boosting_rounds", {"rows": 30, "edge": 0.1667}),
    ("calculate_vc_dimension", "vc_dimension", {"function_class": "halfspaces", "dimensions": 2, "rows": 20}),
    (
        "calculate_littlestone_dimension",
        "littlestone_dimension",
        {"table": [[False, False], [False, True], [True, True]]},
    ),
    ("demonstrate_no_free_lunch", "no_free_lunch", {"points": 4, "rows": 2}),
]
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
SECRET = re.compile(r"(vlt_)\w{12}(_\w{49})?")
DIGEST = re.compile(r"(sha256:)?[0-9a-f]{64}")
MICROSECONDS = re.compile(r"^\d{16}(?=\.)")
"""The same time at the beginning of a cursor."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(Z|\+00:00)")
REQUEST = re.compile(r"\b[0-9a-f]{32}\b")


class Walk:
    """Requests by operation, and their responses made comparable."""

    def __init__(self, client):
        self.client, self.examples, self.identifiers = client, {}, {}

    def __call__(self, operation, method, path, body=None, *, expected=200, **options):
        if body is not None:
            options["json"] = body
        response = self.client.request(method, path, **options)
        assert response.status_code == expected, (operation, response.text)
        if operation not in BODILESS:
            found = {"request": self.plain(body)} if body is not None else {}
            self.examples[operation] = found | {"response": self.plain(response.json())}
        return response

    def job(self, operation, kind, body, name):
        self(f"validate_{operation[1]}", "POST", f"/v1/jobs/{kind}:validate", body)
        self(operation[0], "POST", f"/v1/jobs/{kind}", body | {"name": name}, expected=202)
        with self.client.stream("GET", f"/v1/jobs/{name}/events") as events:
            list(events.iter_lines())
        job = self.client.get(f"/v1/jobs/{name}").json()
        assert job["state"] == "succeeded", (kind, name, job.get("error"))

    def plain(self, value, key=""):
        """Ids, times, digests and numbers without what differs from run to run; long lists cut."""
        if isinstance(value, dict):
            if "progress" in value:  # which points of its curves a job keeps depends on the speed of the machine
                value = value | {"curves": []} | ({"cores": 1} if value.get("cores") else {})
            if "fitting" in value:  # seconds of stages
                value = dict.fromkeys(value, 0.1)
            if "cold_seconds" in value:  # what is compiled yet
                value = value | {
                    "cold_seconds": 0.0,
                    "warnings": [w for w in value["warnings"] if "First use" not in w],
                }
            return {name: self.plain(part, name) for name, part in value.items() if part is not None}
        if isinstance(value, list):
            return [self.plain(part, key) for part in (value if key == "enum" else value[:LISTED])]
        if not isinstance(value, str):
            return _plain_number(value, key)
        if key == "processor":  # the class of that of this machine
            return "x86-64-v3"
        text = UUID.sub(lambda found: self.identifier(found[0]), value)
        text = SECRET.sub(lambda found: found[1] + "0" * 12 + ("_" + "0" * 49 if found[2] else ""), text)
        text = TIME.sub("2026-01-31T12:00:00Z", REQUEST.sub("0" * 32, text))
        if key == "next_cursor":
            text = MICROSECONDS.sub("1769860800000000", text)
        return DIGEST.sub(lambda found: (found[1] or "") + "5e" * 32, text)

    def identifier(self, given):
        number = self.identifiers.setdefault(given, len(self.identifiers) + 1)
        return f"019c0000-0000-7000-8000-{number:012d}"


def _plain_number(value, key):
    if key in USED and value < STANDARD.model_dump()[key]:
        return USED[key]
    if isinstance(value, float) and value and math.isfinite(value):
        return float(f"{value:.4g}")
    return 1000 if key in {"seconds", "size_bytes", "memory_bytes"} else value


@pytest.fixture(scope="module")
def walked(module_stack_factory):
    """All examples, of servers of their own, so that lists hold nothing else."""
    from app.commands import processes
    from app.main import create_app

    stack = module_stack_factory()
    child = processes.worker(stack.settings, stack.folder)
    child.start()
    try:
        with TestClient(create_app(stack.settings)) as client:
            walk = Walk(client)
            everything(walk)
            return walk.examples
    finally:
        child.stop()


def everything(walk):
    datasets(walk)
    jobs(walk)
    models(walk)
    predictions(walk)
    monitoring(walk)
    theory(walk)
    sessions(walk)
    preferences(walk)
    protocol(walk)
    access(walk)
    for operation, path in (("check_liveness", "/livez"), ("check_readiness", "/readyz"), ("read_metrics", "/metrics")):
        walk(operation, "GET", path)
    walk("list_algorithms", "GET", "/v1/algorithms?limit=2&cursor=kmeans")
    walk("get_algorithm", "GET", "/v1/algorithms/ridge")
    walk("download_model_artifact", "GET", "/v1/models/species/versions/1/artifact")
    walk("delete_model_version", "DELETE", "/v1/models/both/versions/1", expected=204)
    walk("delete_model", "DELETE", "/v1/models/neighbours", expected=204)


def datasets(walk):
    raw = {"headers": {"Content-Type": "application/octet-stream"}, "expected": 201}
    walk("create_dataset", "POST", "/v1/datasets?name=iris&file_format=csv", content=IRIS, **raw)
    walk("create_dataset", "POST", "/v1/datasets?name=diabetes&file_format=csv", content=DIABETES, **raw)
    upload = walk("create_upload", "POST", "/v1/uploads", {"size_bytes": len(IRIS)}, expected=201).headers["location"]
    walk("append_to_upload", "PATCH", upload, content=IRIS, headers={"Upload-Offset": "0"}, expected=200)
    walk("get_upload", "GET", upload)
    walk("create_dataset_from_upload", "POST", f"{upload}/dataset?name=parts", expected=201)
    walk("delete_upload", "DELETE", upload, expected=204)
    form = {"files": {"file": ("iris.csv", IRIS)}, "data": {"name": "spare"}, "expected": 201}
    spare = walk("upload_dataset", "POST", "/v1/datasets/upload", **form).json()["id"]
    iris = walk("list_datasets", "GET", "/v1/datasets?name=iris").json()["items"][0]["id"]
    walk("get_dataset", "GET", f"/v1/datasets/{iris}")
    walk("list_dataset_rows", "GET", f"/v1/datasets/{iris}/rows?limit=2")
    walk("download_dataset_file", "GET", f"/v1/datasets/{iris}/file")
    walk("delete_dataset", "DELETE", f"/v1/datasets/{spare}", expected=204)


def jobs(walk):
    walk.job(("train_model", "training"), "train", ONLINE, "train-online")
    walk.job(("train_model", "training"), "train", TRAIN, "train-species")
    walk.job(("train_model", "training"), "train", TREE, "train-tree")
    walk.job(("train_model", "training"), "train", DENDROGRAM, "train-dendrogram")
    walk.job(("train_model", "training"), "train", GRAPH, "train-graph")
    walk.job(("train_model", "training"), "train", NEIGHBOURS, "train-neighbours")
    walk.job(("train_model", "training"), "train", PROGRESSION, "train-progression")
    walk.job(("train_model", "training"), "train", CELLS, "train-cells")
    walk.job(("train_model", "training"), "train", CLOUD, "train-cloud")
    walk.job(("train_model", "training"), "train", MAP, "train-map")
    walk.job(("search_models", "search"), "search", SEARCH, "candidates")
    walk.job(("find_best_model", "best_model"), "automl", BEST, "best")
    walk.job(("evaluate_model", "evaluation"), "evaluate", EVALUATE, "again")
    walk.job(("compare_models", "comparison"), "compare", COMPARE, "side-by-side")
    walk.job(("compare_distributions", "drift"), "drift", DRIFT, "iris-again")
    walk.job(("combine_models", "combination"), "combine", COMBINE, "together")
    walk.job(("calibrate_model", "calibration"), "calibrate", CALIBRATE, "calibrated")
    walk.job(("update_model", "update"), "update", UPDATE, "one-more-batch")
    walk.job(("predict_dataset", "dataset_prediction"), "predict", PREDICT, "score")
    walk.job(("bootstrap_model", "bootstrap"), "bootstrap", BOOTSTRAP, "spread")
    walk.job(("rank_columns", "ranking"), "rank", RANK, "columns")
    walk.job(("select_columns", "selection"), "select", SELECT, "fewer-columns")
    walk.job(("suggest_experiments", "suggestion"), "suggest", SUGGEST, "next-experiments")
    walk.job(("optimise_inputs", "optimisation"), "optimise", OPTIMISE, "plan")
    file = walk("create_file", "POST", "/v1/files", content=LIGHTGBM, expected=201).headers["location"]
    walk.job(
        ("import_model", "import"), "import", IMPORT | {"file": walk("get_file", "GET", file).json()["id"]}, "churn"
    )
    walk("get_job", "GET", "/v1/jobs/again")
    walk("list_jobs", "GET", "/v1/jobs?limit=1&name=candidates")
    walk("cancel_job", "POST", "/v1/jobs/candidates/cancel", expected=202)


def models(walk):
    walk("list_models", "GET", "/v1/models?limit=2")
    walk("list_versions", "GET", "/v1/versions?limit=2")
    walk("get_model", "GET", "/v1/models/species")
    walk("move_model_alias", "PUT", "/v1/models/species/aliases/champion", {"version": 1}, expected=201)
    walk("list_model_alias_moves", "GET", "/v1/models/species/aliases/champion/history")
    walk("get_model_version", "GET", "/v1/models/species/versions/1")
    walk("reproduce_model_version", "POST", "/v1/models/species/versions/1/reproduce?name=same-bytes", expected=202)
    walk("get_model_report", "GET", "/v1/models/species/versions/1/report")
    walk("list_model_plots", "GET", "/v1/models/species/versions/1/plots")
    names = {"names": [{"cluster": 0, "name": "Short petals"}, {"cluster": 1, "name": "Long petals"}]}
    walk("replace_cluster_names", "PUT", "/v1/models/dendrogram/versions/1/names", names)
    walk("list_cluster_names", "GET", "/v1/models/dendrogram/versions/1/names")
    walk("list_cluster_name_changes", "GET", "/v1/models/dendrogram/versions/1/names/history")
    walk("draw_model_plot", "GET", "/v1/models/species/versions/1/plots/confusion_heatmap")


def monitoring(walk):
    path, services = "/v1/models/species/monitor", walk.client.app.services
    walk("put_monitor", "PUT", path, {"min_rows": 100})
    begin = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=6)
    with services.work() as w:
        reference = decode(w.version_references.find("species", 1))
        rows = [[0.0] * (len(each.counts) - 1) + [100.0] for each in (*reference.columns, *reference.predictions)]
        counts = TableCounts.read(100, [[*column, 0.0] for column in rows])
        minutes = [("species", 1, Minute(begin + timedelta(hours=hour), counts)) for hour in range(4)]
        w.monitors.add_minutes(UUID_TYPE(int=1), minutes)
    services.monitors.sweep(begin + timedelta(hours=5))
    walk("get_monitor", "GET", path)
    walk("list_monitor_windows", "GET", f"{path}/drift?limit=1")
    alarm = walk("list_alarms", "GET", "/v1/alarms?model=species&limit=1").json()["items"][0]["id"]
    walk("get_alarm", "GET", f"/v1/alarms/{alarm}")
    change = {"state": "acknowledged", "owner": "ann", "muted_until": "2030-01-01T00:00:00Z"}
    walk("change_alarm", "PATCH", f"/v1/alarms/{alarm}", change)
    walk("delete_monitor", "DELETE", path, expected=204)


def predictions(walk):
    rows = {"rows": [FLOWER]}
    walk("predict_rows", "POST", "/v1/models/species/predict", rows)
    options = {"params": {"review": "true", "min_probability": 0.9999}}
    walk("predict_rows", "POST", "/v1/models/species/predict", rows, **options)
    filed = walk("list_reviews", "GET", "/v1/reviews?model=species&state=waiting").json()["items"][0]["id"]
    walk("label_review", "POST", f"/v1/reviews/{filed}/label", {"label": "setosa"})
    walk("export_reviews", "POST", "/v1/reviews/export", {"model": "species", "name": "labelled"}, expected=201)
    walk("delete_review", "DELETE", f"/v1/reviews/{filed}", expected=204)
    walk("predict_rows", "POST", "/v1/models/species/predict", rows)
    walk("explain_rows", "POST", "/v1/models/neighbours/explain", rows)
    walk("estimate_intervals", "POST", "/v1/models/progression/intervals?confidence=0.9", {"rows": [PATIENT]})
    walk("linearise_model", "POST", "/v1/models/progression/linearise", {"row": PATIENT, "inputs": ["bmi"]})
    axis = {"column": "petal_length_cm", "points": 3}
    fixed = {name: value for name, value in FLOWER.items() if name != axis["column"]}
    walk("sweep_model", "POST", "/v1/models/species/sweep", {"vary": [axis], "fixed": fixed})
    walk("describe_ellipsoids", "POST", "/v1/models/cloud/ellipsoids", {"columns": list(FLOWER)[2:]})
    walk("describe_clusters", "POST", "/v1/models/dendrogram/clusters", {"clusters": [0], "columns": 1})
    walk("cut_dendrogram", "POST", "/v1/models/dendrogram/cut", {"n_clusters": 3})
    walk("read_spectrum", "POST", "/v1/models/graph/spectrum", {"coordinates": False})
    walk("evaluate_cut", "POST", "/v1/models/graph/cut_value", {})
    walk("read_tree", "POST", "/v1/models/tree/tree", {"max_depth": 1})
    walk("read_planes", "POST", "/v1/models/cells/planes", {"columns": ["petal_length_cm"]})
    walk("decode_predictions", "POST", "/v1/models/map/decode", {"predictions": [[-2.0, 0.5]]})
    walk("reconstruct_rows", "POST", "/v1/models/map/reconstruct", rows)
    walk("find_neighbours", "POST", "/v1/models/neighbours/neighbours", rows | {"n_neighbors": 2})
    pairs = {"task": "classification", "truth": ["yes", "no", "yes", "no"], "predicted": ["yes", "no", "no", "no"]}
    walk("measure_predictions", "POST", "/v1/metrics", pairs)
    points = {"rows": [[0, 0], [2, 0], [0, 20], [2, 20]], "metric": "mahalanobis", "to_mean": True}
    walk("measure_distances", "POST", "/v1/distances", points)
    walk("measure_prepared_distances", "POST", "/v1/models/map/prepared_distances", rows | {"others": [FLOWER]})


def theory(walk):
    walk("list_calculators", "GET", "/v1/theory?limit=1")
    for operation, name, body in CALCULATIONS:
        walk(operation, "POST", f"/v1/theory/{name}", body)


def sessions(walk):
    spec = {
        "name": "clicks", "learner": {"name": "perceptron"}, "target": "clicked",
        "inputs": [{"name": "age"}, {"name": "member", "kind": "boolean"}],
    }  # fmt: skip
    path = walk("create_session", "POST", "/v1/sessions", spec, expected=201).headers["location"]
    rows = [{"age": 0.3, "member": True, "clicked": True}, {"age": 1.2, "member": False}]
    walk("play_rounds", "POST", f"{path}/rounds", {"revision": 0, "rows": rows})
    walk("list_sessions", "GET", "/v1/sessions")
    walk("get_session", "GET", path)
    walk("publish_session", "POST", f"{path}/publish", {"model": "clicks", "hypothesis": "average"}, expected=201)
    walk("delete_session", "DELETE", path, expected=204)


def preferences(walk):
    values = [{"customers": 203, "complaints": 6.3}, {"customers": 190, "complaints": 2.1}]
    spec = {
        "name": "advertising", "goals": [{"name": "customers"}, {"name": "complaints", "aim": "minimise"}],
        "candidates": [{"values": one} for one in values],
    }  # fmt: skip
    path = walk("create_preference", "POST", "/v1/preferences", spec, expected=201).headers["location"]
    compared = [{"first": 0, "second": 1, "preferred": "second"}]
    walk("compare_candidates", "POST", f"{path}/answers", {"revision": 0, "comparisons": compared})
    walk("list_preferences", "GET", "/v1/preferences")
    walk("get_preference", "GET", path)
    walk("delete_preference", "DELETE", path, expected=204)


def access(walk):
    walk("get_caller", "GET", "/v1/me")
    walk("create_project", "POST", "/v1/projects", {"name": "pricing"}, expected=201)
    walk("change_project", "PATCH", "/v1/projects/pricing", {"quotas": {"running_jobs": 2, "requests_per_second": 50}})
    walk("get_usage", "GET", "/v1/usage")
    walk("list_projects", "GET", "/v1/projects")
    spec = {"name": "checkout", "role": "caller", "models": ["species", "fraud-*"], "project": "default"}
    path = walk("create_key", "POST", "/v1/keys", spec, expected=201).headers["location"]
    walk("get_key", "GET", path)
    walk("rotate_key", "POST", f"{path}:rotate", {"grace_seconds": 3600}, expected=201)
    walk("list_audit_entries", "GET", "/v1/audit")
    walk("list_keys", "GET", "/v1/keys?limit=1")
    walk("revoke_key", "DELETE", path, expected=204)


def protocol(walk):
    walk("get_server_metadata", "GET", "/v2")
    walk("check_server_live", "GET", "/v2/health/live")
    walk("check_server_ready", "GET", "/v2/health/ready")
    for operation, path in (("model", ""), ("version", "/versions/1")):
        walk(f"get_{operation}_metadata", "GET", f"/v2/models/species{path}")
        walk(f"check_{operation}_ready", "GET", f"/v2/models/species{path}/ready")
        walk(f"infer_{operation}", "POST", f"/v2/models/species{path}/infer", TENSOR)


@pytest.mark.slow
def test_examples_are_current(walked):
    """A stale file is rewritten, and this run fails: look at the examples and commit them."""
    text = json.dumps(walked, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    stale = [name for name in {**walked, **EXAMPLES} if not alike(walked.get(name), EXAMPLES.get(name))]
    if stale:
        STORED.write_text(text)
    assert not stale, f"{STORED.name} was stale and has been rewritten: look at it and commit it."


def alike(one, other):
    """Equal, but for the last digits of numbers: processors differ in them."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=0.01, abs_tol=1e-6)
    return one == other


def operations():
    for path, methods in DOCUMENT["paths"].items():
        for method in [name for name in methods if name in METHODS]:
            yield methods[method] | {"at": f"{method} {path}"}


def test_every_operation_has_an_example():
    assert {found["operationId"] for found in operations()} - BODILESS - STREAMED == set(EXAMPLES)


def test_examples_hold_no_reference():
    """Tools resolve a `$ref` within an example against the document, where it means nothing."""
    assert '"$ref"' not in STORED.read_text()


@pytest.mark.parametrize("operation", [found["operationId"] for found in operations()])
def test_examples_fit_their_schemas(operation):
    found = next(one for one in operations() if one["operationId"] == operation)
    media = [found.get("requestBody", {}).get("content", {}).get("application/json", {})]
    media += [of.get("content", {}).get("application/json", {}) for of in found["responses"].values()]
    given = [one for one in media if "example" in one]
    assert len(given) == len(EXAMPLES.get(operation, {}))
    for one in given:
        jsonschema.validate(one["example"], {**one["schema"], "components": DOCUMENT["components"]})
