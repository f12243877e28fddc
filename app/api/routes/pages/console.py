"""The console: its files, and the session of whoever signs in with a key."""

from typing import Annotated

from fastapi import Header, Response, status
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse

from app.api.edge.admission import COOKIE
from app.api.edge.etags import matches
from app.api.edge.problems import NotFound
from app.api.edge.router import OPEN, Router
from app.api.params.common import ServicesDep
from app.console import site
from app.schemas.keys import SignIn

router = Router(needs=OPEN, include_in_schema=False)
SESSION_SECONDS = 12 * 3600
ATTRIBUTES = "Path=/; Secure; HttpOnly; SameSite=Strict"
POLICY = {"Content-Security-Policy": site.POLICY, "Cache-Control": "no-cache"}


@router.get("/console")
async def read_console_address() -> RedirectResponse:
    return RedirectResponse(site.HOME)


@router.get(site.HOME)
async def read_console() -> HTMLResponse:
    return HTMLResponse(site.page(), headers=POLICY)


@router.post("/console/session", status_code=status.HTTP_204_NO_CONTENT)
async def sign_in(body: SignIn, services: ServicesDep, response: Response) -> None:
    """The key becomes a cookie, which requests of the console's own pages send, and no script reads."""
    if services.settings.needs_keys:
        services.access.check(await run_in_threadpool(services.access.find, body.key.encode()))
    response.headers["Set-Cookie"] = f"{COOKIE}={body.key}; Max-Age={SESSION_SECONDS}; {ATTRIBUTES}"


@router.delete("/console/session", status_code=status.HTTP_204_NO_CONTENT)
async def sign_out(response: Response) -> None:
    response.headers["Set-Cookie"] = f"{COOKIE}=; Max-Age=0; {ATTRIBUTES}"


@router.get("/console/{name:path}")
def read_console_file(name: str, if_none_match: Annotated[str | None, Header(max_length=4096)] = None) -> Response:
    file = site.file(name)
    if file is None:
        raise NotFound
    headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
    if if_none_match is not None and matches(if_none_match, file.etag):
        return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
    return Response(file.gzipped, media_type=file.media_type, headers=headers | {"Content-Encoding": "gzip"})
