"""Tables of measurements, in Markdown."""

from typing import NamedTuple

from . import mlserver
from .contestants import BINARY, FLOOR, JSON, NPY

MEBIBYTE = 1 << 20
MANY = 10_000


class Target(NamedTuple):
    """`ours` over `theirs`, or the other way round where less is better, must be at least `least`."""

    text: str
    least: float
    ours: tuple
    theirs: tuple


RIVALS = tuple(mlserver.CONFIGURATIONS)
UNBATCHED = ("MLServer, in-process", "MLServer, default")
ANY = (1, 16, 64)


TARGETS = [
    Target("1 row, 64 connections: MLServer's best", 10, ((JSON,), "logistic", 1, (64,)), (RIVALS, "logistic", 1, ANY)),
    Target("1 row, 64 connections: the floor", 0.5, ((JSON,), "logistic", 1, (64,)), ((FLOOR,), "logistic", 1, (64,))),
    Target("100 rows: MLServer's best", 6, ((JSON,), "logistic", 100, ANY), (RIVALS, "logistic", 100, ANY)),
    Target("10,000 rows: MLServer's best", 2.2, ((JSON,), "logistic", MANY, ANY), (RIVALS, "logistic", MANY, ANY)),
    Target(
        "10,000 rows, binary: our JSON", 5, ((BINARY, NPY), "logistic", MANY, ANY), ((JSON,), "logistic", MANY, ANY)
    ),
    Target("forest, 1 row: MLServer's best", 15, ((JSON,), "forest", 1, ANY), (RIVALS, "forest", 1, ANY)),
    Target("forest, 1 row: MLServer's, unbatched", 100, ((JSON,), "forest", 1, ANY), (UNBATCHED, "forest", 1, ANY)),
    Target("forest, 10,000 rows: MLServer's best", 2, ((JSON,), "forest", MANY, ANY), (RIVALS, "forest", MANY, ANY)),
]


def targets_table(metrics, servers):
    """How many times as many requests a second, and how many times less CPU time a request, as what is named."""
    lines = [_row(["how many times as good as", "wanted", "by rate", "by CPU time"]), _row(["---"] * 4)]
    for messages, least, ours, theirs in TARGETS:
        rate = _ratio(_best(metrics, ours, _rate), _best(metrics, theirs, _rate))
        work = _ratio(_best(metrics, ours, _work), _best(metrics, theirs, _work))
        lines += [_row([messages, f"≥ {least:g}", rate, work])]
    return "\n".join([*lines, *_latencies(metrics), *_memory(servers)])


def _latencies(metrics):
    own, floor, crowd = (metrics.get((name, "logistic", 1, n)) for name, n in ((JSON, 1), (FLOOR, 1), (JSON, 64)))
    if own and floor:
        yield _row(["1 row, 1 connection: median time, over the floor's", "≤ 2.2", f"{own.p50 / floor.p50:.2f}", ""])
    if crowd:
        yield _row(["1 row, 64 connections: p99 over median", "< 3", f"{crowd.p99 / crowd.p50:.2f}", ""])


def _memory(servers):
    if {"Valiant", "MLServer, in-process"} <= servers.keys():
        ratio = servers["Valiant"].idle_bytes / servers["MLServer, in-process"].idle_bytes
        yield _row(["memory of the process after a prediction, over MLServer's", "< 1", f"{ratio:.2f}", ""])


def _rate(metric):
    return metric.rate


def _work(metric):
    return 1 / metric.cpu if metric.cpu else 0


def _best(metrics, cells, goodness):
    names, model, rows, connections = cells
    found = (metrics.get((name, model, rows, n)) for name in names for n in connections)
    return max((goodness(metric) for metric in found if metric), default=0)


def _ratio(it, other):
    return f"{it / other:.2f}" if it and other else "not measured"


def cells_table(metrics):
    """Requests a second · p50 / p99 in ms · CPU µs a request; `!` marks requests that failed."""
    tables = []
    for model in dict.fromkeys(key[1] for key in metrics):
        cells = sorted({key[2:] for key in metrics if key[1] == model})
        heads = [f"{rows:,} by {connections}" for rows, connections in cells]
        lines = [_row([f"{model}: rows by connections", *heads]), _row(["---"] * (len(heads) + 1))]
        for name in dict.fromkeys(key[0] for key in metrics if key[1] == model):
            lines += [_row([name, *(_cell(metrics.get((name, model, *cell))) for cell in cells)])]
        tables.append("\n".join(lines))
    return "Requests a second · p50 / p99 in ms · CPU µs a request.\n\n" + "\n\n".join(tables)


def _cell(metric):
    if metric is None:
        return ""
    if not metric.rate:
        return "none in time"
    failed = f" !{metric.failed}" if metric.failed else ""
    return f"{metric.rate:,.0f} · {metric.p50:.2f} / {metric.p99:.2f} · {metric.cpu:,.0f}{failed}"


def servers_table(servers):
    lines = [_row(["server", "its memory", "with its children", "ready after"]), _row(["---"] * 4)]
    for name, server in servers.items():
        own, family = (f"{size / MEBIBYTE:.0f} MiB" for size in (server.idle_bytes, server.family_bytes))
        lines += [_row([name, own, family, f"{server.ready_seconds:.2f} s"])]
    return "\n".join(lines)


def _row(cells):
    return f"| {' | '.join(cells)} |"
