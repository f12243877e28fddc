"""/docs: Swagger UI from vendored files, a plain page beside it, and policies that admit nothing else."""

import base64
import gzip
import hashlib
import re
from html.parser import HTMLParser

import pytest

from app.docs import explorer, frame


class Elements(HTMLParser):
    """Addresses that a page loads by itself, its inline scripts and styles, and where its forms and links lead."""

    def __init__(self, html):
        super().__init__()
        self.loaded, self.inline, self.links, self.forms, self._open = {}, {"script": [], "style": []}, [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "a":
            self.links.append(given["href"])
        elif address := given.get("src") or given.get("href"):
            self.loaded[address] = given.get("integrity")
        if tag == "form":
            self.forms.append(given["action"])
        self._open = tag

    def handle_data(self, data):
        if self._open in self.inline and data.strip():
            self.inline[self._open].append(data)

    def handle_endtag(self, _):
        self._open = None


def sha(name, data):
    return f"{name}-{base64.b64encode(hashlib.new(name, data).digest()).decode()}"


def sources(policy):
    """Kind of source → what it admits."""
    return {kind: admitted for kind, *admitted in (part.split() for part in policy.split("; "))}


def test_vendored_files_are_those_of_the_package():
    files = {file.name: file.read_bytes() for file in explorer.VENDORED.iterdir() if file.name != "integrity.txt"}
    assert {name: sha("sha384", data) for name, data in files.items()} == explorer.INTEGRITY
    assert re.fullmatch(r"swagger-ui-dist 5\.[0-9]+\.[0-9]+ sha512-[A-Za-z0-9+/]{86}==", explorer.PACKAGE)
    assert b"Apache License" in files["LICENSE"]


def test_the_interactive_page_loads_its_own_files_and_no_others(client):
    page = Elements(client.get("/docs").text)
    assert set(page.loaded) == {f"{explorer.FOLDER}/{name}" for name in explorer.MEDIA_TYPES}
    for address, integrity in page.loaded.items():
        response = client.get(address)
        assert sha("sha384", response.content) == integrity
        assert response.headers["content-type"] == explorer.MEDIA_TYPES[address.rpartition("/")[2]]
        assert "immutable" in response.headers["cache-control"]
    assert {"/docs/plain", "/docs/guide", "/openapi.json"} <= set(page.links)
    assert [script for script in page.inline["script"] if 'url: "/openapi.json"' in script]


@pytest.mark.parametrize("name", ["integrity.txt", "LICENSE", "swagger-ui.js", "..%2Fstyle.css"])
def test_no_other_file_is_served(client, name):
    response = client.get(f"{explorer.FOLDER}/{name}")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize("address", ["/docs", "/docs/plain", "/docs/guide", "/docs/guide?q=x", "/docs/guide/predict"])
def test_a_policy_admits_the_page_and_nothing_from_another_host(client, address):
    response = client.get(address)
    (policy,) = response.headers.get_list("content-security-policy")
    admitted, page = sources(policy), Elements(response.text)
    assert admitted["default-src"] == ["'none'"]
    assert {word for words in admitted.values() for word in words if not word.startswith("'")} <= {"data:"}
    assert "'unsafe-inline'" not in admitted.get("script-src", [])
    for tag, texts in page.inline.items():
        for text in texts:
            assert {f"'{sha('sha256', text.encode())}'", "'unsafe-inline'"} & set(admitted[f"{tag}-src"])
    assert not page.forms or admitted["form-action"] == ["'self'"]


def test_the_files_are_sent_compressed(client):
    raw = explorer.file(explorer.SCRIPT).gzipped
    assert hashlib.sha384(gzip.decompress(raw)).digest() == base64.b64decode(explorer.INTEGRITY[explorer.SCRIPT][7:])
    assert len(raw) < 600_000
    assert int(client.head(f"{explorer.FOLDER}/{explorer.SCRIPT}").headers["content-length"]) == len(raw)


def test_the_plain_page_needs_no_script(client):
    text, document = client.get("/docs/plain").text, client.get("/openapi.json").json()
    page = Elements(text)
    assert (page.loaded, page.inline) == ({}, {"script": [], "style": [frame.STYLE]})
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert [name for name in names if f"<section id={name}>" not in text] == []
    assert "<code>detect</code>" in text
