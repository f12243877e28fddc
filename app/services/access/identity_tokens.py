"""Bearer tokens of an OpenID Connect provider: signed JSON Web Tokens (JWT), verified with the keys it publishes."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from app.base.errors import StartFailed
from app.base.faults import Fault
from app.base.settings import Settings
from app.schemas.keys import ROLES, Scope
from app.services.access.passes import (
    AuthUnavailable,
    CredentialExpired,
    CredentialInvalid,
    ProjectNotCovered,
    ScopeMissing,
    refusal,
)
from app.services.threads.lasting_threads import repeat

if TYPE_CHECKING:
    from jwt import PyJWK

ALGORITHMS = ("RS256", "ES256", "EdDSA")
"""Signatures that are accepted: none with a secret that both sides share."""
LEEWAY_SECONDS = 30
"""Difference of the clocks here and there."""
LEAST_SECONDS, FRESH_SECONDS = 30.0, 300.0
"""Between two readings of the provider's keys: at least, for tokens that name another; and at most."""
FETCH_SECONDS = 5.0
DEMANDED = ["iss", "aud", "exp", "iat", "sub"]
log = structlog.get_logger(__name__)


class Identity(NamedTuple):
    """The caller by a token: within one of the projects that it names."""

    subject: str
    project: str
    scopes: frozenset[Scope]
    expires: float
    signed_by: str
    """Id of the provider's key."""


class IdentityTokens:
    """Verification of tokens; without VALIANT_OIDC_ISSUER there are none."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises StartFailed without PyJWT, where tokens are wanted."""
        self._settings, self._clock = settings, clock
        self._keys: Mapping[str, PyJWK] = {}
        self._read_at: float | None = None
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        if self.accepted:
            try:
                import jwt  # noqa: F401, PLC0415  an extra
            except ImportError as error:
                raise StartFailed("VALIANT_OIDC_ISSUER needs a library: pip install 'valiant[oidc]'.") from error

    @property
    def accepted(self) -> bool:
        return self._settings.oidc_issuer is not None

    def start(self) -> None:
        """Read the keys now and then, so that a key which the provider withdraws opens nothing any more."""
        if self.accepted:
            repeat(self._follow, LEAST_SECONDS, self._stopped, name="identity_keys")

    def close(self) -> None:
        self._stopped.set()

    def trusts(self, key: str) -> bool:
        """False once the provider no longer publishes this key."""
        return key in self._keys

    def identify(self, token: bytes, project: str) -> Identity:
        """project: that of the header Valiant-Project; empty is the only one of the token.

        Raises CredentialInvalid, CredentialExpired, ProjectNotCovered, ScopeMissing, AuthUnavailable.
        """
        import jwt  # noqa: PLC0415  an extra

        settings = self._settings
        try:
            name = str(jwt.get_unverified_header(token).get("kid", ""))
            claims = jwt.decode(
                token,
                self._key(name),
                algorithms=ALGORITHMS,
                audience=settings.oidc_audience,
                issuer=settings.oidc_issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": DEMANDED},
            )
        except jwt.ExpiredSignatureError:
            raise refusal(CredentialExpired) from None
        except (jwt.PyJWTError, ValueError):
            raise refusal(CredentialInvalid) from None
        return Identity(
            subject=str(claims["sub"]),
            project=_chosen(_texts(claims.get(settings.oidc_projects_claim)), project),
            scopes=_scopes(_texts(claims.get(settings.oidc_role_claim)), settings.oidc_role_claim),
            expires=float(claims["exp"]),
            signed_by=name,
        )

    def _key(self, name: str) -> "PyJWK":
        """Raises CredentialInvalid, AuthUnavailable."""
        with self._lock:
            if name not in self._keys and self._is_older(LEAST_SECONDS):
                self._read()
        if not self._keys:
            raise AuthUnavailable("The keys of the identity provider could not be read.")
        if name not in self._keys:
            raise refusal(CredentialInvalid)
        return self._keys[name]

    def _is_older(self, seconds: float) -> bool:
        return self._read_at is None or self._clock() - self._read_at >= seconds

    def _read(self) -> None:
        """Read the keys anew; those that were read before are kept where it fails."""
        import httpx  # noqa: PLC0415  most processes that serve need none
        from jwt import PyJWTError  # noqa: PLC0415  an extra

        self._read_at = self._clock()
        try:
            self._keys = _published(str(self._settings.oidc_issuer))
        except (httpx.HTTPError, httpx.InvalidURL, PyJWTError, ValueError, KeyError, TypeError) as error:
            log.warning("identity_keys_not_read", error=type(error).__name__)

    def _follow(self) -> None:
        with self._lock:
            if self._is_older(FRESH_SECONDS):
                self._read()


def _published(issuer: str) -> "Mapping[str, PyJWK]":
    """The keys of a provider by their ids (OpenID Connect Discovery 1.0)."""
    from jwt import PyJWKSet  # noqa: PLC0415  an extra

    described = _json(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if described["issuer"] != issuer:
        raise ValueError("The description is that of another issuer.")
    keys = PyJWKSet.from_dict(_json(described["jwks_uri"])).keys
    return {str(key.key_id or ""): key for key in keys if key.algorithm_name in ALGORITHMS}


def _json(address: str) -> dict[str, Any]:
    import httpx  # noqa: PLC0415  as above

    response = httpx.get(address, timeout=FETCH_SECONDS)
    response.raise_for_status()
    body: dict[str, Any] = response.json()
    return body


def _texts(claim: object) -> list[str]:
    """One text, or a list of them."""
    values = claim if isinstance(claim, list) else [claim]
    return [value for value in values if isinstance(value, str)]


def _chosen(projects: list[str], named: str) -> str:
    """Raises ProjectNotCovered."""
    if named in projects:
        return named
    if named or not projects:
        raise ProjectNotCovered
    if len(projects) > 1:
        raise ProjectNotCovered("The token is for several projects.")
    return projects[0]


def _scopes(roles: list[str], claim: str) -> frozenset[Scope]:
    """Scopes of all roles together; other names in the claim mean nothing here. Raises ScopeMissing."""
    granted = [scopes for role, scopes in ROLES.items() if role in roles]
    if not granted:
        raise ScopeMissing(faults=[Fault("/header/Authorization", f"The claim {claim} has none of the roles here.")])
    return frozenset[Scope]().union(*granted)
