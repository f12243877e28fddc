"""Rules of alerts, run by Prometheus' own promtool: each fires where it should, and is silent where all is well."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.slow  # promtool is no Python package: only .ci/run installs it

FILE = Path(__file__).parents[2] / "app" / "deployment" / "alerts.yml"
RULES = {rule["alert"]: rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]}
DAY, HOUR = 86_400, 3600
LENGTH = 3 * HOUR
"""Seconds of each series, from second 0 on; rules are evaluated every minute, and looked at in the end."""


def series(name, values, job="valiant", **labels):
    inner = ",".join(f'{key}="{value}"' for key, value in {**({"job": job} if job else {}), **labels}.items())
    return {"series": f"{name}{{{inner}}}", "values": values}


def steady(value):
    return f"{value}x{LENGTH // 60}"


def rising(per_minute, minutes=LENGTH // 60):
    return f"0+{per_minute}x{minutes}"


def requests(status, per_minute):
    return series("valiant_requests_total", rising(per_minute), route="/v1/jobs", method="GET", status=status)


def times(fast, slow):
    """Requests a minute that take 10 ms, and such that take 2 s."""
    labels = {"route": "/v1/models/{model}/predict", "method": "POST"}
    return [
        series("valiant_request_seconds_bucket", rising(count), le=bound, **labels)
        for bound, count in (("0.01", fast), ("1.0", fast), ("2.5", fast + slow), ("+Inf", fast + slow))
    ]


def lookups(hits, misses):
    return [
        series("valiant_model_lookups_total", rising(count), level="redis", result=result)
        for result, count in (("hit", hits), ("miss", misses))
    ]


def disk(free, size=10_000, reserve=100):
    amounts = {"free": free, "size": size, "reserve": reserve}
    return [series(f"valiant_disk_{what}_bytes", steady(value), instance="a:8000") for what, value in amounts.items()]


def backup(age):
    return [series("valiant_backup_timestamp_seconds", steady(LENGTH - age))]


EXPIRY = "valiant_certificate_expiry_timestamp_seconds"
CASES = {
    "ValiantNotScraped": (
        [series("up", steady(0), instance="a:8000")],
        "a:8000 does not serve its metrics.",
        [[series("up", steady(1), instance="a:8000")], [series("up", steady(0), job="other")]],
    ),
    "ValiantDatabaseAway": (
        [
            series("valiant_database_up", steady(1), instance="a"),
            series("valiant_database_up", steady(0), instance="b"),
        ],
        "A process gets no response from Postgres.",
        [[series("valiant_database_up", steady(1))], [series("valiant_database_up", f"1x{LENGTH // 60 - 2} 0 0")]],
    ),
    "ValiantQueueOld": (
        [series("valiant_queue_oldest_seconds", steady(1200))],
        "The job at the head of the queue has waited for 20m 0s.",
        [[series("valiant_queue_oldest_seconds", steady(600))]],
    ),
    "ValiantNoWorkers": (
        [series("valiant_workers", steady(0), state="alive"), series("valiant_workers", steady(3), state="silent")],
        "No worker is alive: jobs wait.",
        [[series("valiant_workers", steady(1), state="alive"), series("valiant_workers", steady(0), state="silent")]],
    ),
    "ValiantErrors": (
        [requests("200", 97), requests("500", 3)],
        "3% of all requests fail with a status of 500 or above.",
        [[requests("200", 997), requests("503", 3)], [requests("404", 100), requests("200", 1)], [requests("200", 0)]],
    ),
    "ValiantSlowPredictions": (
        times(95, 5),
        "One prediction in a hundred takes longer than 2.2s.",
        [times(1000, 1), times(0, 0)],
    ),
    "ValiantDiskLow": (disk(500), "5% of the disk of a:8000 is free.", [disk(1500)]),
    "ValiantDiskFull": (
        disk(50, size=400),
        "The disk of a:8000 is full: uploads and jobs are refused with 507.",
        [disk(500), disk(150)],
    ),
    "ValiantLeasesExpire": (
        [series("valiant_leases_expired_total", rising(0.2))],
        "Workers lost 6 jobs within half an hour, which begin again.",
        [[series("valiant_leases_expired_total", rising(0.05))], [series("valiant_leases_expired_total", steady(40))]],
    ),
    "ValiantCacheMisses": (
        lookups(20, 60),
        "75% of the models that are looked for in the cache come from Postgres instead.",
        [lookups(60, 20), lookups(1, 4), lookups(0, 0)],
    ),
    "ValiantCertificateExpires": (
        [series(EXPIRY, steady(LENGTH + 3 * DAY), instance="a:8000")],
        "The certificate of a:8000 expires in 3d 0h 0m 0s.",
        [
            [series(EXPIRY, steady(LENGTH + 15 * DAY), instance="a:8000")],
            [series("probe_ssl_earliest_cert_expiry", steady(LENGTH + 60 * DAY), job="probe")],
        ],
    ),
    "ValiantBackupOld": (
        backup(48 * HOUR),
        "The newest backup is 2d 0h 0m 0s old, or none was ever made.",
        [backup(24 * HOUR), backup(0)],
    ),
}


def promtool(*arguments, **options):
    program = shutil.which("promtool")
    assert program, "This needs promtool, which is not on the PATH: apt-get install prometheus"
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, **options)


def outcome(tmp_path, name, given, expected):
    """What promtool has against these alerts of a rule at the end of these series; empty where they are as expected."""
    test = {
        "interval": "1m",
        "input_series": given,
        "alert_rule_test": [{"eval_time": f"{LENGTH}s", "alertname": name, "exp_alerts": expected}],
    }
    (tmp_path / "test.yml").write_text(json.dumps({"rule_files": [str(FILE)], "tests": [test]}))
    done = promtool("test", "rules", str(tmp_path / "test.yml"))
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_every_rule_has_a_case():
    assert RULES.keys() == CASES.keys()


def test_prometheus_reads_them():
    done = promtool("check", "rules", str(FILE))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", CASES)
def test_fires_and_says_so(name, tmp_path):
    given, summary, _ = CASES[name]
    rule = RULES[name]
    labels = {"instance": "a:8000", "job": "valiant"} if "$labels" in summary_of(rule) else {}
    expected = {
        "exp_labels": labels | rule["labels"],
        "exp_annotations": {"summary": summary, "remedy": rule["annotations"]["remedy"]},
    }
    assert outcome(tmp_path, name, given, [expected]) == ""


def summary_of(rule):
    return rule["annotations"]["summary"]


@pytest.mark.parametrize(("name", "given"), [(name, given) for name, case in CASES.items() for given in case[2]])
def test_is_silent(name, given, tmp_path):
    assert outcome(tmp_path, name, given, []) == ""


@pytest.mark.parametrize("name", CASES)
def test_is_silent_where_nothing_is_measured(name, tmp_path):
    assert outcome(tmp_path, name, [series("unrelated", steady(1))], []) == ""


def test_a_missing_alert_is_seen(tmp_path):
    """So that silence means something: an alert that fires where none is expected is an error of promtool."""
    assert "ValiantNoWorkers" in outcome(tmp_path, "ValiantNoWorkers", CASES["ValiantNoWorkers"][0], [])
