"""`make bench`: every target through every scenario, results as JSON lines, then the table of budgets.

python -m bench.run [--only small,idle] [--targets nginx,toolbridge] [--scale 0.02] [--repeat 2] [--out FILE]
"""

import argparse
import datetime as dt
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench import growth, machine, report, scenarios, targets
from bench.alone import Alone, postgres
from bench.targets import HOME, PROJECT, Running

Start = Callable[[], AbstractContextManager[Running]]


class Bench:
    def __init__(self, options: argparse.Namespace, upstream: Running) -> None:
        self.options = options
        self.upstream = upstream
        self.scale = float(options.scale)

    def wants(self, name: str) -> bool:
        return not self.options.only or any(name.startswith(part) for part in self.options.only.split(","))

    def tells(self, target: str, scenario: str, figures: dict[str, float]) -> None:
        rounded = {name: float(f"{value:.5g}") for name, value in figures.items()}
        line = json.dumps({"target": target, "scenario": scenario, **rounded})
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        with Path(self.options.out).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    # ------------------------------------------------------------ every target

    def plain(self, name: str, start: Start) -> None:
        if not any(self.wants(scenario.name) for scenario in scenarios.SCENARIOS):
            return
        with start() as running:
            scenarios.settle(running)
            begun = {
                "cold_start_s": running.cold_start,
                "tree_mb": machine.memory(running.pid),
                "web_mb": machine.memory(running.web),
            }
            self.tells(name, "start", begun)
            scenarios.warm(running)
            for _ in range(self.options.repeat):
                for scenario in scenarios.SCENARIOS:
                    if self.wants(scenario.name):
                        figures = scenarios.measure(running, scenario, self.upstream.port, self.scale)
                        self.tells(name, scenario.name, figures)
                        if (name, scenario.name) == ("toolbridge", "small, 1 client"):
                            self.tells(name, "state", growth.waited(HOME / "toolbridge", int(figures["requests"])))

    def all_targets(self) -> Iterator[tuple[str, Start]]:
        port = self.upstream.port
        yield "direct", self._itself
        if shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"):
            yield "nginx", lambda: targets.nginx(port)
        if targets.LITELLM.exists():
            yield "litellm", lambda: targets.litellm(port)
        if targets.ROUTER.exists():
            yield "claude-code-router", lambda: targets.router(port)
        yield "toolbridge", lambda: targets.toolbridge(port, "toolbridge")
        yield "toolbridge, storage off", lambda: targets.toolbridge(port, "off", BRIDGE_STORAGE="off")
        for workers in ("1", "2", "4"):
            name = f"toolbridge, PostgreSQL, {workers} web"
            yield name, partial(postgres, port, f"postgres-{workers}", WEB_WORKERS=workers)

    @contextmanager
    def _itself(self) -> Iterator[Running]:
        yield self.upstream


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument("--only", default="", help="beginnings of scenarios' names, comma-separated; all")
    parser.add_argument(
        "--targets", default="", help="names of targets, separated by semicolons; all that are installed"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="0.02 tries whether everything works")
    parser.add_argument("--conversations", type=int, default=1_000_000, help="to be purged; a tenth of it on SQLite")
    parser.add_argument("--purging", type=float, default=3600.0, help="seconds that each purge may take")
    parser.add_argument("--repeat", type=int, default=2, help="of each figure the best counts")
    parser.add_argument("--out", default=str(HOME / "results.jsonl"))
    options = parser.parse_args(arguments)
    HOME.mkdir(parents=True, exist_ok=True)
    Path(options.out).write_text(json.dumps(_header(arguments) | {"scale": options.scale}) + "\n", encoding="utf-8")
    machine.end_cleanly()
    machine.raise_descriptors()
    machine.pin(machine.LOAD)
    with targets.fake_upstream() as upstream:
        bench = Bench(options, upstream)
        for name, start in bench.all_targets():
            if not options.targets or name in options.targets.split(";"):
                bench.plain(name, start)
        alone = Alone(upstream.port, bench.scale, options.conversations, options.purging, bench.tells)
        alone.run(bench.wants)
    sys.stdout.write("\n" + report.document(Path(options.out).read_text(encoding="utf-8")))


def _header(arguments: list[str]) -> dict[str, Any]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    now = dt.datetime.now(dt.UTC)
    return {
        "date": f"{now:%Y-%m-%d}",
        "command": " ".join(["python -m bench.run", *arguments]) if arguments else "make bench",
        "machine": machine.described(),
        "commit": commit.stdout.strip(),
        "peers": _peers(),
    }


def _peers() -> dict[str, str]:
    found = {}
    if command := shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"):
        said = subprocess.run([command, "-v"], capture_output=True, text=True, check=False).stderr
        found["nginx"] = said.rpartition("/")[2].strip()
    if targets.LITELLM.exists():
        python = targets.LITELLM.with_name("python")
        ask = "from importlib.metadata import version; print(version('litellm'))"
        found["LiteLLM"] = subprocess.run(
            [python, "-c", ask], capture_output=True, text=True, check=False
        ).stdout.strip()
    if targets.ROUTER.exists():
        package = targets.ROUTER.parent.parent / "@musistudio" / "claude-code-router" / "package.json"
        found["claude-code-router"] = json.loads(package.read_text())["version"]
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
