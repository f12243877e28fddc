"""The manifest for Kubernetes: right by its schemas, and in agreement with the image, the API and the compose file."""

import json
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from app.base.settings import Settings
from app.cli import main
from app.commands.serve import configured
from app.main import create_app

ROOT = Path(__file__).parents[2]
PATHS = json.loads((ROOT / "app" / "openapi.json").read_text())["paths"]
LIMITS = {
    name: service["deploy"]["resources"]["limits"]["memory"]
    for name, service in yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"].items()
}
MANIFEST = yaml.safe_load((ROOT / "app" / "deployment" / "kubernetes.yaml").read_text())
KINDS = {f"{item['kind']}/{item['metadata']['name']}": item for item in MANIFEST["items"]}
PODS = {item["metadata"]["name"]: item["spec"]["template"] for item in KINDS.values() if "template" in item["spec"]}
CONTAINERS = {name: pod["spec"]["containers"][0] for name, pod in PODS.items()}
SERVING = sorted(set(CONTAINERS) - {"valiant-migrate"})


@pytest.mark.parametrize("version", ["1.31", "1.37"])
@pytest.mark.parametrize("name", KINDS)
def test_fits_its_schema(name, version):
    assert kubernetes_validate.validate(KINDS[name], version, strict=True) == version


def test_the_schema_is_strict():
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**KINDS["Service/valiant"], "spce": {}}, "1.37", strict=True)


@pytest.mark.parametrize("name", PODS)
def test_every_pod_is_locked_down(name):
    pod, container = PODS[name]["spec"], CONTAINERS[name]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert f"USER {pod['securityContext']['runAsUser']}:" in (ROOT / "Dockerfile").read_text()
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/var/lib/valiant", "/tmp"}


@pytest.mark.parametrize("name", PODS)
def test_no_service_puts_variables_into_a_pod(name):
    """A service `valiant` would set VALIANT_PORT to tcp://…, which is no port to listen on."""
    assert "Service/valiant" in KINDS
    assert PODS[name]["spec"]["enableServiceLinks"] is False


@pytest.mark.parametrize("name", PODS)
def test_runs_a_command_with_acceptable_settings(name, capsys, monkeypatch):
    with pytest.raises(SystemExit) as end:
        main([*CONTAINERS[name]["args"], "--help"])
    assert end.value.code == 0
    known = {f"VALIANT_{setting.upper()}" for setting in Settings.model_fields}
    for variable in CONTAINERS[name].get("env", ()):
        assert variable["name"] in known
        monkeypatch.setenv(variable["name"], variable["value"])
    Settings()
    assert CONTAINERS[name]["envFrom"] == [{"secretRef": {"name": "valiant"}}]


@pytest.mark.parametrize("name", SERVING)
def test_probes_go_to_what_is_served(name):
    container = CONTAINERS[name]
    (port,) = container["ports"]
    image = Settings(worker_metrics_port=9000)  # as the Dockerfile sets it
    assert "VALIANT_WORKER_METRICS_PORT=9000" in (ROOT / "Dockerfile").read_text()
    assert port["containerPort"] == (image.port if name == "valiant-api" else image.worker_metrics_port)
    probes = [probe["httpGet"] for key, probe in container.items() if key.endswith("Probe")]
    assert {probe["port"] for probe in probes} == {port["name"]}
    paths = {probe["path"] for probe in probes}
    assert paths == ({"/livez", "/readyz"} if name == "valiant-api" else {"/metrics"})
    assert name != "valiant-api" or paths <= set(PATHS)


@pytest.mark.parametrize("name", SERVING)
def test_a_starved_pod_is_not_restarted_at_once(name):
    probe = CONTAINERS[name]["livenessProbe"]
    assert (probe["timeoutSeconds"], probe["failureThreshold"]) == (5, 8)


def test_pods_are_given_the_time_they_take_to_stop():
    api, worker = (PODS[name]["spec"]["terminationGracePeriodSeconds"] for name in SERVING)
    drain = float(next(v["value"] for v in CONTAINERS["valiant-api"]["env"] if v["name"] == "VALIANT_DRAIN_SECONDS"))
    assert api > drain + configured(create_app(Settings())).timeout_graceful_shutdown
    assert worker > Settings().worker_grace_seconds


def test_memory_is_that_of_the_compose_file():
    for name, container in CONTAINERS.items():
        limit = container["resources"]["limits"]["memory"]
        assert limit.lower().removesuffix("i") == LIMITS[name.removeprefix("valiant-")]


def test_selectors_find_the_api_and_nothing_else():
    expected = PODS["valiant-api"]["metadata"]["labels"]
    assert KINDS["Service/valiant"]["spec"]["selector"] == expected
    assert KINDS["PodDisruptionBudget/valiant-api"]["spec"]["selector"]["matchLabels"] == expected
    for name in SERVING:
        deployment = KINDS[f"Deployment/{name}"]
        assert deployment["spec"]["selector"]["matchLabels"] == PODS[name]["metadata"]["labels"]
    assert len({pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in PODS.values()}) == 3


def test_an_upgrade_takes_no_replica_before_another_is_ready():
    deployment = KINDS["Deployment/valiant-api"]["spec"]
    assert deployment["replicas"] >= 2
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
