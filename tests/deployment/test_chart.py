"""The Helm chart: rendered by Helm's own engine, right by Kubernetes' schemas, alike the plain manifest."""

import json
import tomllib
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from app.base.settings import Settings

helm = pytest.importorskip("helm_python", reason="Helm's engine has no wheel for this platform.")

ROOT = Path(__file__).parents[2]
DEPLOYMENT = ROOT / "app" / "deployment"
CHART = DEPLOYMENT / "chart"
EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))
MANIFEST = yaml.safe_load((DEPLOYMENT / "kubernetes.yaml").read_text())["items"]
CUSTOM = {"ServiceMonitor", "PodMonitor", "PrometheusRule", "ServingRuntime"}
"""Kinds of operators: their schemas are in none of Kubernetes' own."""
PERIOD = "terminationGracePeriodSeconds"
EVERYTHING = {
    "api": {"autoscaling": {"enabled": True, "requestsInFlight": 20}, "uploads": {"claim": {"size": "5Gi"}}},
    "worker": {"autoscaling": {"enabled": True}, "minAvailable": 1, "affinity": {"nodeAffinity": {}}},
    "ingress": {"enabled": True, "hosts": ["models.example.org"], "tlsSecret": "certificate"},
    "networkPolicy": {"enabled": True},
    "monitoring": {"enabled": True, "labels": {"release": "prometheus"}},
    "backup": {"enabled": True},
    "kserve": {"enabled": True},
}


@pytest.fixture(scope="module")
def chart():
    with helm.Chart.load(CHART) as loaded:
        yield loaded


def objects(chart, values, name="valiant"):
    """Kind and name → what the chart makes with these values."""
    rendered = chart.render(values, name=name, namespace="ml")
    texts = [text for file, text in sorted(rendered.items()) if file.endswith(".yaml")]
    made = [item for text in texts for item in yaml.safe_load_all(text) if item]
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in made}


def pods(made):
    """Name → specification of a pod."""
    templates = {
        item["metadata"]["name"]: item["spec"].get("jobTemplate", item)["spec"]["template"]
        for item in made.values()
        if item["kind"] in {"Deployment", "Job", "CronJob"}
    }
    return {name: template["spec"] for name, template in templates.items()}


def test_there_are_five_examples():
    assert [path.stem for path in EXAMPLES] == ["locked", "public", "scaled", "serving", "small"]


@pytest.mark.parametrize("values", [{}, EVERYTHING, *EXAMPLES], ids=lambda values: getattr(values, "stem", None))
@pytest.mark.parametrize("version", ["1.31", "1.37"])
def test_fits_the_schemas_of_kubernetes(chart, values, version):
    values = yaml.safe_load(values.read_text()) if isinstance(values, Path) else values
    made = objects(chart, values)
    assert {"Deployment/valiant-api", "Deployment/valiant-worker", "Service/valiant"} <= made.keys()
    for item in made.values():
        if item["kind"] not in CUSTOM:
            assert kubernetes_validate.validate(item, version, strict=True) == version


@pytest.mark.parametrize("values", [{}, *EXAMPLES], ids=lambda values: getattr(values, "stem", None))
def test_has_nothing_that_lint_warns_of(values):
    values = yaml.safe_load(values.read_text()) if values else {}
    report = helm.lint(CHART, values, strict=True, kube_version="v1.31.0")
    assert report["errors"] == []
    assert {message["error"] for message in report["messages"]} <= {"icon is recommended"}


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"replicas": 3}, "replicas"),
        ({"api": {"replicas": 0}}, "replicas"),
        ({"existingSecret": ""}, "existingSecret"),
        ({"image": {"digest": "latest"}}, "digest"),
        ({"api": {"env": {"log level": "INFO"}}}, "log level"),
        ({"ingress": {"enabled": True}}, "name the hosts of the ingress"),
    ],
)
def test_refuses_values_that_mean_nothing(chart, values, fault):
    def install():
        chart.validate_schema(values)
        chart.render(values, name="valiant", namespace="ml")

    with pytest.raises(helm.HelmError, match=fault):
        install()


def test_pods_are_those_of_the_plain_manifest(chart):
    made, plain = (
        objects(chart, {}),
        {item["metadata"]["name"]: item for item in MANIFEST if "template" in item["spec"]},
    )
    rendered = pods(made)
    assert rendered.keys() == plain.keys()
    for name, item in plain.items():
        expected = item["spec"]["template"]["spec"]
        for field in ("securityContext", "enableServiceLinks", "automountServiceAccountToken", PERIOD):
            assert rendered[name].get(field) == expected.get(field)
        (container,), (other,) = rendered[name]["containers"], expected["containers"]
        for field in (set(container) | set(other)) - {"env", "imagePullPolicy"}:
            assert container.get(field) == other.get(field), (name, field)
    env = {each["name"]: each["value"] for each in rendered["valiant-api"]["containers"][0]["env"]}
    assert env == {
        "VALIANT_AUTH": "keys",
        "VALIANT_HOSTS": "valiant",
        "VALIANT_DRAIN_SECONDS": "10",
        "VALIANT_WARM": "true",
    }


def test_every_pod_is_locked_down(chart):
    for name, pod in pods(objects(chart, EVERYTHING)).items():
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]
            assert {mount["name"] for mount in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}


def test_secrets_are_named_and_never_made(chart):
    made = objects(chart, {**EVERYTHING, "existingSecret": "theirs", "moreSecrets": ["oidc"]})
    assert not [name for name in made if name.startswith("Secret/")]
    for name, pod in pods(made).items():
        secrets = [source["secretRef"]["name"] for source in pod["containers"][0]["envFrom"]]
        assert secrets == (["theirs"] if name == "valiant-backup" else ["theirs", "oidc"])


def test_environment_variables_are_settings(chart, monkeypatch):
    known = {f"VALIANT_{setting.upper()}" for setting in Settings.model_fields}
    for values in ({}, *(yaml.safe_load(path.read_text()) for path in EXAMPLES)):
        for name, pod in pods(objects(chart, values)).items():
            with monkeypatch.context() as context:
                for variable in pod["containers"][0].get("env", ()):
                    if name != "valiant-backup":
                        assert variable["name"] in known
                        context.setenv(variable["name"], variable["value"])
                Settings()


def test_values_of_a_part_win_over_those_of_all(chart):
    values = {"env": {"VALIANT_LOG_LEVEL": "WARNING"}, "worker": {"env": {"VALIANT_LOG_LEVEL": "DEBUG"}}}
    values["api"] = {"env": {"VALIANT_AUTH": "none"}}
    made = pods(objects(chart, values))
    env = {
        name: {each["name"]: each["value"] for each in pod["containers"][0].get("env", ())}
        for name, pod in made.items()
    }
    assert {name: each["VALIANT_LOG_LEVEL"] for name, each in env.items()} == {
        "valiant-api": "WARNING", "valiant-worker": "DEBUG", "valiant-migrate": "WARNING"
    }  # fmt: skip
    assert env["valiant-api"]["VALIANT_AUTH"] == "none"


def test_selectors_find_the_pods_of_one_part_of_one_release(chart):
    made = objects(chart, EVERYTHING, name="blue")
    labels = {
        name: item["spec"]["template"]["metadata"]["labels"].items()
        for name, item in made.items()
        if item["kind"] == "Deployment"
    }
    for name, item in made.items():
        spec = item.get("spec", {})
        selector = spec.get("podSelector", spec.get("selector"))
        if selector is not None:
            wanted = selector.get("matchLabels", selector).items()
            matching = {other for other, given in labels.items() if wanted <= given}
            if item["kind"] == "ServiceMonitor":  # it chooses the service
                matching = {"Deployment/blue-valiant-api"} if wanted <= service_labels(made) else set()
            part = "worker" if "worker" in name else "api"
            assert matching == {f"Deployment/blue-valiant-{part}"}, name
    for name, item in made.items():
        if item["kind"] == "HorizontalPodAutoscaler":
            assert f"Deployment/{item['spec']['scaleTargetRef']['name']}" in made, name
            assert "replicas" not in made[f"Deployment/{item['spec']['scaleTargetRef']['name']}"]["spec"]


def service_labels(made):
    return made["Service/blue-valiant"]["metadata"]["labels"].items()


def test_scales_by_metrics_that_are_exposed(chart):
    made = objects(chart, EVERYTHING)
    (cpu, requests) = made["HorizontalPodAutoscaler/valiant-api"]["spec"]["metrics"]
    (queue,) = made["HorizontalPodAutoscaler/valiant-worker"]["spec"]["metrics"]
    shown = (DEPLOYMENT / "grafana.json").read_text()  # whose metrics another test holds against the processes
    assert cpu["resource"]["name"] == "cpu"
    for name in (requests["pods"]["metric"]["name"], queue["external"]["metric"]["name"]):
        assert name in shown


def test_migrations_run_before_an_upgrade(chart):
    job = objects(chart, {})["Job/valiant-migrate"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert "before-hook-creation" in job["metadata"]["annotations"]["helm.sh/hook-delete-policy"]


def test_alerts_and_dashboard_are_those_that_are_shipped(chart):
    made = objects(chart, EVERYTHING)
    assert made["PrometheusRule/valiant"]["spec"] == yaml.safe_load((DEPLOYMENT / "alerts.yml").read_text())
    dashboard = json.loads(made["ConfigMap/valiant-dashboard"]["data"]["valiant.json"])
    assert dashboard == json.loads((DEPLOYMENT / "grafana.json").read_text())


def test_the_runtime_of_kserve_is_the_one_that_is_shipped(chart):
    made = objects(chart, {"kserve": {"enabled": True}, "image": {"repository": "here/valiant", "tag": "1"}})
    shipped = yaml.safe_load((DEPLOYMENT / "kserve.yaml").read_text())["spec"]
    spec = made["ServingRuntime/valiant-serve"]["spec"]
    assert spec["containers"][0].pop("image") == "here/valiant:1"
    assert shipped["containers"][0].pop("image") == "valiant"
    assert spec == shipped


def test_versions_are_those_of_the_package():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == (version, version)
