"""Light and dark themes as Vega-Lite configurations, in colours that colour-blind readers can distinguish.

Specifications name styles instead of colours, so that a theme is a configuration and nothing else. The categorical
colours are those of Okabe and Ito, brightened for the dark background.

Reference: Okabe & Ito (2008), Color Universal Design.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from app.ml.contract.algorithm import JSON

Theme: TypeAlias = Literal["light", "dark"]
FONT = "Helvetica, Arial, sans-serif"
CATEGORIES = 7
"""Series that the categorical colours distinguish."""


class Palette(NamedTuple):
    background: str
    ink: str
    """Titles and labels."""
    muted: str
    """Subtitles, reference lines."""
    grid: str
    categories: Sequence[str]
    ramp: Sequence[str]
    """From nothing to most."""
    greys: Sequence[str]
    """The same under coloured marks."""
    diverging: Sequence[str]
    """From most negative over zero to most positive."""
    on_strong: str
    """Text on the strong end of the ramp."""


PALETTES: dict[Theme, Palette] = {
    "light": Palette(
        background="#ffffff",
        ink="#22272e",
        muted="#6b7280",
        grid="#e5e7eb",
        categories=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"),
        ramp=("#f3f6fa", "#9ecae1", "#0072b2"),
        greys=("#f4f5f7", "#b4bac3", "#4b5563"),
        diverging=("#d55e00", "#f5c7a5", "#f7f7f7", "#a6cee3", "#0072b2"),
        on_strong="#ffffff",
    ),
    "dark": Palette(
        background="#16191d",
        ink="#e6e8eb",
        muted="#9aa3ad",
        grid="#2b3138",
        categories=("#56b4e9", "#f08a3c", "#2cc295", "#e09bc4", "#f0d442", "#8fa8ff", "#b0b0b0"),
        ramp=("#20262d", "#2f6c93", "#7cc8f5"),
        greys=("#20262d", "#4d5660", "#aeb6c0"),
        diverging=("#f08a3c", "#7a4a26", "#262b31", "#2f6280", "#56b4e9"),
        on_strong="#10151a",
    ),
}


def config(theme: Theme) -> dict[str, JSON]:
    """The Vega-Lite configuration of a theme."""
    palette = PALETTES[theme]
    first = palette.categories[0]
    return {
        "background": palette.background,
        "font": FONT,
        "padding": 14,
        "view": {"stroke": None, "continuousWidth": 420, "continuousHeight": 280},
        "title": _title(palette),
        "axis": _axis(palette),
        "legend": {
            "labelColor": palette.ink, "titleColor": palette.ink, "labelFontSize": 11, "titleFontSize": 11,
            "titleFontWeight": "normal", "labelLimit": 180, "titleLimit": 180, "symbolStrokeWidth": 2,
        },
        "header": {"labelColor": palette.ink, "titleColor": palette.ink, "labelFontSize": 11, "labelLimit": 180},
        "range": {
            "category": list(palette.categories), "ramp": list(palette.ramp), "heatmap": list(palette.greys),
            "diverging": list(palette.diverging),
        },
        "mark": {"color": first},
        "rule": {"color": first},
        "line": {"strokeWidth": 2},
        "point": {"filled": True, "size": 28, "opacity": 0.65},
        "text": {"color": palette.ink, "fontSize": 11},
        "style": _styles(palette),
    }  # fmt: skip


def _title(palette: Palette) -> dict[str, JSON]:
    return {
        "anchor": "start", "frame": "bounds", "color": palette.ink, "fontSize": 15, "fontWeight": "bold", "offset": 12,
        "subtitleColor": palette.muted, "subtitleFontSize": 11, "subtitlePadding": 5,
    }  # fmt: skip


def _axis(palette: Palette) -> dict[str, JSON]:
    return {
        "labelColor": palette.ink, "titleColor": palette.ink, "domainColor": palette.muted, "tickColor": palette.muted,
        "gridColor": palette.grid, "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal",
        "titlePadding": 8, "labelLimit": 170, "titleLimit": 300, "labelOverlap": True, "labelSeparation": 6,
        "labelFlush": False,
    }  # fmt: skip


def _styles(palette: Palette) -> dict[str, JSON]:
    """Named styles of marks."""
    return {
        "reference": {"color": palette.muted, "strokeDash": [4, 4], "strokeWidth": 1.2},
        "band": {"fillOpacity": 0.18, "strokeOpacity": 0},
        "branch": {"color": palette.muted, "strokeWidth": 1.3},
        "error": {"color": palette.ink, "strokeWidth": 1.4},
        "sum": {"color": palette.muted, "strokeWidth": 1.6},
        "faint": {"color": palette.muted, "strokeWidth": 1, "strokeOpacity": 0.55},
        "note": {"color": palette.muted, "fontSize": 10},
        "disc": {"opacity": 1, "aria": False, "stroke": palette.background},
        "tile": {"filled": True, "opacity": 1, "aria": False, "stroke": palette.grid},
        "on_weak": {"color": palette.ink, "fontSize": 11},
        "on_strong": {"color": palette.on_strong, "fontSize": 11},
    }
