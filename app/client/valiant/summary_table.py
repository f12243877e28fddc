"""Small tables that sum up an object, as text of a terminal and as HTML of a notebook."""

import textwrap
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

GAP, NARROWEST = 2, 8
CUT = "…"


class SummaryTable(NamedTuple):
    """A title, rows of cells under their headings, and sentences below."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()

    def text(self, width: int | None = None) -> str:
        """Aligned columns. Where a line would be longer than `width`, the widest are cut, but never the first."""
        cells = [list(self.headings), *([shown(cell) for cell in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        while width is not None and sum(widths) + GAP * (len(widths) - 1) > width and max(widths[1:]) > NARROWEST:
            widths[widths.index(max(widths[1:]), 1)] -= 1
        right = [bool(self.rows) and all(_is_number(row[place]) for row in self.rows) for place in range(len(widths))]
        lines = [_line(row, widths, right) for row in cells]
        body = [lines[0], "  ".join("-" * size for size in widths), *lines[1:]] if self.rows else []
        title = _wrapped(self.title, width) if self.title else []
        return "\n".join([*title, *body, *(line for note in self.notes for line in _wrapped(f"! {note}", width))])

    def html(self) -> str:
        heads = "".join(f"<th>{escape(heading)}</th>" for heading in self.headings)
        rows = ("".join(f"<td>{escape(shown(cell))}</td>" for cell in row) for row in self.rows)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        table = f"<table><caption>{escape(self.title)}</caption><tr>{heads}</tr>{body}</table>"
        return table + (f"<ul>{notes}</ul>" if notes else "")


def shown(cell: Any) -> str:
    """Text of a cell on one line: four digits of a number with a fraction, nothing for a missing value."""
    if cell is None:
        return ""
    text = f"{cell:.4g}" if isinstance(cell, float) else str(cell)
    return " ".join(text.split())


def _wrapped(text: str, width: int | None) -> list[str]:
    return [text] if width is None else textwrap.wrap(text, width)


def _is_number(cell: Any) -> bool:
    return cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool))


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cut = (cell if len(cell) <= size else cell[: size - 1] + CUT for cell, size in zip(row, widths, strict=True))
    placed = zip(cut, widths, right, strict=True)
    return (" " * GAP).join(f"{cell:>{size}}" if end else f"{cell:<{size}}" for cell, size, end in placed).rstrip()


def metrics_table(title: str, metrics: Sequence[Any], notes: Sequence[str] = ()) -> SummaryTable:
    """Metrics as the service sends them."""
    rows = [[metric_name(each), each["display"], interval(each), each["n"]] for each in metrics]
    return SummaryTable(title, ("metric", "value", "interval", "n"), rows, notes)


def metric_name(metric: Any) -> str:
    """`name`, or `name[class]` of a metric of one class."""
    part = metric.get("label", metric.get("average"))
    name: str = metric["name"]
    return name if part is None else f"{name}[{part}]"


def interval(metric: Any) -> str:
    """Both bounds, or nothing where it has none."""
    return f"{metric['lower']:.4g} to {metric['upper']:.4g}" if "lower" in metric and "upper" in metric else ""
