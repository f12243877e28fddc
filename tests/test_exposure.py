"""Who can reach a service: addresses, TLS, pages of other origins, and secrets from files."""

import ssl
import sys

import httpx
import pytest
from pydantic import ValidationError

from app.base.errors import StartFailed
from app.base.settings import Settings
from app.cli import main
from app.processes.ports import demand_keys, is_loopback

ORIGIN = "https://app.example"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_addresses_of_this_machine_need_no_key(host):
    assert is_loopback(host)
    demand_keys(Settings(host=host))


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "10.1.2.3", "192.0.2.1", "fe80::1", "no.such.host.invalid"])
def test_others_need_keys(host):
    assert not is_loopback(host)
    for auth in ("auto", "none"):
        with pytest.raises(StartFailed, match="VALIANT_AUTH=keys"):
            demand_keys(Settings(host=host, auth=auth))
    demand_keys(Settings(host=host, auth="keys"))
    demand_keys(Settings(host=host, allow_anonymous="network"))


@pytest.mark.parametrize("command", ["up", "demo", "api"])
def test_nothing_is_bound_without_keys(command, capsys, monkeypatch, data_folder):
    def bind(*_, **__):
        raise AssertionError("bound")

    monkeypatch.setattr("socket.create_server", bind)
    monkeypatch.setattr("socket.socket.bind", bind)
    for name in ("DATABASE", "BROKER", "CACHE"):
        monkeypatch.setenv(f"VALIANT_{name}_URL", "postgresql://v@127.0.0.1:1/v" if name == "DATABASE" else "redis://h")
    monkeypatch.setenv("VALIANT_DATA", str(data_folder))
    assert main([command, "--host", "0.0.0.0", "--port", "0"]) == 1
    assert "valiant keys create --role admin" in capsys.readouterr().err
    assert [finder for finder in sys.meta_path if type(finder).__name__ == "_Absent"] == []  # of this very process


def test_a_secret_comes_from_a_file(monkeypatch, tmp_path):
    (tmp_path / "url").write_text("postgresql://v:hidden@h/v\n")
    monkeypatch.setenv("VALIANT_DATABASE_URL_FILE", str(tmp_path / "url"))
    assert Settings().database_url.get_secret_value() == "postgresql://v:hidden@h/v"
    monkeypatch.setenv("VALIANT_DATABASE_URL", "postgresql://other")
    assert Settings().database_url.get_secret_value() == "postgresql://other"


def test_a_secret_that_cannot_be_read_is_named(monkeypatch, capsys):
    monkeypatch.setenv("VALIANT_CACHE_URL_FILE", "/no/such/file")
    assert main(["migrate"]) == 1
    assert "VALIANT_CACHE_URL_FILE cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("listed", ["*", "app.example", "https://app.example/", "https://*.example", "null"])
def test_origins_are_exact(listed):
    with pytest.raises(ValidationError, match="https://host"):
        Settings(cors_origins=listed)


def test_tls_needs_both_files(tmp_path):
    with pytest.raises(ValidationError, match="belong together"):
        Settings(tls_cert=tmp_path)


@pytest.fixture(scope="module")
def exposed(api_factory, certificate):
    """The address of an API with TLS, which pages of one origin may use."""
    cert, key = certificate
    return api_factory(tls_cert=cert, tls_key=key, cors_origins=f"{ORIGIN},https://second.example")[1]


@pytest.fixture(scope="module")
def secure(exposed, certificate):
    with httpx.Client(base_url=exposed, verify=ssl.create_default_context(cafile=certificate[0])) as client:
        yield client


def test_tls_is_spoken_and_required(secure, exposed):
    assert exposed.startswith("https://")
    response = secure.get("/livez")
    assert response.is_success
    assert "max-age" in response.headers["strict-transport-security"]


def test_old_tls_is_refused(exposed):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{exposed}/livez", verify=context)


def test_a_listed_origin_may_read_responses_and_no_other(secure, services, publish):
    publish(services.work, "shown")
    body = {"rows": [{"length": 5.1, "width": 0.2, "size": "small"}]}
    for _ in range(2):  # with a head that is new, and one that is remembered
        for path in ("/v1/models/shown/predict", "/v1/models/absent/predict"):
            response = secure.post(path, json=body, headers={"Origin": ORIGIN})
            assert response.headers["access-control-allow-origin"] == ORIGIN
            assert "origin" in response.headers["vary"].lower()
    assert secure.post("/v1/models/shown/predict", json=body).is_success
    foreign = secure.post("/v1/models/shown/predict", json=body, headers={"Origin": "https://evil.example"})
    assert foreign.json()["code"] == "origin_foreign"
    assert "access-control-allow-origin" not in foreign.headers


def test_a_preflight_is_for_listed_origins(secure):
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    allowed = secure.options("/v1/jobs/train", headers={"Origin": "https://second.example", **preflight})
    assert allowed.headers["access-control-allow-origin"] == "https://second.example"
    assert "authorization" in allowed.headers["access-control-allow-headers"].lower()
    assert (
        "access-control-allow-origin"
        not in secure.options("/v1/jobs/train", headers={"Origin": "https://evil.example", **preflight}).headers
    )
