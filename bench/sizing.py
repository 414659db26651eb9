"""What one core does, and what a turn leaves behind: the table of docs/scale.md, from results."""

from collections.abc import Callable

BEGIN, END = "<!-- sizing -->\n", "<!-- /sizing -->"
Get = Callable[[str, str, str], float | None]
BRIDGE, POSTGRES = "toolbridge", "toolbridge, PostgreSQL, 1 web"


def rows(get: Get) -> list[tuple[str, str, str]]:
    """What, on SQLite, on PostgreSQL (its own server's work is not in it)."""

    def both(what: str, scenario: str, name: str, per_core: float = 0.0) -> tuple[str, str, str]:
        values = (get(target, scenario, name) for target in (BRIDGE, POSTGRES))
        return what, *(number(per_core / value if value and per_core else value) for value in values)  # type: ignore[return-value]

    def alone(what: str, scenario: str, name: str, over: str = "") -> tuple[str, str, str]:
        found = []
        for suffix in ("", ", PostgreSQL"):
            value, by = get(BRIDGE, scenario + suffix, name), get(BRIDGE, scenario + suffix, over) if over else 1.0
            found.append(number(value / by if value is not None and by else None))
        return what, *found  # type: ignore[return-value]

    return [
        both("small requests per second and core", "small, 32 clients", "cpu_us_per_request", 1e6),
        both("requests of 147 kB per second and core", "big, 32 clients", "cpu_us_per_request", 1e6),
        both("tokens per second and core, one to a write", "paced, 32 clients", "cpu_us_per_chunk", 1e6),
        both("tokens per second and core, many to a write", "burst, 32 clients", "cpu_us_per_chunk", 1e6),
        alone("rows per turn", "stored", "rows", "turns"),
        alone("bytes per turn, with indexes", "stored", "database_bytes", "turns"),
        alone("bytes in the database per byte said", "stored", "ratio"),
        alone("conversations purged per second, beside the load", "purge", "per_second"),
        alone("rows purged per second", "purge", "rows_per_second"),
        ("memory per idle stream, kB", number(get(BRIDGE, "idle", "kb_each")), ""),
    ]


def replaced(document: str, table: list[tuple[str, str, str]]) -> str:
    before, _, rest = document.partition(BEGIN)
    lines = ["| measured | SQLite | PostgreSQL |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in table)]
    return before + BEGIN + "\n".join(lines) + "\n" + END + rest.partition(END)[2]


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
