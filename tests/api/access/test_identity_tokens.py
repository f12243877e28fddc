"""Tokens of an identity provider: a real one on this machine, and every way in which a token may be wrong."""

import hmac
import json
import threading
import time
from base64 import urlsafe_b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from starlette.testclient import TestClient

from app.base.errors import StartFailed
from app.schemas.projects import DEFAULT_NAME
from app.services.access.identity_tokens import FRESH_SECONDS, LEAST_SECONDS, IdentityTokens
from app.services.access.passes import AuthUnavailable, CredentialInvalid

AUDIENCE = "valiant-tests"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SIGNERS = {
    "RS256": (RSA, RSAAlgorithm),
    "ES256": (ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
    "EdDSA": (ed25519.Ed25519PrivateKey.generate(), OKPAlgorithm),
}


class Provider:
    """An OpenID Connect provider as far as its keys go."""

    def __init__(self):
        self.published = {name: self._published(name) for name in SIGNERS}
        self.reads = 0
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                described = {"issuer": provider.issuer, "jwks_uri": f"{provider.issuer}/keys"}
                provider.reads += self.path == "/keys"
                body = {"keys": list(provider.published.values())} if self.path == "/keys" else described
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def token(self, algorithm="RS256", *, headers=None, key=None, kid=None, **claims):
        """Signed as the algorithm says; kid: the key that it names, else that of the algorithm."""
        now = int(time.time())
        standard = {"iss": self.issuer, "aud": AUDIENCE, "iat": now, "exp": now + 600, "sub": "user-7"}
        standard |= {"valiant_projects": [DEFAULT_NAME], "valiant_role": "admin"}
        named = {name: value for name, value in (standard | claims).items() if value is not None}
        key = SIGNERS[algorithm][0] if key is None and algorithm in SIGNERS else key
        return jwt.encode(named, key, algorithm, headers={"kid": kid or algorithm} | (headers or {}))

    def token_of_public_key(self):
        """Authenticated with the public key as if it were a secret: what a careless reader accepts."""
        text = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        header = urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT","kid":"RS256"}').rstrip(b"=")
        signed = b".".join([header, self.token().encode().split(b".")[1]])
        return b".".join([signed, urlsafe_b64encode(hmac.digest(text, signed, "sha256")).rstrip(b"=")]).decode()

    def _published(self, name):
        private, algorithm = SIGNERS[name]
        return algorithm.to_jwk(private.public_key(), as_dict=True) | {"kid": name, "use": "sig", "alg": name}


@pytest.fixture(scope="module")
def provider():
    made = Provider()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(scope="module")
def trusting(settings, provider):
    return settings.model_copy(update={"auth": "keys", "oidc_issuer": provider.issuer, "oidc_audience": AUDIENCE})


@pytest.fixture(scope="module")
def client(trusting):
    from app.main import create_app

    with TestClient(create_app(trusting)) as opened:
        yield opened


def sent(token, **headers):
    return {"Authorization": f"Bearer {token}", **headers}


@pytest.mark.parametrize("algorithm", SIGNERS)
def test_a_signed_token_is_accepted(client, provider, algorithm):
    caller = client.get("/v1/me", headers=sent(provider.token(algorithm))).json()
    assert (caller["name"], caller["project"]) == ("user-7", DEFAULT_NAME)
    assert caller["scopes"] == ["admin", "predict", "read", "write"]
    assert "key" not in caller


NOW = int(time.time())
WRONG = {
    "no signature": lambda p: p.token("none", kid="RS256"),
    "a shared secret": Provider.token_of_public_key,
    "another signer": lambda p: p.token(key=rsa.generate_private_key(public_exponent=65537, key_size=2048)),
    "another signature than the key's": lambda p: p.token("ES256", kid="RS256"),
    "a key that is not published": lambda p: p.token(kid="unknown"),
    "another audience": lambda p: p.token(aud="others"),
    "another issuer": lambda p: p.token(iss="https://elsewhere.example"),
    "issued tomorrow": lambda p: p.token(iat=NOW + 86_400),
    "not yet": lambda p: p.token(nbf=NOW + 86_400),
    "no end": lambda p: p.token(exp=None),
    "no time of issue": lambda p: p.token(iat=None),
    "no subject": lambda p: p.token(sub=None),
    "a critical extension": lambda p: p.token(headers={"crit": ["b64x"], "b64x": True}),
    "a changed claim": lambda p: p.token().replace(".", ".e30", 1),
    "no token": lambda _: "a.b.c",
    "nothing": lambda _: "eyJ",
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_token_is_refused(client, provider, what):
    response = client.get("/v1/me", headers=sent(WRONG[what](provider)))
    assert (response.status_code, response.json()["code"]) == (401, "credential_invalid"), response.text
    assert "invalid_token" in response.headers["www-authenticate"]


def test_a_token_ends(client, provider):
    response = client.get("/v1/me", headers=sent(provider.token(exp=NOW - 3600)))
    assert (response.status_code, response.json()["code"]) == (401, "credential_expired")
    short = sent(provider.token(exp=int(time.time()) + 1))
    assert client.get("/v1/me", headers=short).status_code in {200, 401}
    until = time.monotonic() + 30
    while (response := client.get("/v1/me", headers=short)).is_success and time.monotonic() < until:
        time.sleep(0.1)
    assert response.json()["code"] == "credential_expired"


def test_roles_become_scopes(client, provider):
    several = client.get("/v1/me", headers=sent(provider.token(valiant_role=["staff", "viewer", "caller"])))
    assert several.json()["scopes"] == ["predict", "read"]
    for none in (None, "staff", ["staff"], 7, {"viewer": True}):
        response = client.get("/v1/me", headers=sent(provider.token(valiant_role=none)))
        assert (response.status_code, response.json()["code"]) == (403, "scope_missing")
        assert "valiant_role" in response.json()["errors"][0]["detail"]


def test_a_token_reaches_the_projects_that_it_names(client, services, provider):
    with services.work.across_projects() as w:
        names = [w.projects.ensure(f"p-{uuid4().hex[:8]}").name for _ in range(3)]
    token = provider.token(valiant_projects=names[:2])
    for name in names[:2]:
        caller = client.get("/v1/me", headers=sent(token, **{"Valiant-Project": name}))
        assert caller.json()["project"] == name
    for headers in (
        sent(token),
        sent(token, **{"Valiant-Project": names[2]}),
        sent(provider.token(valiant_projects=[])),
    ):
        response = client.get("/v1/me", headers=headers)
        assert (response.status_code, response.json()["code"]) == (403, "project_not_covered")
    for absent in ("no-such-project", 7):
        response = client.get("/v1/me", headers=sent(provider.token(valiant_projects=absent)))
        assert response.json()["code"] == "project_not_covered"


def test_a_key_with_the_name_of_another_project_is_refused(client, services):
    from app.schemas.keys import KeySpec

    made = services.keys.create_first(KeySpec(name="k", role="admin"), DEFAULT_NAME)
    assert client.get("/v1/me", headers=sent(made.secret, **{"Valiant-Project": DEFAULT_NAME})).is_success
    response = client.get("/v1/me", headers=sent(made.secret, **{"Valiant-Project": "other"}))
    assert response.json()["code"] == "project_not_covered"


def test_what_a_token_changes_is_recorded_with_its_subject(client, provider):
    headers = sent(provider.token(sub="auditor|42"))
    key = client.post("/v1/keys", headers=headers, json={"name": "mine", "role": "viewer"}).json()
    assert key["created_by"] == "auditor|42"
    entry = client.get("/v1/audit", headers=headers).json()["items"][0]
    assert (entry["actor"], entry["action"]) == ("auditor|42", "create_key")


def test_a_withdrawn_signing_key_opens_nothing_more(trusting, provider, services):
    """And the provider is read no more often than twice a minute, whatever is sent."""
    now = 1000.0
    tokens = IdentityTokens(trusting, clock=lambda: now)
    begun = provider.reads
    tokens.identify(provider.token().encode(), "")
    assert tokens.trusts("RS256")
    for _ in range(5):
        with pytest.raises(CredentialInvalid):
            tokens.identify(provider.token(kid="unknown").encode(), "")
    assert provider.reads == begun + 1
    withdrawn = provider.published.pop("RS256")
    now += max(LEAST_SECONDS, FRESH_SECONDS)
    with pytest.raises(CredentialInvalid):
        tokens.identify(provider.token(kid="unknown").encode(), "")
    assert not tokens.trusts("RS256")
    provider.published["RS256"] = withdrawn


def test_a_provider_that_is_away_or_another_is_not_believed(trusting, provider):
    away = trusting.model_copy(update={"oidc_issuer": "http://127.0.0.1:1"})
    other = trusting.model_copy(update={"oidc_issuer": provider.issuer.replace("127.0.0.1", "localhost")})
    for settings in (away, other):
        with pytest.raises(AuthUnavailable):
            IdentityTokens(settings).identify(provider.token().encode(), "")


def test_an_issuer_without_an_audience_is_refused(settings):
    from app.base.settings import Settings

    with pytest.raises(ValueError, match="VALIANT_OIDC_AUDIENCE"):
        Settings(oidc_issuer="https://id.example")


def test_a_missing_library_is_named(trusting, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(StartFailed, match=r"valiant\[oidc\]"):
        IdentityTokens(trusting)
