"""The dashboard shows what is measured: every metric that a process of ours exposes, and no other."""

import itertools
import json
import re
from pathlib import Path

import pytest
import yaml

DEPLOYMENT = Path(__file__).parents[2] / "app" / "deployment"
DASHBOARD = json.loads((DEPLOYMENT / "grafana.json").read_text())
ALERTS = [
    rule for group in yaml.safe_load((DEPLOYMENT / "alerts.yml").read_text())["groups"] for rule in group["rules"]
]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
NAME = re.compile(r"\b(?:valiant|process)_[a-z_]+\b")
SUFFIXES = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}


@pytest.fixture(scope="module")
def exposed(client, services, certificate):
    """Names of samples → their labels, of an API and a worker, with TLS."""
    from app.processes.processor_cores import Cores
    from app.services.observability.machine_metrics import Machine
    from workers.job_slots import Runner
    from workers.metrics_server import Measured
    from workers.trainers import Trainers

    trainers = Trainers()
    census = client.app.services.census
    while census.queue is None or census.workers is None:  # a scrape waits for the database no longer than a second
        client.get("/metrics")
    client.app.services.prediction_log.count()  # its thread does so within seconds
    families = [*client.app.state.metrics.registry.collect(), *client.app.services.registry.collect()]
    families += Measured(Runner(services, trainers, Cores.of_machine())).collect()
    families += Machine(
        services.settings.model_copy(update=dict(zip(("tls_cert", "tls_key"), certificate, strict=True)))
    ).collect()
    trainers.close()
    return {
        f"{family.name}{suffix}": getattr(family, "_labelnames", ())
        for family in families
        for suffix in SUFFIXES[family.type]
    }


def test_is_a_dashboard_that_grafana_loads():
    assert DASHBOARD["schemaVersion"] >= 39
    assert {"title", "uid", "panels", "templating", "time"} <= DASHBOARD.keys()
    source, *_ = DASHBOARD["templating"]["list"]
    assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in PANELS:
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0


def test_no_panel_covers_another():
    taken = set()
    for panel in DASHBOARD["panels"]:
        x, y, w, h = (panel["gridPos"][key] for key in "xywh")
        assert 0 <= x < x + w <= 24
        cells = set(itertools.product(range(x, x + w), range(y, y + h)))
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_metric_it_shows_is_exposed_with_the_labels_it_uses(exposed):
    names = set(NAME.findall(" ".join(EXPRESSIONS)))
    assert names <= exposed.keys(), names - exposed.keys()
    for expression in EXPRESSIONS:
        known = {"job", "instance", "le"}.union(*(exposed[name] for name in NAME.findall(expression)))
        grouped = re.findall(r"by \(([^)]*)\)", expression)
        matched = re.findall(r'(\w+)(?:=~|!~|!=|=)"', expression)
        used = {label.strip() for labels in grouped for label in labels.split(",")} | set(matched)
        assert used <= known, (expression, used - known)


def test_every_metric_of_ours_is_shown(exposed):
    shown = set(NAME.findall(" ".join(EXPRESSIONS)))
    ours = {name for name in exposed if name.startswith("valiant_")}
    assert ours <= shown, ours - shown


def test_every_metric_of_an_alert_is_exposed_with_the_labels_it_uses(exposed):
    """Those of other programs aside: of Prometheus itself, of cert-manager and of the prober."""
    others = {
        "certmanager_certificate_expiration_timestamp_seconds": (),
        "probe_ssl_earliest_cert_expiry": (),
        "up": (),
    }
    for rule in ALERTS:
        selectors = re.findall(r"\b([a-z_]+)\{([^}]*)\}", rule["expr"])
        names = set(re.findall(r"\b(?:valiant|certmanager|probe)_[a-z_]+\b", rule["expr"]))
        assert names <= exposed.keys() | others.keys(), rule["alert"]
        assert names | {"up"} >= {name for name, _ in selectors}
        for name, matchers in selectors:
            labels = set(re.findall(r"(\w+)(?:=~|!~|!=|=)", matchers))
            assert "job" in labels
            assert labels <= {"job", *(exposed | others)[name]}, rule["alert"]


def test_a_certificate_that_nothing_can_read_costs_its_metric_alone(certificate, tmp_path):
    from app.services.observability.machine_metrics import read_expiry

    (tmp_path / "broken.pem").write_text("-----BEGIN CERTIFICATE-----")
    assert read_expiry(tmp_path / "broken.pem") is None
    assert read_expiry(tmp_path / "missing.pem") is None
    assert read_expiry(certificate[0]) > 0
