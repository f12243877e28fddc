"""Diagram of a decision tree, or of the first tree of an ensemble, from the root on the left: the first levels.

The branch that meets the condition of a split is the upper one.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.ml.charts.channels import data, tooltips
from app.ml.charts.layers import layer
from app.ml.charts.numbers import short
from app.ml.contract.algorithm import JSON
from app.ml.kinds.plot import Drawing, Plot, PlotSubject
from app.ml.queries.tree import QUERY, Tree, TreeNode, TreeRequest, TreeTerm, tree

MOST_NODES = 31
MAX_DEPTH = 4
LEVEL_PIXELS, LEAF_PIXELS = 205, 42
"""Pixels from one level to the next, and from one leaf to the next."""
BEND = 0.07
"""Distance of a bend from the nodes to its right, in levels."""
LABEL = {"type": "text", "align": "left", "baseline": "middle", "dx": 7}
NOTE = LABEL | {"style": "note", "dy": 9}
MAX_LABEL_LENGTH = 28
"""Characters of a label."""


class _Place(NamedTuple):
    x: float
    y: float


def draw(source: PlotSubject) -> Drawing:
    shown = _shown(source)
    places = _placed(shown)
    deepest, last = (max(ends) for ends in zip(*places.values(), strict=True))
    rows = data(_row(node, places[node.node], shown) for node in shown.nodes)
    branches = layer({"type": "rule", "style": "branch"}, x2={"field": "x2"}, y2={"field": "y2"})
    points = layer({"type": "point", "size": 50, "opacity": 1}, tooltip=tooltips(name="node", note="rows and value"))
    texts = [layer(LABEL | {"dy": -9}, text={"field": "label"}), layer(NOTE, text={"field": "note"})]
    layers = [
        {"data": data(_branches(shown, places)), **branches},
        *({"data": rows, **mark} for mark in (points, *texts)),
    ]
    axes = {"x": _axis("x", [0, max(1.0, deepest)]), "y": _axis("y", [last + 0.5, -0.5])}
    size = {"width": LEVEL_PIXELS * max(1, deepest), "height": LEAF_PIXELS * (last + 1)}
    return Drawing({**size, "encoding": axes, "layer": layers}, (_subtitle(shown, source),))


def _axis(field: str, domain: list[float]) -> JSON:
    return {"field": field, "type": "quantitative", "axis": None, "scale": {"domain": domain, "nice": False}}


def _shown(source: PlotSubject) -> Tree:
    """The deepest part of the tree that has few enough nodes."""
    parts = (tree(source.subject, TreeRequest(max_depth=depth)) for depth in range(MAX_DEPTH, 0, -1))
    return next(
        (part for part in parts if len(part.nodes) <= MOST_NODES), tree(source.subject, TreeRequest(max_depth=1))
    )


def _below(node: TreeNode) -> list[int]:
    """Nodes that it leads to: missing values may take the left or the right branch, or one of their own."""
    return list(dict.fromkeys(child for child in (node.left, node.right, node.missing) if child is not None))


def _placed(shown: Tree) -> dict[int, _Place]:
    """Leaves one below the other, each other node in the middle of those that it leads to."""
    places: dict[int, _Place] = {}
    nodes, leaves = {node.node: node for node in shown.nodes}, iter(range(len(shown.nodes)))

    def place(node_index: int) -> float:
        below = [place(child) for child in _below(nodes[node_index])]
        places[node_index] = _Place(nodes[node_index].depth, (below[0] + below[-1]) / 2 if below else next(leaves))
        return places[node_index].y

    place(0)
    return places


def _branches(shown: Tree, places: dict[int, _Place]) -> Iterator[dict[str, JSON]]:
    """From each node to a bend, close to the left of those that it leads to, and from there to them."""
    for node in shown.nodes:
        start, below = places[node.node], [places[child] for child in _below(node)]
        bend = start.x + 1 - BEND
        if below:
            yield _line(start, _Place(bend, start.y))
            yield _line(_Place(bend, below[0].y), _Place(bend, below[-1].y))
        yield from (_line(_Place(bend, stop.y), stop) for stop in below)


def _line(start: _Place, stop: _Place) -> dict[str, JSON]:
    return {"x": start.x, "y": start.y, "x2": stop.x, "y2": stop.y}


def _row(node: TreeNode, place: _Place, shown: Tree) -> dict[str, JSON]:
    value, rows = _value(node, shown), None if node.rows is None else f"{short(node.rows)} rows"
    if node.op is not None:
        name, label = _condition(node), _condition(node, MAX_LABEL_LENGTH)
    else:
        name = label = value
        if node.linear is not None:
            name = _sum(node.linear.terms, node.linear.intercept)
            label = _cut(name, MAX_LABEL_LENGTH)
    notes = [rows, value if node.op is not None else None, "more branches" if node.truncated else None]
    note = ", ".join(note for note in notes if note)
    return {"x": place.x, "y": place.y, "label": label, "name": name, "note": note}


def _sum(terms: Sequence[TreeTerm], constant: float = 0.0) -> str:
    """The weighted sum as a formula, its constant first.

    >>> _sum([TreeTerm(column="a", coef=2.0), TreeTerm(column="b", coef=-0.5)])
    '2 a − 0.5 b'
    >>> _sum([TreeTerm(column="a", coef=-1.0)], 3.0)
    '3 − a'
    """
    signed = [(constant, "")] if constant or not terms else []
    signed += [(term.coef, term.column) for term in terms]
    text = ""
    for factor, name in signed:
        sign = ("− " if factor < 0 else "+ ") if text else ("−" if factor < 0 else "")
        size = "" if name and abs(factor) == 1 else short(abs(factor))
        text += f"{' ' if text else ''}{sign}{size}{' ' if size and name else ''}{name}"
    return text


def _condition(node: TreeNode, most: int | None = None) -> str:
    """The condition of the upper branch. most: characters, about; None: all of it."""
    tested = node.column or _sum(node.terms or [])
    if node.op == "<=":
        tail = f" ≤ {short(node.threshold or 0.0)}"
    elif node.op == "in":
        tail = f" in {', '.join(map(str, node.categories or []))}"
    else:
        tail = " is known"
    return f"{tested}{tail}" if most is None else f"{_cut(tested, most - len(tail))}{_cut(tail, most)}"


def _cut(text: str, most: int) -> str:
    most = max(8, most)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _value(node: TreeNode, shown: Tree) -> str:
    if not node.value:
        return ""
    if len(node.value) == 1:
        return short(node.value[0])
    labels = shown.classes or range(len(node.value))
    best = max(range(len(node.value)), key=node.value.__getitem__)
    most, shares = node.value[best], min(node.value) >= 0 and abs(sum(node.value) - 1) < 1e-6
    size = f"{100 * most:.0f} %" if shares else f"{'+' if most > 0 else ''}{short(most)}"
    return f"{_cut(str(labels[best]), 18)} {size}"


def _subtitle(shown: Tree, source: PlotSubject) -> str:
    which = f"Tree 1 of {shown.members}. " if shown.members > 1 else ""
    cut = "The first levels. " if any(node.truncated for node in shown.nodes) else ""
    target = source.output if shown.target_function is None else f"{shown.target_function} of {source.output}"
    values = f"values are its contribution to {target}" if shown.members > 1 else f"values are of {target}"
    return f"{which}{cut}The upper branch meets the condition; {values}."


PLOT = Plot(title="Tree", applies=lambda source: QUERY.offered(source.subject.model), draw=draw)
