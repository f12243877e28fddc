"""Files of the console, and the policy under which a browser runs them: it loads nothing from elsewhere."""

import base64
import gzip
import hashlib
import json
import re
from functools import cache
from importlib import resources
from typing import NamedTuple

HOME = "/console/"
FILES = resources.files(__package__)
SAMPLES = resources.files("app") / "samples"
MODULES = {"preact": "preact.mjs", "preact/hooks": "preact-hooks.mjs", "htm": "htm.mjs"}
"""Names under which scripts import those of others."""
IMPORTS = json.dumps({
    "imports": {
        **{name: f"{HOME}vendor/{file}" for name, file in MODULES.items()},
        "vega-interpreter": f"{HOME}vendor/vega-interpreter.js",
        "vega-util": f"{HOME}charts/vega-util.mjs",
    }
})  # fmt: skip
POLICY = (
    "default-src 'none'; script-src 'self' 'sha256-"
    + base64.b64encode(hashlib.sha256(IMPORTS.encode()).digest()).decode()
    + "'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
MEDIA_TYPES = {
    "mjs": "text/javascript; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
}
SERVED = re.compile(r"(vendor/|samples/|pages/|parts/|charts/)?[a-z][a-z0-9_.-]*\.(mjs|js|css|csv)")


class File(NamedTuple):
    """A file as it is sent."""

    media_type: str
    gzipped: bytes
    etag: str


@cache
def page() -> str:
    """The one page, with the names of modules within."""
    return (FILES / "index.html").read_text(encoding="utf-8").replace("IMPORTS", IMPORTS)


@cache
def file(name: str) -> File | None:
    """A script, a style sheet or a sample, compressed once per process; None for any other name."""
    named = SERVED.fullmatch(name)
    if named is None:
        return None
    place = SAMPLES / name.removeprefix("samples/") if named[1] == "samples/" else FILES / name
    if not place.is_file():
        return None
    content = place.read_bytes()
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return File(MEDIA_TYPES[named[2]], gzip.compress(content, mtime=0), etag)
