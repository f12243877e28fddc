"""The rendering child: draws one specification after the other under its limits, and ends when none comes.

A specification holds its data. The child refuses any that names an address or a file, and the library is given an empty
list of addresses that it may load from.
"""

import json
import os
import re
import resource
import signal
import socket
import sys
from typing import Any

import vl_convert

from app.rendering.protocol import GRAMMAR, Order, receive, send

DRAWN, REFUSED = b"\x00", b"\x01"
"""First byte of a response: a picture follows, or a sentence."""
SIZE = re.compile(r'<svg[^>]* width="([0-9.]+)" height="([0-9.]+)"')
OUTSIDE = {"url", "href", "lookup", "image"}
"""Keys, and a mark, of a specification that point to something outside of it."""
NICENESS = 10
"""Pictures wait for predictions, not predictions for pictures."""


class Refused(ValueError):
    """The specification is not drawn; the text states why."""


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business; its end closes the channel
    os.nice(NICENESS)
    channel = socket.socket(fileno=int(sys.argv[1]))
    is_limited = False
    while (message := _next(channel)) is not None:
        order = Order.model_validate_json(message)
        if not is_limited:
            _limit(order)
            is_limited = True
        channel.settimeout(None)
        send(channel, _response(order))
        channel.settimeout(order.idle_seconds)
    os._exit(0)  # nothing is left to save


def _next(channel: socket.socket) -> bytes | None:
    try:
        return receive(channel)
    except (TimeoutError, OSError):
        return None


def _limit(order: Order) -> None:
    """Limits on files and memory. Addresses are not limited: the JavaScript engine reserves far more than it uses."""
    limits = {resource.RLIMIT_FSIZE: 0, resource.RLIMIT_CORE: 0, resource.RLIMIT_DATA: order.memory_bytes}
    for kind, limit in limits.items():
        resource.setrlimit(kind, (limit, limit))


def _response(order: Order) -> bytes:
    try:
        return DRAWN + drawn(order)
    except Refused as error:
        return REFUSED + str(error).encode()
    except ValueError:  # what the library raises for a specification that it cannot draw
        return REFUSED + b"The specification cannot be drawn."


def drawn(order: Order) -> bytes:
    """The picture. Raises Refused for a specification that is not alone, or one that is too large."""
    if _points_outside(json.loads(order.specification)):
        raise Refused("The specification names something outside of it.")
    svg = vl_convert.vegalite_to_svg(order.specification, vl_version=GRAMMAR, allowed_base_urls=[])
    width, height = _size(svg)
    scale = order.scale if order.picture_format == "png" else 1.0
    if width * height * scale**2 > order.most_pixels or len(svg) > order.most_bytes:
        raise Refused("The picture is too large.")
    return svg.encode() if order.picture_format == "svg" else vl_convert.svg_to_png(svg, scale=scale)


def _points_outside(part: Any) -> bool:
    """True if a key other than of the data rows, or a mark, is one of `OUTSIDE`."""
    match part:
        case dict():
            named = OUTSIDE & part.keys() or part.get("mark") == "image" or part.get("type") == "image"
            return bool(named) or any(_points_outside(inner) for key, inner in part.items() if key != "values")
        case list():
            return any(map(_points_outside, part))
    return False


def _size(svg: str) -> tuple[float, float]:
    match = SIZE.search(svg)
    if match is None:
        raise Refused("The picture has no size.")
    return float(match[1]), float(match[2])


if __name__ == "__main__":
    main()
