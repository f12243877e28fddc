"""Plots of model versions: which there are, their specifications, and pictures of these."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import orjson

from app.base.errors import Overloaded, PlotNotFound
from app.base.settings import Settings
from app.base.suggestions import no_such
from app.ml.charts.specification import complete
from app.ml.charts.themes import Theme
from app.ml.kinds.plot import PlotSubject
from app.ml.kinds.query import Subject
from app.ml.operations import PlotEntry, plot_entries
from app.rendering.protocol import PictureFormat
from app.rendering.renderer import Renderer
from app.schemas.plots import PlotCard, PlotList
from app.services.predictions.predictions import Served
from app.store.unit_of_work import WorkFactory

AT_ONCE = 2
"""Plots computed at a time in a process; pictures of them are drawn one by one."""
MOST_WAITING = 16
"""Plots that may wait; further ones are refused."""
RETRY_SECONDS = "1"


class Plots:
    def __init__(self, work: WorkFactory, settings: Settings) -> None:
        self._work, self._max_rows = work, settings.max_predict_rows
        self._renderer = Renderer(settings.plot_seconds, settings.plot_memory_bytes)
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        self._places = threading.BoundedSemaphore(AT_ONCE + MOST_WAITING)

    def close(self) -> None:
        self._renderer.close()

    def page(self, served: Served) -> PlotList:
        """Plots that apply to the version."""
        source = self._subject(served)
        cards = [
            PlotCard(name=entry.name, title=entry.plot.title, description=entry.description)
            for entry in plot_entries().values()
            if entry.plot.applies(source)
        ]
        return PlotList(model=served.pointer.model, version=served.pointer.version, items=cards)

    def specification(self, served: Served, name: str, theme: Theme) -> str:
        """A complete Vega-Lite specification as JSON. Raises PlotNotFound, and Overloaded where too many wait."""
        source = self._subject(served)
        entry = _found(name, source)
        with self._in_turn():
            drawing = entry.plot.draw(source)
        whole = complete(drawing.view, entry.plot.title, drawing.subtitle, theme)
        return orjson.dumps(whole, option=orjson.OPT_SERIALIZE_NUMPY).decode()

    def picture(self, specification: str, picture_format: PictureFormat) -> bytes:
        """Raises RenderingFailed, and Overloaded where too many wait."""
        with self._in_turn():
            return self._renderer.render(specification, picture_format)

    def _subject(self, served: Served) -> PlotSubject:
        pointer = served.pointer
        with self._work() as w:
            report, golden = (
                w.models.report(pointer.model, pointer.version),
                w.models.golden(pointer.model, pointer.version),
            )
        subject = Subject(pointer.model, pointer.version, pointer.digest, served.model, self._max_rows, pointer.names)
        return PlotSubject(subject, report, golden)

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            raise Overloaded("Too many plots are waiting.", headers={"Retry-After": RETRY_SECONDS})
        try:
            with self._turns:
                yield
        finally:
            self._places.release()


def _found(name: str, source: PlotSubject) -> PlotEntry:
    """The plot of that name, where it applies. Raises PlotNotFound."""
    entries = plot_entries()
    offered = [entry.name for entry in entries.values() if entry.plot.applies(source)]
    if name in offered:
        return entries[name]
    has = f"It has {', '.join(offered)}." if offered else "It has none."
    if name in entries:
        raise PlotNotFound(f"The plot {name} does not apply to this version. {has}")
    raise PlotNotFound(f"{no_such('There is no plot', name, entries)} {has}")
