"""Results of a run, and of several measurements of a figure the best: it was disturbed the least."""

import json
from typing import Any

BRIDGE, OFF, PEER, NGINX, DIRECT = "toolbridge", "toolbridge, storage off", "litellm", "nginx", "direct"
ROUTER = "claude-code-router"
HIGHER = frozenset({"per_second", "requests"})


class Results:
    def __init__(self, lines: str) -> None:
        self.header: dict[str, Any] = {}
        self.growth: dict[str, list[dict[str, float]]] = {}
        self.best: dict[tuple[str, str, str], float] = {}
        self.targets: dict[str, None] = {}
        for line in filter(None, lines.splitlines()):
            self._take(json.loads(line))

    def _take(self, row: dict[str, Any]) -> None:
        if "target" not in row:
            self.header = row
            return
        target, scenario = row.pop("target"), row.pop("scenario")
        if scenario.startswith("growth"):
            self.growth.setdefault(scenario, []).append(row)
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
