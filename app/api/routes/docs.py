"""/docs: the OpenAPI document as one page, and the guide. They load and run nothing, so they work without a network."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from app.api.edge.openapi import METHODS
from app.api.edge.problems import NotFound
from app.api.formats.strict_json import StrictRoute
from app.docs import guide

router = APIRouter(route_class=StrictRoute, include_in_schema=False)
STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code { font-family: ui-monospace, monospace } h2 { margin-top: 3rem; border-bottom: 1px solid #ccc }
section { margin: 1.5rem 0 } h3 { margin-bottom: 0 } td { vertical-align: top; padding: .1rem 1rem .1rem 0 }
p { margin: .3rem 0; white-space: pre-line } .optional { opacity: .7 } a { color: light-dark(#05a, #8bf) }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .6rem; background: light-dark(#f3f3f3, #222) }
table { border-collapse: collapse } th { text-align: left; padding-right: 1rem }
article table { display: block; overflow-x: auto }
article p { white-space: normal }
"""
Schema = Mapping[str, Any]


@router.get("/")
async def read_root() -> RedirectResponse:
    return RedirectResponse("/docs")


@router.get("/docs", response_class=HTMLResponse)
async def read_docs(request: Request) -> HTMLResponse:
    return HTMLResponse("".join(_page(request.app.openapi())))


@router.get("/docs/guide", response_class=HTMLResponse)
async def read_guide(q: Annotated[str, Query(max_length=100)] = "") -> HTMLResponse:
    """The first page of the guide, or the headings with the words of `q`."""
    first = guide.pages()[guide.ORDER[0]]
    return _framed(f"Search: {q}", guide.found(q), q) if q.strip() else _framed(first.title, first.html)


@router.get("/docs/guide/{name:path}", response_class=HTMLResponse)
async def read_guide_page(name: str) -> HTMLResponse:
    page = guide.pages().get(name)
    if page is None:
        raise NotFound
    return _framed(page.title, page.html)


def _framed(title: str, body: str, words: str = "") -> HTMLResponse:
    """A page of the guide below the list of its pages and the search."""
    links = " · ".join(f'<a href="/docs/guide/{name}">{escape(guide.pages()[name].title)}</a>' for name in guide.ORDER)
    return HTMLResponse(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{escape(title)} · Valiant</title><style>{STYLE}</style>"
        f'<nav><form action=/docs/guide><input name=q type=search placeholder="Search headings" value="{escape(words)}"'
        ' aria-label="Search headings"></form><details><summary>All pages</summary>'
        f'{links} · <a href="/docs">API</a></details></nav>'
        f"<main><article>{body}</article></main>"
    )


def _page(document: Schema) -> Iterator[str]:
    info = document["info"]
    yield f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(info['title'])}</title>"
    yield f"<style>{STYLE}</style><h1>{escape(info['title'])} {escape(info['version'])}</h1>"
    yield f"<p>{escape(info['summary'])} <a href=/docs/guide>Guide</a> · "
    yield "For programs: <a href=/openapi.json>openapi.json</a>.</p>"
    for tag in document["tags"]:
        yield f"<h2>{escape(tag['name'])}</h2><p>{escape(tag['description'])}</p>"
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if method in METHODS and tag["name"] in operation["tags"]:
                    yield from _operation(method, path, operation)
    yield "<h2>schemas</h2>"
    for name, schema in document["components"]["schemas"].items():
        yield f"<section id={escape(name)}><h3>{escape(name)}</h3><p>{escape(schema.get('description', ''))}</p>"
        yield from _table(schema.get("properties", {}), schema.get("required", []))
        yield "</section>"


def _operation(method: str, path: str, operation: Schema) -> Iterator[str]:
    yield f"<section id={operation['operationId']}><h3><code>{method.upper()} {escape(path)}</code></h3>"
    yield f"<p>{escape(operation.get('description', ''))}</p>"
    parameters = operation.get("parameters", [])
    described = {p["name"]: {"description": p.get("description", ""), **p["schema"]} for p in parameters}
    yield from _table(described, [p["name"] for p in parameters if p.get("required")])
    for kind, media in operation.get("requestBody", {}).get("content", {}).items():
        yield f"<p>Body: {escape(kind)} {_name(media['schema'])}</p>"
    for status, response in operation["responses"].items():
        answers = [f"{escape(kind)} {_name(media['schema'])}" for kind, media in response.get("content", {}).items()]
        yield f"<p>{status}: {', '.join(answers) or escape(response['description'])}</p>"
    yield "</section>"


def _table(fields: Schema, required: list[str]) -> Iterator[str]:
    yield "<table>"
    for name, schema in fields.items():
        css = "" if name in required else " class=optional"
        yield f"<tr><td{css}><code>{escape(name)}</code><td>{_name(schema)}<td>{escape(_remark(schema))}"
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
