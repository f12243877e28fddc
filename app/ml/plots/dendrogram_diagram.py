"""Dendrogram of an agglomerative clustering: which rows join at which height, the topmost merges."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from app.ml.charts.channels import data, number, tooltips
from app.ml.charts.layers import layer, upright
from app.ml.charts.summaries import part
from app.ml.contract.algorithm import JSON
from app.ml.kinds.plot import Drawing, Plot, PlotSubject
from app.ml.queries.cut import QUERY

if TYPE_CHECKING:
    from app.ml.numerics.clustering.row_tree import RowTree

MOST_LEAVES = 30
HIGH = 18
"""Pixels from one leaf to the next."""
LABEL = {"type": "text", "align": "right", "baseline": "middle", "dx": -8, "limit": 170}


class _Node(NamedTuple):
    height: float
    y: float


def draw(source: PlotSubject) -> Drawing:
    tree = _tree(source)
    n, merges = len(tree.numbers), len(tree.merges.heights)
    first = max(0, merges - MOST_LEAVES + 1)
    leaves: list[dict[str, JSON]] = []
    lines = list(_lines(tree, n + merges - 1, n + first, leaves))
    x = number("x", "Height of the merge (distance in scaled columns)") | {"scale": {"domainMin": 0}}
    scale = {"domain": [len(leaves) - 0.5, -0.5], "nice": False}
    y = {"field": "y", "type": "quantitative", "axis": None, "scale": scale}
    text = layer(LABEL, text={"field": "label"}, tooltip=tooltips(label="leaf"))
    merged = {"data": data(lines), **layer("rule", x2={"field": "x2"}, y2={"field": "y2"})}
    layers = [*_cuts(source, x), merged, {"data": data(leaves), **text}]
    view = {"height": HIGH * len(leaves), "encoding": {"x": x, "y": y}, "layer": layers}
    shown = f"the topmost {len(leaves) - 1} of {merges} merges" if first else f"{merges} merges"
    return Drawing(view, (f"{n} training rows; {shown}", "Dashed line: the cut that makes the clusters of the model"))


def _tree(source: PlotSubject) -> "RowTree":
    model = source.subject.model
    row_tree: RowTree = model.algorithm.queries["cut"](model.params, model.state)
    return row_tree


def _lines(tree: "RowTree", root: int, lowest: int, leaves: list[dict[str, JSON]]) -> Iterator[dict[str, JSON]]:
    """Lines of all merges from `lowest` on. Nodes below it become leaves, in the order of the tree."""
    n, (children, heights, _) = len(tree.numbers), tree.merges
    places: dict[int, _Node] = {}
    waiting = [(root, False)]
    while waiting:
        node, entered = waiting.pop()
        if node < lowest:
            places[node] = _Node(0.0, float(len(leaves)))
            leaves.append({"x": 0.0, "y": places[node].y, "label": _label(tree, node)})
            continue
        a, b = children[node - n].tolist()
        if not entered:
            waiting += [(node, True), (b, False), (a, False)]
            continue
        up, height = (places[a], places[b]), float(heights[node - n])
        places[node] = _Node(height, (up[0].y + up[1].y) / 2)
        yield {"x": height, "y": up[0].y, "x2": height, "y2": up[1].y}
        yield from ({"x": child.height, "y": child.y, "x2": height, "y2": child.y} for child in up)


def _label(tree: "RowTree", node: int) -> str:
    n = len(tree.numbers)
    if node >= n:
        return f"({int(tree.merges.sizes[node - n])} rows)"
    return f"row {int(tree.numbers[node])}" if tree.items is None else str(tree.items[node])


def _cuts(source: PlotSubject, x: JSON) -> list[dict[str, JSON]]:
    ends = [part(source.report.summary, name) for name in ("highest_merge_below", "lowest_merge_above")]
    bounds = [end for end in ends if isinstance(end, float | int)]
    if not bounds:
        return []
    return [upright(x, sum(bounds) / len(bounds), y=None)]


def _applies(source: PlotSubject) -> bool:
    return QUERY.offered(source.subject.model) and len(_tree(source).merges.heights) > 0


PLOT = Plot(title="Dendrogram", applies=_applies, draw=draw)
