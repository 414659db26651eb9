"""From results to the table of budgets: `python -m bench.report RESULTS > docs/performance.md`.

Of several measurements of a figure the best counts: it was disturbed the least.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

BRIDGE, OFF, PEER, NGINX, DIRECT = "toolbridge", "toolbridge, storage off", "litellm", "nginx", "direct"
ROUTER = "claude-code-router"
HIGHER = frozenset({"per_second", "requests"})


class Results:
    def __init__(self, lines: str) -> None:
        self.header: dict[str, Any] = {}
        self.growth: list[dict[str, float]] = []
        self.best: dict[tuple[str, str, str], float] = {}
        self.targets: dict[str, None] = {}
        for line in filter(None, lines.splitlines()):
            self._take(json.loads(line))

    def _take(self, row: dict[str, Any]) -> None:
        if "target" not in row:
            self.header = row
            return
        target, scenario = row.pop("target"), row.pop("scenario")
        if scenario == "growth":
            self.growth.append(row)
            return
        self.targets[target] = None
        for name, value in row.items():
            key = (target, scenario, name)
            choose = max if name in HIGHER else min
            self.best[key] = choose(self.best.get(key, value), value)

    def get(self, target: str, scenario: str, figure: str) -> float | None:
        return self.best.get((target, scenario, figure))

    def added(self, target: str, scenario: str) -> float | None:
        """Milliseconds more than without anything in between."""
        own, direct = self.get(target, scenario, "p50_ms"), self.get(DIRECT, scenario, "p50_ms")
        return None if own is None or direct is None else max(own - direct, 0.001)


class Budget(Struct, frozen=True):
    """`least`: the figure has to be at least that; else at most."""

    what: str
    measured: Callable[[Results], float | None]
    must: float
    moonshot: float
    unit: str = "x"
    least: bool = True


def ratio(one: float | None, other: float | None) -> float | None:
    return None if not one or not other else one / other


def against(figure: str, scenario: str, one: str, other: str) -> Callable[[Results], float | None]:
    return lambda results: ratio(results.get(one, scenario, figure), results.get(other, scenario, figure))


def added(scenario: str) -> Callable[[Results], float | None]:
    return lambda results: ratio(results.added(PEER, scenario), results.added(BRIDGE, scenario))


def later(results: Results) -> float | None:
    own, direct = (results.get(name, "paced, 32 clients", "age_p50_ms") for name in (BRIDGE, DIRECT))
    return None if own is None or direct is None else own - direct


def aged(results: Results) -> float | None:
    """The oldest turn against a fifth one with the same body."""
    last = max(results.growth, key=lambda row: row["turn"], default=None)
    return None if last is None else last["cpu_us"] / last["same_body_turn_5_cpu_us"]


CPU, CHUNK = "cpu_us_per_request", "cpu_us_per_chunk"
POSTGRES_1, POSTGRES_2 = "toolbridge, PostgreSQL, 1 web", "toolbridge, PostgreSQL, 2 web"
BUDGETS = (
    Budget(
        "CPU per small request, 32 clients: LiteLLM / ours", against(CPU, "small, 32 clients", PEER, BRIDGE), 25, 50
    ),
    Budget("the same: claude-code-router / ours", against(CPU, "small, 32 clients", ROUTER, BRIDGE), 2.5, 8),
    Budget("the same: ours / nginx", against(CPU, "small, 32 clients", BRIDGE, NGINX), 18, 10, least=False),
    Budget("added p50, 1 client: LiteLLM / ours", added("small, 1 client"), 10, 25),
    Budget("147 kB request, added p50: LiteLLM / ours", added("big, 1 client"), 20, 35),
    Budget("CPU per chunk, burst: LiteLLM / ours", against(CHUNK, "burst, 1 client", PEER, BRIDGE), 80, 300),
    Budget(
        "CPU per chunk, paced 4,000/s: ours / nginx",
        against(CHUNK, "paced, 32 clients", BRIDGE, NGINX),
        3.5,
        2.2,
        least=False,
    ),
    Budget("chunk age p50, ours minus direct", later, 0.6, 0.2, " ms", least=False),
    Budget(
        "durable against storage off, CPU per request",
        against(CPU, "small, 32 clients", BRIDGE, OFF),
        1.6,
        1.25,
        least=False,
    ),
    Budget(
        "idle stream, memory each", lambda results: results.get(BRIDGE, "idle", "kb_each"), 60, 25, " kB", least=False
    ),
    Budget(
        "p99 of new requests beside the idle streams",
        lambda results: results.get(BRIDGE, "idle", "p99_ms"),
        250,
        250,
        " ms",
        least=False,
    ),
    Budget("idle memory of the web process: LiteLLM / ours", against("web_mb", "start", PEER, BRIDGE), 2.5, 5),
    Budget("idle memory of the whole tree: LiteLLM / ours", against("tree_mb", "start", PEER, BRIDGE), 1, 2),
    Budget("start to first answer: LiteLLM / ours", against("cold_start_s", "start", PEER, BRIDGE), 2.5, 6),
    Budget(
        "before the upstream is called, p95",
        lambda results: results.get(BRIDGE, "state", "p95_ms"),
        10,
        2,
        " ms",
        least=False,
    ),
    Budget(
        "CPU per request, 2 web processes / 1, PostgreSQL",
        against(CPU, "small, 32 clients", POSTGRES_2, POSTGRES_1),
        1.15,
        1.05,
        least=False,
    ),
    Budget("CPU of turn 500 / turn 5 with the same body", aged, 1.2, 1.05, least=False),
    Budget(
        "database / unique content, 200 turns",
        lambda results: results.get(BRIDGE, "stored", "ratio"),
        3,
        2,
        least=False,
    ),
)

FIGURES = (
    ("small, 1 client", "p50_ms", "p50 1 client, ms"),
    ("small, 32 clients", CPU, "CPU us/request, 32"),
    ("small, 32 clients", "per_second", "requests/s, 32"),
    ("small, 200 clients", "p99_ms", "p99 ms, 200"),
    ("big, 1 client", "p50_ms", "147 kB p50, ms"),
    ("big, 32 clients", CPU, "147 kB CPU us"),
    ("burst, 1 client", CHUNK, "burst CPU us/chunk"),
    ("paced, 32 clients", CHUNK, "paced CPU us/chunk"),
    ("paced, 32 clients", "age_p50_ms", "chunk age p50, ms"),
    ("start", "tree_mb", "idle MB"),
    ("start", "cold_start_s", "start s"),
)


def verdict(budget: Budget, value: float | None) -> str:
    if value is None:
        return "not measured"
    reached = [value >= limit if budget.least else value <= limit for limit in (budget.must, budget.moonshot)]
    return "moonshot" if reached[1] else "met" if reached[0] else "**missed**"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(rows: list[list[str]]) -> str:
    rows.insert(1, ["---"] * len(rows[0]))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def document(lines: str) -> str:
    results = Results(lines)
    header = results.header
    peers = ", ".join(f"{name} {version}" for name, version in header.get("peers", {}).items()) or "none"
    budgets = [["figure", "must", "moonshot", "measured", ""]]
    for budget in BUDGETS:
        value = budget.measured(results)
        shown = f"{number(value)}{budget.unit}" if value is not None else "-"
        budgets.append(
            [
                budget.what,
                f"{budget.must:g}{budget.unit}",
                f"{budget.moonshot:g}{budget.unit}",
                shown,
                verdict(budget, value),
            ]
        )
    figures = [["target", *(title for _, _, title in FIGURES)]]
    figures += [
        [target, *(number(results.get(target, *key[:2])) for key in FIGURES)]
        for target in results.targets
        if target != "store"
    ]
    trial = "**A trial in a small size: the figures mean nothing.** " if header.get("scale", 1) < 1 else ""
    parts = [
        f"# Performance\n\n{trial}",
        f"`make bench` on {header.get('date')}, commit {header.get('commit')}: {header.get('machine')}. ",
        f"Peers: {peers}. Persistence on. ",
        "[bench/README.md](../bench/README.md) says how it is measured. Ratios count, not times.\n\n",
        table(budgets),
        "\n",
        table(figures),
    ]
    parts += ["\n", _growth(results)] if results.growth else []
    parts += ["\n", _store(results)]
    return "".join(parts)


def _growth(results: Results) -> str:
    rows = [["turn", "body, kB", "CPU us", "CPU us, turn 5 with the same body", "p50 ms", "p50 ms, turn 5"]]
    for row in results.growth:
        shown = (
            row["turn"],
            row["body_bytes"] / 1000,
            row["cpu_us"],
            row["same_body_turn_5_cpu_us"],
            row["p50_ms"],
            row["same_body_turn_5_p50_ms"],
        )
        rows.append([number(value) for value in shown])
    return f"A conversation that grows:\n\n{table(rows)}\n{_plot(results)}"


def _plot(results: Results) -> str:
    """Turn cost against age; GitHub draws it."""
    turns = ", ".join(f'"{row["turn"]:.0f}"' for row in results.growth)
    old, young = (
        ", ".join(f"{row[name]:.0f}" for row in results.growth) for name in ("cpu_us", "same_body_turn_5_cpu_us")
    )
    return (
        '```mermaid\nxychart-beta\n  title "CPU us per turn: old conversation, and a young one with the same body"\n'
        f'  x-axis "turn" [{turns}]\n  y-axis "us"\n  line [{old}]\n  line [{young}]\n```\n'
    )


def _store(results: Results) -> str:
    names = [key[2] for key in results.best if key[:2] == ("store", "micro")]
    if not names:
        return ""
    rows = [["the store alone", ""], *([name, number(results.get("store", "micro", name))] for name in names)]
    return table(rows)


if __name__ == "__main__":
    sys.stdout.write(document(Path(sys.argv[1]).read_text(encoding="utf-8")))
