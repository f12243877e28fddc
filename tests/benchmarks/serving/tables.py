"""What was measured, in markdown."""

from . import mlserver
from .contestants import FLOOR

MEBIBYTE = 1 << 20


def cells_table(figures):
    """Requests a second · p50 / p99 in ms · CPU µs a request; `!` marks requests that failed."""
    cells = sorted({key[1:] for key in figures})
    heads = [f"{rows:,} by {connections}" for rows, connections in cells]
    lines = [
        _row(["requests/s · p50 / p99 ms · CPU µs; rows by connections", *heads]),
        _row(["---"] * (len(heads) + 1)),
    ]
    for name in dict.fromkeys(key[0] for key in figures):
        lines += [_row([name, *(_cell(figures.get((name, *cell))) for cell in cells)])]
    return "\n".join(lines)


def _cell(figure):
    if figure is None:
        return ""
    failed = f" !{figure.failed}" if figure.failed else ""
    return f"{figure.rate:,.0f} · {figure.p50:.2f} / {figure.p99:.2f} · {figure.cpu:,.0f}{failed}"


def ratios(figures):
    """Two tables, best of any number of connections: by rate, and by CPU time, which a busy machine spoils less."""
    yield _ratios("rate", figures, lambda figure: figure.rate)
    yield _ratios("work per CPU second", figures, lambda figure: 1 / figure.cpu if figure.cpu else 0)


def _ratios(title, figures, goodness):
    sizes = sorted({key[1] for key in figures})
    best = {}
    for (name, rows, _), figure in figures.items():
        best[name, rows] = max(best.get((name, rows), 0), goodness(figure))
    rival = {rows: max(best.get((kind, rows), 0) for kind in mlserver.CONFIGURATIONS) for rows in sizes}
    heads = [f"{title}: times MLServer's best · times the floor", *(f"{rows:,} rows" for rows in sizes)]
    lines = [_row(heads), _row(["---"] * len(heads))]
    for name in dict.fromkeys(key[0] for key in figures):
        own = [(best[name, rows], rival[rows], best.get((FLOOR, rows), 0)) for rows in sizes]
        lines += [_row([name, *(f"{_ratio(it, other)} · {_ratio(it, floor)}" for it, other, floor in own)])]
    return "\n".join(lines)


def _ratio(it, other):
    return f"{it / other:.2f}" if other else "-"


def servers_table(servers):
    lines = [_row(["server", "idle memory", "ready after"]), _row(["---"] * 3)]
    for name, server in servers.items():
        lines += [_row([name, f"{server.idle_bytes / MEBIBYTE:.0f} MiB", f"{server.ready_seconds:.2f} s"])]
    return "\n".join(lines)


def _row(cells):
    return f"| {' | '.join(cells)} |"
