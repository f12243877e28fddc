"""DNS rebinding and cross-site requests: which values of Host and Origin are served.

A page of another site can make a browser send requests to a service on the browser's machine or network. If the site's
name is resolved to our address, that name is the Host; else the site is the Origin. An IP address as Host is served: it
is not resolved, so no site can rebind it, and probes of containers send it.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence

from app.api.edge.problems import MalformedRequest
from app.base.errors import ValiantError

HOST = re.compile(r"(?P<name>[a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
ORIGIN = re.compile(r"https?://(?P<host>[^/]+)")
EVERY = "*"


class HostUnknown(ValiantError):
    code, status, title = "host_unknown", 421, "The service is not served under this host name"
    remedy = "Use localhost or an IP address, or add the name to the setting VALIANT_HOSTS."


class OriginForeign(ValiantError):
    code, status, title = "origin_foreign", 403, "Pages of other sites may not use the service"
    remedy = "Serve the page from the service's own address, or add its host name to the setting VALIANT_HOSTS."


class Hosts:
    """The host names under which the service is reached."""

    def __init__(self, listed: Iterable[str], own_host: str = "localhost", origins: Iterable[str] = ()) -> None:
        """listed: besides localhost, all IP addresses and `own_host`; `*` admits every Host, but no foreign Origin.

        origins: those whose pages may use the service.
        """
        self.origins = frozenset(origin.strip() for origin in origins) - {""}
        self._own_name = own_host.lower()
        self._listed = frozenset(name.strip().lower() for name in listed) - {""}

    def check(self, headers: Sequence[tuple[bytes, bytes]], version: str = "1.1") -> None:
        """Raises MalformedRequest, HostUnknown, OriginForeign. HTTP/1.0 needs no Host, and no browser uses it."""
        hosts, origins = _values(headers, b"host"), _values(headers, b"origin")
        if len(hosts) > 1 or len(origins) > 1 or (not hosts and version != "1.0"):
            raise MalformedRequest("A request has one Host header, and at most one Origin header.")
        if hosts and not self._serves(hosts[0]):
            raise HostUnknown
        if origins and origins[0] not in self.origins and not self._own(origins[0], hosts):
            raise OriginForeign

    def is_cross_origin(self, headers: Sequence[tuple[bytes, bytes]]) -> bool:
        """True if a page may read the response only by a header of its own, which the shortcut does not add."""
        return bool(self.origins) and any(name == b"origin" for name, _ in headers)

    def _serves(self, host: str) -> bool:
        name = _name(host)
        return name is not None and (
            EVERY in self._listed
            or name in self._listed
            or name in {"localhost", self._own_name}
            or name.endswith(".localhost")
            or _is_address(name)
        )

    def _own(self, origin: str, hosts: Sequence[str]) -> bool:
        """By any scheme: behind a proxy that ends TLS, ours is not the browser's."""
        match = ORIGIN.fullmatch(origin)
        return match is not None and (match["host"] in hosts or _name(match["host"]) in self._listed)


def _values(headers: Sequence[tuple[bytes, bytes]], requested: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for name, value in headers if name == requested]


def _name(host: str) -> str | None:
    """Without the port, and without the dot that may end a name."""
    match = HOST.fullmatch(host)
    return match and match["name"].removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
