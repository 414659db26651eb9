"""From results to the table of budgets: `python -m bench.report RESULTS...` prints it, `--write` puts it into docs/."""

import sys
from pathlib import Path

from bench import plot, sizing
from bench.budgets import BUDGETS, CHUNK, CPU, Budget
from bench.results import BRIDGE, Results
from bench.sizing import number

DOCS = Path(__file__).resolve().parent.parent / "docs"

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
        if target not in {"store", "decoder"}
    ]
    trial = "**A trial in a small size: the figures mean nothing.** " if header.get("scale", 1) < 1 else ""
    parts = [
        f"# Performance\n\n{trial}",
        f"`{header.get('command')}` on {header.get('date')}, commit {header.get('commit')}: {header.get('machine')}. ",
        f"Peers: {peers}. Persistence on. ",
        "[bench/README.md](../bench/README.md) says how it is measured. Ratios count, not times. ",
        "The operators' pages have figures of their own: [console.md](console.md).\n\n",
        table(budgets),
        "\n",
        table(figures),
    ]
    parts += [_growth(name, rows) for name, rows in results.growth.items()]
    if results.growth:
        parts.append("\n![CPU of a turn against the age of its conversation](growth.svg)\n")
    parts += [_alone(results, scenario) for scenario in ALONE]
    parts += [_store(results), _decoders(results)]
    return "".join(parts)


ALONE = ("idle", "slow", "stored", "stored, PostgreSQL", "purge", "purge, PostgreSQL", "mixed")


def _growth(name: str, rows: list[dict[str, float]]) -> str:
    shown = [["turn", "body, kB", "CPU us", "CPU us, turn 5 with the same body", "p50 ms", "p50 ms, turn 5"]]
    for row in rows:
        own, same = (row["cpu_us"], row["p50_ms"]), (row["same_body_turn_5_cpu_us"], row["same_body_turn_5_p50_ms"])
        figures = (row["turn"], row["body_bytes"] / 1000, own[0], same[0], own[1], same[1])
        shown.append([number(value) for value in figures])
    return f"\nA conversation that grows ({name}):\n\n{table(shown)}"


def growth_plot(results: Results) -> str:
    lines = [
        (
            name.removeprefix("growth").strip(", ") or "SQLite",
            [(row["turn"], row["cpu_us"]) for row in rows],
            [(row["turn"], row["same_body_turn_5_cpu_us"]) for row in rows],
        )
        for name, rows in results.growth.items()
    ]
    return plot.svg("CPU of a turn, microseconds", lines)


def _alone(results: Results, scenario: str) -> str:
    figures = {key[2]: value for key, value in results.best.items() if key[:2] == (BRIDGE, scenario)}
    if not figures:
        return ""
    return "\n" + table([[scenario, ""], *([name, number(value)] for name, value in figures.items())])


def _store(results: Results) -> str:
    names = [key[2] for key in results.best if key[:2] == ("store", "micro")]
    if not names:
        return ""
    rows = [["the store alone", "SQLite", "PostgreSQL"]]
    rows += [
        [name, number(results.get("store", "micro", name)), number(results.get("store", "micro, PostgreSQL", name))]
        for name in names
    ]
    return "\n" + table(rows)


def _decoders(results: Results) -> str:
    captures = list(dict.fromkeys(scenario for target, scenario, _ in results.best if target == "decoder"))
    if not captures:
        return ""
    rows = [["decoder", "bytes of a chunk", "us per chunk", "us per chunk, 16 in a read"]]
    for capture in captures:
        names = ("bytes", "us_per_chunk", "us_per_chunk_of_16")
        rows.append([capture, *(number(results.get("decoder", capture, name)) for name in names)])
    return "\n" + table(rows)


def main(arguments: list[str]) -> None:
    files = [Path(name) for name in arguments if not name.startswith("--")]
    lines = "".join(file.read_text(encoding="utf-8") for file in files)
    if "--write" not in arguments:
        sys.stdout.write(document(lines))
        return
    results = Results(lines)
    (DOCS / "performance.md").write_text(document(lines), encoding="utf-8")
    (DOCS / "growth.svg").write_text(growth_plot(results), encoding="utf-8")
    scale = DOCS / "scale.md"
    scale.write_text(sizing.replaced(scale.read_text(encoding="utf-8"), sizing.rows(results.get)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
