"""What `make bench` prints: the best of each figure, against its budget."""

import json

from bench import bodies, machine
from bench.report import document
from bench.results import Results
from translation.client.parse import parse

HEADER = {"date": "2026-01-01", "machine": "two cores", "commit": "abc", "peers": {"nginx": "1.22"}, "scale": 1.0}


def lines(*rows: dict[str, object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in (HEADER, *rows))


def figure(target: str, scenario: str, **figures: float) -> dict[str, object]:
    return {"target": target, "scenario": scenario, **figures}


def test_of_several_measurements_the_best_counts() -> None:
    name = "small, 32 clients"
    results = Results(
        lines(figure("nginx", name, p50_ms=2, per_second=10), figure("nginx", name, p50_ms=1, per_second=9))
    )
    assert results.get("nginx", name, "p50_ms") == 1
    assert results.get("nginx", name, "per_second") == 10


def test_budgets_are_met_missed_or_not_measured() -> None:
    small = "small, 32 clients"
    text = document(
        lines(
            figure("nginx", small, cpu_us_per_request=10),
            figure("litellm", small, cpu_us_per_request=10_000),
            figure("toolbridge", small, cpu_us_per_request=300),
            figure("toolbridge", "growth", turn=500, body_bytes=1000, cpu_us=110, p50_ms=1,
                   same_body_turn_5_cpu_us=100, same_body_turn_5_p50_ms=1),
        )
    )  # fmt: skip
    assert "| CPU per small request, 32 clients: LiteLLM / ours | 25x | 50x | 33.3x | met |" in text
    assert "| the same: ours / nginx | 18x | 10x | 30x | **missed** |" in text
    assert "| CPU of turn 500 / turn 5 with the same body | 1.2x | 1.05x | 1.1x | met |" in text
    assert "| added p50, 1 client: LiteLLM / ours | 10x | 25x | - | not measured |" in text


def test_bodies_are_requests_of_their_size() -> None:
    big = bodies.big()
    assert 140_000 < len(big) < 155_000
    assert len(parse(big, "2023-06-01", ()).messages) == 101
    assert len(parse(bodies.growing(7), "2023-06-01", ()).messages) == 13
    assert bodies.growing(8).startswith(bodies.growing(7)[:-3])


def test_cpu_of_threads_that_have_ended_is_not_taken_from_the_others() -> None:
    assert machine.Cpu({"1": 5_000_000_000, "3": 1_000_000_000}) - machine.Cpu({"1": 2_000_000_000, "2": 9**12}) == 4
