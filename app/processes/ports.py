"""Addresses that the API listens on, and their names from outside."""

import ctypes
import ipaddress
import select
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from app.base.errors import StartFailed
from app.base.settings import Settings

BACKLOG = 2048
ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - recognised here, not bound

ATTACH_FILTER = 26
"""SO_ATTACH_FILTER of Linux, which the standard library does not name."""
NO_SYN = b"".join(
    struct.pack("=HBBI", *instruction)
    for instruction in (
        (0x30, 0, 0, 13),  # load the flags of the TCP header
        (0x45, 0, 1, 0x02),  # unless SYN is set, go on behind the next one
        (0x06, 0, 0, 0),  # drop the packet
        (0x06, 0, 0, 0xFFFFFFFF),  # accept it
    )
)
"""A program for the kernel's packet filter."""


def demand_keys(settings: Settings) -> None:
    """Raises StartFailed where other machines could send requests without a key."""
    if settings.auth == "keys" or settings.allow_anonymous == "network" or is_loopback(settings.host):
        return
    raise StartFailed(
        f"Listening on {settings.host or 'all addresses'} needs keys: `valiant keys create --role admin`, then "
        "VALIANT_AUTH=keys. Where a proxy checks who may call, VALIANT_ALLOW_ANONYMOUS=network does without."
    )


def is_loopback(host: str) -> bool:
    """True if only this machine reaches what listens on it. Nothing, as for all addresses, is not."""
    try:
        addresses = {address[0] for *_, address in socket.getaddrinfo(host or None, 0, flags=socket.AI_PASSIVE)}
    except OSError:
        return False
    return all(ipaddress.ip_address(str(address).partition("%")[0]).is_loopback for address in addresses)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is any free one. Raises StartFailed if the address is taken or not ours."""
    with _failing_to_listen(host, port):
        family, address = _resolve(host, port)
        return socket.create_server(address, family=family, backlog=BACKLOG)


def bind(host: str, port: int) -> socket.socket:
    """A socket that refuses connections until it listens. Raises StartFailed as `listen`."""
    with _failing_to_listen(host, port), ExitStack() as undo:
        family, address = _resolve(host, port)
        bound = undo.enter_context(socket.socket(family))
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
        undo.pop_all()
        return bound


def _resolve(host: str, port: int) -> tuple[int, tuple[Any, ...]]:
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return family, address[:2]


@contextmanager
def _failing_to_listen(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StartFailed(
            f"Cannot listen on {host} port {port}: {error.strerror}. Choose another with --port or VALIANT_PORT."
        ) from error


def address(settings: Settings) -> str:
    """Address at which a client on this machine reaches the API."""
    host = ANYWHERE.get(settings.host, settings.host)
    scheme = "https" if settings.tls_cert else "http"
    return f"{scheme}://[{host}]:{settings.port}" if ":" in host else f"{scheme}://{host}:{settings.port}"


def refuse_new(listener: socket.socket) -> bool:
    """Drop attempts to connect from now on; connections in the queue stay. False where the system cannot do that.

    Whoever tries again, as TCP does after a second, finds the port closed, and a proxy goes on to another server.
    """
    if sys.platform != "linux":
        return False
    program = ctypes.create_string_buffer(NO_SYN, len(NO_SYN))
    described = struct.pack("HL", len(NO_SYN) // 8, ctypes.addressof(program))
    try:
        listener.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, described)
    except OSError:
        return False
    return True


def accepts(listener: socket.socket) -> bool:
    """True if a connection waits to be accepted."""
    waiting = select.poll()
    waiting.register(listener, select.POLLIN)
    return bool(waiting.poll(0))
