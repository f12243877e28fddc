"""The floor: reads the body, says a constant. No service in Python on this server can be faster."""

RESPONSE = b'{"predictions":["benign"]}'
HEAD = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(RESPONSE)).encode())],
}


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    more = True
    while more:
        more = (await receive()).get("more_body", False)
    await send(HEAD)
    await send({"type": "http.response.body", "body": RESPONSE})
