"""HEAD gets a response wherever GET does: with the head of what GET would send."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


async def respond_to_head(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Call `app` with GET until it has sent its status and headers. No stream is read further than that."""
    begun = asyncio.Event()

    async def send_start(message: Message) -> None:
        if not begun.is_set():
            await send(message)
            begun.set()

    inner = {**scope, "method": "GET"}
    get, start = asyncio.ensure_future(app(inner, receive, send_start)), asyncio.ensure_future(begun.wait())
    try:
        await asyncio.wait({get, start}, return_when=asyncio.FIRST_COMPLETED)
        if get.done():
            get.result()
    finally:
        get.cancel()
        start.cancel()
        scope.update({**inner, "method": "HEAD"})  # the route that was found, for the log
    await send({"type": "http.response.body"})
