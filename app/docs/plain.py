"""The OpenAPI document as one page of plain HTML, which any browser shows, also one without scripts."""

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from app.docs.frame import framed

Schema = Mapping[str, Any]


def plain_page(document: Schema) -> str:
    """The whole OpenAPI document as HTML."""
    return framed(f"{document['info']['title']} API", "".join(_parts(document)))


def _parts(document: Schema) -> Iterator[str]:
    info = document["info"]
    yield f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"
    yield f"<p>{escape(info['summary'])} <a href=/docs/guide>Guide</a> · <a href=/docs>Interactive page</a> · "
    yield "<a href=/openapi.json>openapi.json</a></p>"
    for tag in document["tags"]:
        yield f"<h2>{escape(tag['name'])}</h2><p>{escape(tag['description'])}</p>"
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if method != "parameters" and tag["name"] in operation["tags"]:
                    yield from _operation(method, path, operation)
    yield "<h2>schemas</h2>"
    for name, schema in document["components"]["schemas"].items():
        yield f"<section id={escape(name)}><h3>{escape(name)}</h3><p>{_prose(schema.get('description', ''))}</p>"
        yield from _table(schema.get("properties", {}), schema.get("required", []))
        yield "</section>"


def _operation(method: str, path: str, operation: Schema) -> Iterator[str]:
    yield f"<section id={operation['operationId']}><h3><code>{method.upper()} {escape(path)}</code></h3>"
    yield f"<p>{_prose(operation.get('description', ''))}</p>"
    parameters = operation.get("parameters", [])
    described = {p["name"]: {"description": p.get("description", ""), **p["schema"]} for p in parameters}
    yield from _table(described, [p["name"] for p in parameters if p.get("required")])
    for kind, media in operation.get("requestBody", {}).get("content", {}).items():
        yield f"<p>Body: {escape(kind)} {_name(media['schema'])}</p>"
    for status, response in operation["responses"].items():
        bodies = [f"{escape(kind)} {_name(media['schema'])}" for kind, media in response.get("content", {}).items()]
        yield f"<p>{status}: {', '.join(bodies) or escape(response['description'])}</p>"
    yield "</section>"


def _table(fields: Schema, required: list[str]) -> Iterator[str]:
    yield "<table>"
    for name, schema in fields.items():
        css = "" if name in required else " class=optional"
        yield f"<tr><td{css}><code>{escape(name)}</code><td>{_name(schema)}<td>{_prose(_remark(schema))}"
    yield "</table>"


def _name(schema: Schema) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f"<a href=#{name}>{name}</a>"
    if members := schema.get("oneOf") or schema.get("anyOf"):
        return " or ".join(map(_name, members))
    if schema.get("type") == "array":
        return f"list of {_name(schema.get('items', {}))}"
    return escape(str(schema.get("const") or schema.get("format") or schema.get("type") or "anything"))


def _remark(schema: Schema) -> str:
    default = f"Default: {schema['default']}." if schema.get("default") not in (None, []) else ""
    return f"{schema.get('description', '')} {default}".strip()


def _prose(text: str) -> str:
    """A description as HTML: names in backticks are code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))
