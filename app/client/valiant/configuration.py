"""Address and key of the service: arguments, then the environment, then `~/.config/valiant/config.toml`."""

import json
import os
import tomllib
from pathlib import Path
from typing import NamedTuple

DEFAULT_URL = "http://127.0.0.1:8000"


class Connection(NamedTuple):
    url: str
    key: str | None


def configured(url: str | None = None, key: str | None = None) -> Connection:
    """The first that is given of each. The key of a file goes only to the address of the same file."""
    stored = _stored()
    address = (url or os.environ.get("VALIANT_URL") or stored.get("url") or DEFAULT_URL).rstrip("/")
    stored_key = stored.get("key") if address == stored.get("url") else None
    return Connection(address, key or os.environ.get("VALIANT_KEY") or stored_key)


def store(url: str, key: str | None) -> Path:
    """Write the file, which only its owner can read."""
    path = _path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in (("url", url.rstrip("/")), ("key", key)) if value]
    made = path.with_suffix(".part")
    made.unlink(missing_ok=True)
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.writelines(lines)
    made.replace(path)
    return path


def _stored() -> dict[str, str]:
    try:
        settings = tomllib.loads(_path().read_text())
    except FileNotFoundError:
        return {}
    return {name: str(value) for name, value in settings.items()}


def _path() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "valiant" / "config.toml"
