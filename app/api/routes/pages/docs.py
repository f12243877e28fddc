"""/docs: Swagger UI, the same as a plain page, and the guide. No page loads anything from another host."""

from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.api.edge.problems import NotFound
from app.api.edge.router import OPEN, Router
from app.docs import explorer, frame, guide, plain
from app.docs.guide_html import guide_page, search_page

router = Router(needs=OPEN, include_in_schema=False)
FOR_EVER = "public, max-age=31536000, immutable"
# Routes that render are no coroutines: the first time that takes so long that predictions would wait for it.


@router.get("/")
async def read_root() -> RedirectResponse:
    return RedirectResponse("/docs")


@router.get("/docs", response_class=HTMLResponse)
async def read_docs() -> HTMLResponse:
    return _page(explorer.PAGE, explorer.POLICY)


@router.get(explorer.FOLDER + "/{name}")
def read_explorer_file(name: str) -> Response:
    served = explorer.file(name)
    if served is None:
        raise NotFound
    headers = {"Content-Encoding": "gzip", "Cache-Control": FOR_EVER}
    return Response(served.gzipped, media_type=served.media_type, headers=headers)


@router.get("/docs/plain", response_class=HTMLResponse)
def read_plain_docs(request: Request) -> HTMLResponse:
    return _page(plain.plain_page(request.app.openapi()))


@router.get("/docs/guide", response_class=HTMLResponse)
def read_guide(q: Annotated[str, Query(max_length=100)] = "") -> HTMLResponse:
    """The first page of the guide, or the headings with the words of `q`."""
    return _page(search_page(q) if q.strip() else guide_page(guide.pages()[guide.ORDER[0]]))


@router.get("/docs/pictures/{name}")
def read_picture(name: str) -> Response:
    content = guide.picture(name)
    if content is None:
        raise NotFound
    return Response(content, media_type="image/png")


@router.get("/docs/guide/{name:path}", response_class=HTMLResponse)
def read_guide_page(name: str) -> HTMLResponse:
    page = guide.pages().get(name)
    if page is None:
        raise NotFound
    return _page(guide_page(page))


def _page(html: str, policy: str = frame.POLICY) -> HTMLResponse:
    return HTMLResponse(html, headers={"Content-Security-Policy": policy})
