"""Where the API listens, and what that is called from outside."""

import socket

from app.errors import StartFailed
from app.settings import Settings

BACKLOG = 2048
ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - recognised here, not bound


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is any free one. Raises StartFailed if the address is taken or not ours."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise StartFailed(
            f"Cannot listen on {host} port {port}: {error.strerror}. Choose another with --port or VALIANT_PORT."
        ) from error


def address(settings: Settings) -> str:
    """How a client on this machine reaches the API."""
    host = ANYWHERE.get(settings.host, settings.host)
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"
