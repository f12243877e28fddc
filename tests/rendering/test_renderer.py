"""The rendering child on real specifications, and on those that it has to refuse."""

import json
import signal
import struct
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from xml.etree import ElementTree as ET

import pytest

from app.base.errors import RenderingFailed
from app.base.settings import GiB
from app.rendering import renderer as renderer_module
from app.rendering.renderer import SCALE, Renderer

AXES = {axis: {"field": axis, "type": "quantitative"} for axis in ("x", "y")}
POINTS = {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
    "width": 200,
    "height": 100,
    "padding": 0,
    "autosize": "none",
    "title": "<b>&\u202e\"'",
    "data": {"values": [{"x": 1, "y": 2, "url": "a cell named url"}]},
    "mark": "point",
    "encoding": AXES,
}


@pytest.fixture(scope="module")
def renderer():
    made = Renderer(20, GiB)
    yield made
    made.close()


def test_an_svg_is_well_formed_and_a_png_has_its_size(renderer):
    root = ET.fromstring(renderer.render(json.dumps(POINTS), "svg"))
    assert (root.attrib["width"], root.attrib["height"]) == ("200", "100")
    assert POINTS["title"] in "".join(root.itertext())
    png = renderer.render(json.dumps(POINTS), "png")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack("!II", png[16:24]) == (200 * SCALE, 100 * SCALE)


def test_the_same_specification_gives_the_same_bytes(renderer):
    assert renderer.render(json.dumps(POINTS), "png") == renderer.render(json.dumps(POINTS), "png")


@pytest.fixture
def server():
    """An HTTP server of one CSV file, and the paths that were requested."""
    paths = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"x,y\n1,2\n")

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}", paths
        serving.shutdown()


def outside(address, file):
    image = {"type": "image", "width": 20, "height": 20}
    yield {"data": {"url": f"{address}/table.csv"}}
    yield {"data": {"url": str(file)}}
    yield {"data": {"url": file.as_uri()}}
    yield {"mark": image, "encoding": AXES | {"url": {"value": f"{address}/picture.png"}}}
    yield {"mark": image | {"url": f"{address}/picture.png"}}
    yield {"mark": {"type": "point", "href": address}}
    yield {
        "transform": [{"lookup": "x", "from": {"data": {"url": f"{address}/table.csv"}, "key": "x", "fields": ["y"]}}]
    }


def test_nothing_outside_of_a_specification_is_loaded(renderer, server, tmp_path):
    address, paths = server
    file = tmp_path / "table.csv"
    file.write_text("x,y\n1,2\n")
    for change in outside(address, file):
        with pytest.raises(RenderingFailed):
            renderer.render(json.dumps(POINTS | change), "png")
    assert paths == []


@pytest.mark.parametrize("change", [{"width": 6000, "height": 6000}, {"mark": "nothing"}, {"$schema": 1, "mark": []}])
def test_a_picture_that_cannot_be_is_refused_and_the_next_one_drawn(renderer, change):
    with pytest.raises(RenderingFailed):
        renderer.render(json.dumps(POINTS | change), "png")
    assert renderer.render(json.dumps(POINTS), "svg")


def test_a_large_specification_is_refused_before_it_is_sent(renderer):
    with pytest.raises(RenderingFailed, match="too large"):
        renderer.render(" " * (5 << 20), "svg")


def test_a_child_that_is_gone_is_replaced(renderer):
    renderer.render(json.dumps(POINTS), "svg")
    renderer._child.process.kill()
    renderer._child.process.wait()
    assert renderer.render(json.dumps(POINTS), "svg")


def test_a_frozen_child_is_replaced_and_the_picture_drawn(renderer, monkeypatch):
    renderer.render(json.dumps(POINTS), "svg")
    frozen = renderer._child.process
    frozen.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(renderer_module, "PATIENCE_SECONDS", 0.5)
    assert renderer.render(json.dumps(POINTS), "svg")
    assert frozen.returncode == -signal.SIGKILL


def test_a_slow_picture_ends_in_time():
    slow = Renderer(0.05, GiB)  # less than the child needs to start
    with pytest.raises(RenderingFailed, match=r"longer than 0\.05 seconds"):
        slow.render(json.dumps(POINTS), "svg")
    assert slow._child is None
    slow.close()


def test_a_closed_renderer_starts_no_child():
    closed = Renderer(20, GiB)
    closed.close()
    with pytest.raises(RenderingFailed, match="stopping"):
        closed.render(json.dumps(POINTS), "svg")
    assert closed._child is None


def test_memory_is_limited():
    small = Renderer(20, 64 << 20)
    with pytest.raises(RenderingFailed, match="memory"):
        small.render(json.dumps(POINTS), "svg")
    small.close()
