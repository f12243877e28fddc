"""`valiant serve` is started as its page, its settings and its runtime of KServe describe."""

import json
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from app import cli
from app.base.settings import Settings
from app.commands.serve_folder import USED
from tests.commands.test_serve_folder import MLSERVERS_EXAMPLE, ROOT, X, Y, serving

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
pytest.importorskip("treelite")
pytestmark = pytest.mark.slow
ROWS = {"instances": X[:3].tolist()}


@pytest.fixture(scope="module")
def boosters(tmp_path_factory):
    root = tmp_path_factory.mktemp("boosters")
    params = {"objective": "binary", "verbose": -1}
    lightgbm.train(params, lightgbm.Dataset(X, Y), 2).save_model(root / "lightgbm")
    booster = xgboost.train({"objective": "reg:squarederror"}, xgboost.DMatrix(X, X[:, 0]), 2)
    for suffix in ("json", "ubj"):
        booster.save_model(root / f"x.{suffix}")
    return root


RUNTIME = yaml.safe_load((ROOT / "app" / "deployment" / "kserve.yaml").read_text())
[CONTAINER] = RUNTIME["spec"]["containers"]


def test_the_runtime_of_kserve_starts_what_exists():
    assert RUNTIME["spec"]["multiModel"] is False
    options = vars(cli._parser(CONTAINER["args"]).parse_args(CONTAINER["args"]))
    assert str(options["model_dir"]) == "/mnt/models"
    assert options["port"] == CONTAINER["ports"][0]["containerPort"]
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"]


STORAGE = {
    "a-file": ("x.ubj", "model.ubj"),
    "versions": ("lightgbm", "1/model.bst"),
    "folder-of-a-model": ("x.json", "fraud/1/xgboost.json"),
}


@pytest.mark.parametrize(("source", "name"), STORAGE.values(), ids=STORAGE)
def test_the_runtime_of_kserve_serves_what_storage_holds(boosters, tmp_path, source, name):
    """Its arguments and environment, over those of the image; only the folder and the address are the test's."""
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(boosters / source, tmp_path / name)
    image = re.findall(r"(VALIANT_\w+)=(\S+)", (ROOT / "Dockerfile").read_text())
    environment = dict(image) | {one["name"]: one["value"].replace("{{.Name}}", "churn") for one in CONTAINER["env"]}
    command, *arguments = CONTAINER["args"]
    assert command == "serve"
    own = ("--model_dir", "--port", "--host")
    options = [argument for argument in arguments if not argument.startswith(own)]
    assert len(options) == len(arguments) - len(own)
    with serving(tmp_path, *options, "--host=127.0.0.1", **environment) as client:
        for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
            sought = CONTAINER[probe]["httpGet"]
            headers = {header["name"]: header["value"] for header in sought["httpHeaders"]}
            assert client.get(sought["path"], headers=headers).is_success
        outside = {"Host": "churn.models.example.com"}
        assert client.get("/v1/models/churn", headers=outside).json() == {"name": "churn", "ready": True}
        assert len(client.post("/v1/models/churn:predict", json=ROWS, headers=outside).json()["predictions"]) == 3
        tensor = {"name": "x", "shape": [3, 3], "datatype": "FP64", "data": ROWS["instances"]}
        assert client.post("/v2/models/churn/infer", json={"inputs": [tensor]}, headers=outside).is_success


def test_the_runtime_of_kserve_is_not_ready_without_its_model(tmp_path):
    (tmp_path / "model.joblib").write_bytes(b"\x80\x04.")
    with serving(tmp_path, MODEL_NAME="churn") as client:
        for path in ("/readyz", "/v2/health/ready", "/v2/models/churn/ready", "/v1/models/churn"):
            response = client.get(path)
            assert response.status_code == 503
            assert "valiant convert" in response.json()["detail"]


def test_strict_readiness_needs_all_models(boosters, tmp_path):
    shutil.copy(boosters / "x.ubj", tmp_path / "good.ubj")
    (tmp_path / "bad.txt").write_text("tree\n")
    with serving(tmp_path, "--strict-readiness", "--watch", "0.1") as client:
        assert client.get("/readyz").status_code == 503
        assert client.get("/v2/models/good/ready").is_success
        (tmp_path / "bad.txt").unlink()
        for _ in range(100):
            if client.get("/readyz").is_success:
                break
        assert client.get("/v2/health/ready").is_success


LAYOUTS = {
    "triton": ({"iris-lgb/1/model.txt": "lightgbm", "iris-lgb/config.pbtxt": b'backend: "fil"'}, []),
    "mlserver": ({"a/iris-lightgbm.bst": "lightgbm", "a/model-settings.json": MLSERVERS_EXAMPLE}, []),
    "mlserver-in-the-root": ({"iris-lightgbm.bst": "lightgbm", "model-settings.json": MLSERVERS_EXAMPLE}, []),
    "mlserver-without-uri": ({"a/model.bst": "lightgbm", "a/model-settings.json": {"name": "iris-lgb"}}, []),
    "file-in-a-folder": ({"iris-lgb/any.bst": "lightgbm"}, []),
    "nested": ({"team/iris-lgb/1/xgboost.ubj": "x.ubj"}, []),
    "single-file": ({"iris-lgb.json": "x.json"}, []),
    "one-model": ({"1/model.bst": "x.json"}, ["--model_name=iris-lgb"]),
}


@pytest.mark.parametrize(("files", "options"), LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_of_the_page_starts(boosters, tmp_path, files, options):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            shutil.copy(boosters / content, tmp_path / name)
        else:
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with serving(tmp_path, *options) as client:
        assert client.get("/v1/models").json() == {"models": ["iris-lgb"]}
        assert len(client.post("/v1/models/iris-lgb:predict", json=ROWS).json()["predictions"]) == 3


VALUES = {
    "VALIANT_HOSTS": "models.example.com",
    "VALIANT_AUTH": "none",
    "VALIANT_ALLOW_ANONYMOUS": "network",
    "VALIANT_CORS_ORIGINS": "https://app.example",
    "VALIANT_LOG_LEVEL": "WARNING",
    "VALIANT_LOG_REQUESTS": "0.5",
    "VALIANT_FAST_PATH": "false",
    "VALIANT_DRAIN_SECONDS": "0.1",
    "VALIANT_UPLOAD_TIMEOUT_SECONDS": "5",
    "VALIANT_MAX_FILE_BYTES": "3000",
    "VALIANT_MAX_BODY_BYTES": "500",
    "VALIANT_MAX_JSON_DEPTH": "5",
    "VALIANT_MAX_PREDICT_ROWS": "4",
    "VALIANT_MAX_PREDICTIONS": "3",
    "VALIANT_PREDICT_THREADS": "1",
    "VALIANT_MAX_WAITING_PREDICTIONS": "1",
    "VALIANT_BATCH_ROWS": "8",
    "VALIANT_BATCH_WAIT_SECONDS": "0.001",
    "VALIANT_MODEL_MEMORY_BYTES": "1",
    "VALIANT_PARSE_MEMORY_BYTES": "2000000000",
    "VALIANT_DATABASE_POOL": "2",
    "VALIANT_REQUEST_GRACE_SECONDS": "0.5",
    "VALIANT_PROCESSOR": "native",
    "VALIANT_KERNELS": "/nowhere",
    "VALIANT_WARM": "false",
}
"""A value other than the default of each setting that counts but those of the address and of TLS."""


def test_every_setting_that_counts_has_its_effect(boosters, tmp_path):
    shutil.copy(boosters / "x.ubj", tmp_path / "big.ubj")
    text = (boosters / "lightgbm").read_text()
    (tmp_path / "small.txt").write_text(text[: text.index("feature_importances")])
    assert {name.removeprefix("VALIANT_").lower() for name in VALUES} | {"host", "port", "tls_cert", "tls_key"} == USED
    assert (tmp_path / "small.txt").stat().st_size < 3000 < (tmp_path / "big.ubj").stat().st_size
    unused = {"VALIANT_LEASE_SECONDS": "7", "VALIANT_DATABASE_URL": "postgresql://nowhere/x", "VALIANT_DATA": "x"}
    with (tmp_path / "log").open("w+") as log, serving(tmp_path, log=log, **VALUES, **unused) as client:
        named, page = {"Host": "models.example.com"}, {"Origin": "https://app.example"}
        first = client.get("/v1/models", headers=named | page)
        assert first.json() == {"models": ["small"]}
        assert first.headers["access-control-allow-origin"] == page["Origin"]
        assert client.get("/v1/models", headers={"Host": "other.example.com"}).status_code == 421
        assert "VALIANT_MAX_FILE_BYTES" in client.get("/v1/models/big").json()["detail"]
        assert client.post("/v1/models/small:predict", json=ROWS).is_success
        five = {"instances": [[1, 2, 3]] * 5}
        assert client.post("/v1/models/small:predict", json=five).status_code in {413, 422}
        assert client.post("/v1/models/small:predict", content=b" " * 501).status_code == 413
        assert client.post("/v1/models/small/predict", json={"rows": [[[[[[[]]]]]]]}).status_code == 400
        log.seek(0)
        lines = [json.loads(line) for line in log]
    [warned] = [line for line in lines if line["event"] == "settings_without_effect"]
    assert warned["settings"] == sorted(unused)
    assert {line["level"] for line in lines} <= {"warning", "error"}


def test_settings_that_count_are_those_that_the_code_reads():
    program = (
        "import re, sys, pathlib, app.commands.serve_folder\n"
        "files = {getattr(m, '__file__', None) or '' for n, m in sys.modules.items() if n.startswith('app.')} - {''}\n"
        "texts = [pathlib.Path(f).read_text() for f in files if not f.endswith(('/settings.py', '/app/cli.py'))]\n"
        "names = r'settings\\.([a-z_]+)|environ\\.get\\(.VALIANT_([A-Z_]+)'\n"
        "print(*{''.join(pair).lower() for text in texts for pair in re.findall(names, text)})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    of_a_service = {"oidc_issuer", "beat_file"}  # read where there is a database, by code that is shared
    assert set(done.stdout.split()) & set(Settings.model_fields) - of_a_service == USED


def test_keys_end_the_start_with_a_sentence(boosters):
    command = [sys.executable, "-P", "-m", "app.cli", "serve", str(boosters)]
    for further in ([], ["--anonymous"]):
        done = subprocess.run(
            [*command, *further], env={"VALIANT_AUTH": "keys"}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("valiant: VALIANT_AUTH=keys: keys are in a database")


def test_tls_and_its_faults(boosters, tmp_path, certificate):
    shutil.copy(boosters / "x.ubj", tmp_path)
    cert, key = map(str, certificate)
    with serving(tmp_path, VALIANT_TLS_CERT=cert, VALIANT_TLS_KEY=key) as client:
        assert client.get("/v1/models").json() == {"models": ["x"]}
    command = [sys.executable, "-P", "-m", "app.cli", "serve", str(tmp_path), "--port", "0"]
    for pair in ((key, cert), (cert, str(tmp_path / "none"))):
        environment = dict(zip(("VALIANT_TLS_CERT", "VALIANT_TLS_KEY"), pair, strict=True))
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("valiant: VALIANT_TLS_CERT")
