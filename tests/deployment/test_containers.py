"""Image and compose file, read: what they name exists, and every service is locked down."""

import contextlib
import os
import re
import shlex
import subprocess
import time
from pathlib import Path

import psycopg
import pytest
import yaml
from psycopg import sql
from redis import AuthenticationError, Redis
from redis import ConnectionError as RedisUnreachable
from sqlalchemy import make_url, text

from app.base.settings import Settings
from app.cli import main
from app.embedded import redis
from app.processes import processor_cores
from app.processes.ports import listen
from app.store.engine import make_engine

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
NGINX = (ROOT / "app" / "deployment" / "nginx.conf").read_text()
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "valiant"}
FIRST, LAST = DOCKERFILE.split("FROM ${PYTHON}")[1:]


def instructions(text, word):
    joined = re.sub(r"\\\n\s*", "", text)
    return [line.removeprefix(word).strip() for line in joined.splitlines() if line.startswith(f"{word} ")]


def known_variables(text):
    return {name for name in re.findall(r"VALIANT_[A-Z_]+", text) if not name.endswith("_")}


@pytest.mark.parametrize("text", [DOCKERFILE, (ROOT / "docker-compose.yml").read_text()], ids=["image", "compose"])
def test_every_variable_is_a_setting(text):
    assert known_variables(text) <= {f"VALIANT_{name.upper()}" for name in Settings.model_fields}


def test_values_in_the_compose_file_are_acceptable(monkeypatch):
    for service in OURS.values():
        for name, value in service["environment"].items():
            monkeypatch.setenv(name, str(value))
        assert Settings().broker_url is not None


@pytest.mark.parametrize("name", OURS)
def test_every_command_exists(name, capsys):
    with pytest.raises(SystemExit) as end:
        main([*OURS[name]["command"], "--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out


def test_the_image_is_built_once():
    """Several builds of one name leave all but the last image without a name."""
    assert [name for name, service in OURS.items() if "build" in service] == ["migrate"]


def test_image_runs_as_nobody_in_particular():
    (user,) = instructions(LAST, "USER")
    assert int(user.split(":")[0]) >= 1000
    assert instructions(LAST, "STOPSIGNAL") == ["SIGTERM"]
    (health,) = instructions(LAST, "HEALTHCHECK")
    assert health.endswith('CMD ["valiant", "health"]')
    assert "--retries=8 " in health  # a machine that has no time for it is no reason to restart it
    assert instructions(LAST, "ENTRYPOINT") == ['["valiant"]']


def test_image_installs_only_from_the_lock():
    installs = [line for line in instructions(FIRST, "RUN") if "pip install" in line]
    assert len(installs) == 2
    for line in installs:
        words = set(shlex.split(line))
        assert {"--require-hashes", "--only-binary=:all:"} <= words or {"--no-deps", "--no-build-isolation"} <= words
    assert "pip install" not in LAST
    assert "embedded" not in " ".join(installs)


def test_the_engine_is_sent_what_the_image_copies_and_nothing_else():
    copied = {source for line in instructions(FIRST, "COPY") for source in line.split()[:-1]}
    assert all((ROOT / source).exists() for source in copied)
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert rules == ["*", *(f"!{source}" for source in sorted(copied)), "**/__pycache__"]


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_locked_down(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "caddy" else [])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["stop_grace_period"] == "35s"
    assert not service.get("privileged")


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_fills_the_disk_or_takes_the_machine(name):
    service = SERVICES[name]
    assert set(service["logging"]["options"]) == {"max-size", "max-file"}
    assert set(service["deploy"]["resources"]["limits"]) == {"memory", "pids"}


def test_limits_leave_room_for_what_the_settings_allow(monkeypatch):
    memory = {name: bytes_of(service["deploy"]["resources"]["limits"]["memory"]) for name, service in SERVICES.items()}
    settings = Settings()
    monkeypatch.setattr(processor_cores, "count_memory", lambda: memory["worker"])
    monkeypatch.setattr(processor_cores, "count_cores", lambda: 64)
    assert memory["worker"] > processor_cores.count_slots(settings) * settings.job_memory_bytes
    parsers = settings.parse_concurrency * settings.parse_memory_bytes
    assert memory["api"] > parsers + settings.model_memory_bytes + settings.plot_memory_bytes
    for name in ("broker", "cache"):  # else it is killed before it refuses or forgets anything
        command = shlex.split(SERVICES[name]["command"][-1])
        assert memory[name] > bytes_of(command[command.index("--maxmemory") + 1].removesuffix("b"))


def bytes_of(text):
    return int(text[:-1]) << {"m": 20, "g": 30}[text[-1]]


def test_the_image_is_checked_the_same_whatever_it_runs():
    assert {name for name, service in OURS.items() if "healthcheck" in service} == {"migrate"}  # which ends
    assert "VALIANT_WORKER_METRICS_PORT=" in LAST


def test_the_password_of_the_database_is_no_part_of_a_url():
    expression = SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"]
    for service in OURS.values():
        assert service["environment"]["PGPASSWORD"] == expression
        assert "$" not in service["environment"]["VALIANT_DATABASE_URL"]


@pytest.fixture
def guarded(settings):
    """The URL of a role that needs a password, on the shared server, and a password that fits no URL."""
    admin = psycopg.conninfo.make_conninfo(plain(settings.database_url.get_secret_value()))
    with psycopg.connect(admin, autocommit=True) as connection:
        rules = Path(connection.execute("show hba_file").fetchone()[0])
        before = rules.read_text()
        connection.execute(sql.SQL("create role guarded login password {}").format(PASSWORD))
        rules.write_text(f"local all guarded scram-sha-256\n{before}")
        connection.execute("select pg_reload_conf()")
        yield make_url(settings.database_url.get_secret_value()).set(username="guarded").render_as_string()
        rules.write_text(before)
        connection.execute("select pg_reload_conf()")
        connection.execute("drop role guarded")


def plain(url):
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


PASSWORD = "p@ss/w#rd:100%?&' \\ü"


def test_any_password_opens_the_database(guarded, settings, monkeypatch, capsys):
    monkeypatch.setenv("VALIANT_DATABASE_URL", guarded)
    monkeypatch.setenv("PGPASSWORD", "wrong")
    deadline = time.monotonic() + 10
    while main(["migrate"]) == 0 and time.monotonic() < deadline:  # until the server has read its rules again
        time.sleep(0.05)
    assert 'password authentication failed for user "guarded"' in capsys.readouterr().err
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    engine = make_engine(Settings(), role="api")
    with engine.connect() as connection:
        assert connection.scalar(text("select current_user")) == "guarded"
    engine.dispose()


def test_one_door():
    """And those of two profiles: TLS before it, and a dashboard for this machine alone."""
    doors = {name: service for name, service in SERVICES.items() if "ports" in service}
    assert {name: service.get("profiles") for name, service in doors.items()} == {
        "nginx": None, "caddy": ["tls"], "grafana": ["monitoring"]
    }  # fmt: skip
    assert doors["grafana"]["ports"] == ["127.0.0.1:3000:3000"]
    assert SERVICES["api"]["deploy"]["replicas"] == 2


def test_nginx_reads_the_shipped_file():
    """As a file: Compose cannot write an inline one into a container whose file system is read-only."""
    (config,) = SERVICES["nginx"]["configs"]
    assert COMPOSE["configs"][config["source"]] == {"file": "app/deployment/nginx.conf"}
    command = SERVICES["nginx"]["command"]
    assert command[command.index("-c") + 1] == config["target"]
    assert command[command.index("-p") + 1] in SERVICES["nginx"]["tmpfs"]


def test_nginx_finds_every_replica():
    upstream = re.search(r"upstream api \{(.+?)\}", NGINX, re.DOTALL)[1]
    assert re.search(
        r"resolver 127\.0\.0\.11 valid=2s;.*server api:8000 resolve max_fails=1 fail_timeout=2s;", upstream, re.DOTALL
    )
    assert float(SERVICES["api"]["environment"]["VALIANT_DRAIN_SECONDS"]) > 2
    assert (SERVICES["nginx"]["ports"], "listen 8080;" in NGINX) == (["127.0.0.1:8000:8080"], True)


def test_dependencies_volumes_and_configs_exist():
    for service in SERVICES.values():
        assert set(service.get("depends_on", {})) <= set(SERVICES)
        conditions = service.get("depends_on", {})
        for other, expected in conditions.items() if isinstance(conditions, dict) else ():
            if expected["condition"] == "service_healthy":
                assert "test" in SERVICES[other].get("healthcheck", {}) or SERVICES[other]["image"] == "valiant"
        assert {volume.split(":")[0] for volume in service.get("volumes", [])} <= set(COMPOSE["volumes"])
        assert {config["source"] for config in service.get("configs", [])} <= set(COMPOSE["configs"])
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
    for config in COMPOSE["configs"].values():
        assert (ROOT / config["file"]).is_file()
    rules = (ROOT / ".gitignore").read_text().splitlines()
    assert all(f"/{secret['file'].split('/')[0]}/" in rules for secret in COMPOSE["secrets"].values())


def test_an_upgrade_starts_one_replica_more_than_there_are():
    scales = re.findall(r"--scale api=(\d+)", (ROOT / "app" / "docs" / "operation.md").read_text())
    assert scales == [str(SERVICES["api"]["deploy"]["replicas"] + 1)]


def test_migrations_come_first_and_once():
    """A migration that cannot succeed, for want of the right password, say, ends after some tries: so does `up`."""
    assert SERVICES["migrate"]["restart"] == "on-failure:5"
    assert SERVICES["postgres"]["healthcheck"]["test"][:3] == ["CMD", "pg_isready", "--host=127.0.0.1"]
    for name in ("api", "worker"):
        assert SERVICES[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


def test_broker_forgets_nothing_and_the_cache_is_bounded():
    broker, cache = (" ".join(SERVICES[name]["command"]) for name in ("broker", "cache"))
    assert "--maxmemory-policy noeviction" in broker
    assert "--appendonly yes" in broker
    assert "--maxmemory-policy allkeys-lfu" in cache
    assert re.search(r"--maxmemory \d+mb", cache)


@pytest.mark.parametrize("name", ["broker", "cache"])
def test_redis_is_reached_with_its_password_alone(name, tmp_path):
    """The service's own command, run here: by the URL of the API, and by the health check."""
    values = {"REDIS_PASSWORD": "s3cret"}
    service = SERVICES[name]
    command = [word.replace("$$", "$") for word in service["command"]]
    environment = {key: interpolated(value, values) for key, value in service["environment"].items()}
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    (tmp_path / "valkey-server").symlink_to(redis._program(name))
    command[-1] += f" --port {port} --bind 127.0.0.1 --dir {tmp_path}"
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    server = subprocess.Popen(command, env=environment | path, stdout=subprocess.DEVNULL)
    try:
        url = interpolated(OURS["api"]["environment"][f"VALIANT_{name.upper()}_URL"], values)
        client = Redis.from_url(url.replace(f"{name}:6379", f"127.0.0.1:{port}"))
        assert wait_for_pong(client)
        assert client.config_get("maxmemory-policy")["maxmemory-policy"] in {"noeviction", "allkeys-lfu"}
        with pytest.raises(AuthenticationError):
            Redis(port=port).ping()
    finally:
        server.terminate()
        server.wait()


def interpolated(text, values):
    """As Compose puts variables in."""
    return re.sub(r"\$\{(\w+)(?::[?-][^}]*)?\}", lambda match: values[match[1]], text)


def wait_for_pong(client):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with contextlib.suppress(RedisUnreachable):
            return client.ping()
        time.sleep(0.02)
    return False
