"""The table of docs/reliability.md: read back, brought up to date, written. Each line says where and when."""

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tests.servers.bridge import PROJECT
from tests.torture.properties import PROPERTIES

DOCUMENT = PROJECT / "docs" / "reliability.md"
HEAD = """\
# Reliability

What the promises of [ARCHITECTURE.md](../ARCHITECTURE.md) are worth when everything else breaks. `make torture` writes this page: every fault is a real one (signals, a TCP proxy that
delays, cuts, corrupts, stalls and half-opens, file permissions, full disks, limits of the system), never a patch of the bridge's own code. The same tests run in a small size in `make test`.

    make torture                              # everything in full size: many hours
    make torture SCALE=0.01                   # a hundredth of the trials
    make torture ONLY="kill purge" SCALE=0.1  # two properties
    make torture JOBS=4                       # four tests at a time; figures of time are then worth less

A property that a run left out keeps its older line. `scale` is the share of the full size that was run; a trial is what the full size counts. Limits of time are judged as the promise says them,
also on a machine that has other work: the figures say by how much they were missed.

"""
COLUMNS = (
    "property", "what holds", "full size", "trials", "failures", "scale", "figures", "took", "date", "commit", "machine",
)  # fmt: skip

Run = dict[str, str]


class Where(NamedTuple):
    date: str
    commit: str
    machine: str


def here() -> Where:
    commit = _git("rev-parse", "--short", "HEAD") or "?"
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/reliability.md")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} cores, {memory:.0f} GB, {platform.system()}, Python {platform.python_version()}"
    return Where(datetime.now(UTC).strftime("%Y-%m-%d"), commit + "-dirty" * bool(changed), machine)


def _git(*arguments: str) -> str:
    """What it says; nothing outside of a repository."""
    done = subprocess.run(["git", *arguments], cwd=PROJECT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def summed(lines: Iterable[Mapping[str, Any]], scale: str) -> list[Run]:
    """One run for each property, of all tests that prove it."""
    where = here()
    found: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines:
        found.setdefault(line["property"], []).append(line)
    runs = []
    for name in filter(found.__contains__, PROPERTIES):
        of_it = found[name]
        figures: dict[str, float] = {}
        for line in of_it:
            for figure, value in line["figures"].items():
                figures[figure] = max(value, figures.get(figure, value))
        runs.append(
            {
                "property": f"`{name}`",
                "what holds": PROPERTIES[name].says,
                "full size": PROPERTIES[name].full_size,
                "trials": f"{sum(line['trials'] for line in of_it):,}",
                "failures": f"{sum(line['failures'] for line in of_it):,}",
                "scale": scale,
                "figures": "; ".join(f"{figure} {value:.4g}" for figure, value in figures.items()),
                "took": f"{sum(line['seconds'] for line in of_it):,.0f} s",
                **where._asdict(),
            }
        )
    return runs


def table(runs: Iterable[Run]) -> str:
    """For the eyes of who runs it."""
    rows = [("property", "trials", "failures", "took", "figures")]
    rows += [(run["property"].strip("`"), run["trials"], run["failures"], run["took"], run["figures"]) for run in runs]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "".join(
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )


def told(lines: Iterable[Mapping[str, Any]]) -> str:
    """What failed, in words."""
    return "".join(f"\n{line['test']}\n" + "\n".join(line["details"]) + "\n" for line in lines if line["details"])


def keep(runs: Iterable[Run]) -> None:
    kept = read() | {run["property"]: run for run in runs}
    ordered = [kept[name] for name in (f"`{name}`" for name in PROPERTIES) if name in kept]
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(tuple(run[column] for column in COLUMNS) for run in ordered)]
    DOCUMENT.write_text(HEAD + "".join(f"| {' | '.join(line)} |\n" for line in lines), encoding="utf-8")


def read() -> dict[str, Run]:
    """The lines that are there already, by property."""
    if not DOCUMENT.exists():
        return {}
    rows = [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    runs = [dict(zip(COLUMNS, (cell.strip() for cell in row.strip("|").split("|")), strict=True)) for row in rows]
    return {run["property"]: run for run in runs}
