"""Rules of a tree: for each leaf the conditions on its path, which together are exhaustive and never contradict."""

from collections.abc import Iterator, Sequence

from app.ml.contract.algorithm import JSON

OPPOSITE = {"<=": ">", "in": "not in", "known": "missing"}
TESTED = "column", "terms", "threshold", "categories"


def rules_of(nodes: Sequence[dict[str, JSON]]) -> Iterator[dict[str, JSON]]:
    """One rule for each node without branches. nodes: as `TreeNodes.nodes` lists them, parents first."""
    paths: dict[int, list[JSON]] = {0: []}
    for node in nodes:
        path = paths.pop(node["node"])
        branches = list(_branches(node))
        for child, condition in branches:
            paths[child] = [*path, condition]
        if not branches:
            then = {key: node[key] for key in ("rows", "value", "linear") if key in node}
            yield {"leaf": node["node"], "conditions": path} | then


def _branches(node: dict[str, JSON]) -> Iterator[tuple[int, JSON]]:
    tested = {key: node[key] for key in TESTED if key in node}
    missing = node.get("missing")
    for side in ("left", "right"):
        if side in node:
            op = node["op"] if side == "left" else OPPOSITE[node["op"]]
            yield node[side], tested | {"op": op, "or_missing": missing == node[side]}
    if missing is not None and missing not in {node.get("left"), node.get("right")}:
        yield missing, {key: tested[key] for key in ("column", "terms") if key in tested} | {"op": "missing"}
