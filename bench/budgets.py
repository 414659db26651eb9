"""What the bridge may cost: each budget with its must, its moonshot, and how it is measured."""

from collections.abc import Callable

from msgspec import Struct

from bench.results import BRIDGE, DIRECT, NGINX, OFF, PEER, ROUTER, Results


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


def aged(scenario: str) -> Callable[[Results], float | None]:
    """The three oldest turns together, against fifth ones with the same history."""

    def measured(results: Results) -> float | None:
        rows = sorted(results.growth.get(scenario, []), key=lambda row: row["turn"])[-3:]
        return ratio(sum(row["cpu_us"] for row in rows), sum(row["same_body_turn_5_cpu_us"] for row in rows))

    return measured


def figure(scenario: str, name: str) -> Callable[[Results], float | None]:
    return lambda results: results.get(BRIDGE, scenario, name)


def grown(name: str) -> Callable[[Results], float | None]:
    """The end of the mixed run against its middle."""
    return lambda results: ratio(figure("mixed", f"{name}_end")(results), figure("mixed", f"{name}_middle")(results))


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
    Budget("CPU of turn 500 / turn 5 with the same body", aged("growth"), 1.2, 1.05, least=False),
    Budget("the same on PostgreSQL", aged("growth, PostgreSQL"), 1.2, 1.05, least=False),
    Budget("the same with `thread: continue`", aged("growth, threads"), 1.2, 1.05, least=False),
    Budget(
        "the same with `thread: continue` on PostgreSQL", aged("growth, threads, PostgreSQL"), 1.2, 1.05, least=False
    ),
    Budget(
        "purge, PostgreSQL: longest transaction",
        figure("purge, PostgreSQL", "longest_transaction_ms"),
        100,
        50,
        " ms",
        least=False,
    ),
    Budget(
        "purge, PostgreSQL: p99 of live requests, during / before",
        figure("purge, PostgreSQL", "p99_ratio"),
        1.2,
        1.1,
        least=False,
    ),
    Budget(
        "purge, SQLite: longest transaction", figure("purge", "longest_transaction_ms"), 100, 50, " ms", least=False
    ),
    Budget("purge, SQLite: p99 of live requests, during / before", figure("purge", "p99_ratio"), 1.2, 1.1, least=False),
    Budget("p99 beside clients that do not read", figure("slow", "p99_ms"), 250, 100, " ms", least=False),
    Budget("mixed run: errors", figure("mixed", "errors"), 0, 0, "", least=False),
    Budget("mixed run: memory, end / middle", grown("mb"), 1.05, 1.02, least=False),
    Budget("mixed run: descriptors, end / middle", grown("fds"), 1.05, 1.02, least=False),
    Budget(
        "database / unique content, 200 turns",
        lambda results: results.get(BRIDGE, "stored", "ratio"),
        3,
        2,
        least=False,
    ),
)
