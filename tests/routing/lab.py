"""What an operator does while the bridge runs: upstreams and routes, with names that no other test has.

A conftest imports this before Django is set up, so it asks for the product's modules when they are needed.
"""
# ruff: noqa: PLC0415

import itertools
import json
import time
from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from tests.api.conftest import Served
from tests.servers.client import Client
from tests.servers.ports import wait_until
from tests.servers.script import Answer, Raw

ENCRYPTION = "a-key-for-tests"
_numbers = itertools.count(1)


class Lab:
    def __init__(self, served: Served) -> None:
        self.served = served
        self.records = served.records
        self.number = next(_numbers)
        self.client = Client(served.bridge.url, served.records.issue())

    def close(self) -> None:
        self.records.rows("Route").all().delete()
        self.client.close()

    # ------------------------------------------------------------ configuring

    def upstream(self, name: str, provider: str = "vllm", keys: Sequence[str] = (), **fields: Any) -> str:
        """Its full name."""
        from conversations import routes
        from conversations.models import Upstream

        full = f"{name}-{self.number}"
        row = Upstream(name=full, provider=provider, base_url=f"{self.served.upstream.url}/{full}/v1", enabled=True)
        routes.give_keys(row, keys)
        for field, value in fields.items():
            setattr(row, field, value)
        row.save(using=self.records.alias)
        return full

    def route(self, target: str, *fallbacks: str, **fields: Any) -> str:
        """The name to ask for, once every process knows it; that takes less than a second."""
        name = f"model-{self.number}-{next(_numbers)}"
        row = {"pattern": name, "target": target, "fallbacks": "\n".join(fallbacks), **fields}
        self.records.rows("Route").create(**row)
        self.announce()
        wait_until(lambda: self.leads_to(name) != "", f"{name} is known", seconds=1.5)
        return name

    def announce(self) -> None:
        self.records.rows("Change").create(kind="routes", ref="test", created_at=timezone.now())

    def leads_to(self, name: str) -> str:
        response = self.client.http.get(f"/v1/models/{name}")
        return str(response.json()["display_name"]) if response.status_code == 200 else ""

    # ------------------------------------------------------------ asking

    def answers(self, upstream: str, *answers: Answer | Raw, path: str = "/chat/completions") -> None:
        self.served.upstream.queue(f"/{upstream}/v1{path}", *answers)

    def always(self, upstream: str, answer: Answer | Raw, path: str = "/chat/completions") -> None:
        self.served.upstream.always(f"/{upstream}/v1{path}", answer)

    def ask(self, model: str, words: str = "hi", **fields: Any) -> Any:
        return self.client.ask(words, model=model, **fields)

    def requests(self, upstream: str) -> list[Any]:
        return [request for request in self.served.upstream.requests if request.path.startswith(f"/{upstream}/")]

    # ------------------------------------------------------------ what was recorded

    def attempts(self) -> list[tuple[str, str]]:
        """Upstream (without the test's number) and status of each attempt of the newest turn."""
        found = json.loads(bytes(self.turn().attempts))
        return [(attempt["upstream"].rpartition("-")[0], attempt["status"]) for attempt in found]

    def ledger(self) -> list[tuple[str, str]]:
        rows = self.records.usage(self.client.api_key)
        return [(row.upstream.rpartition("-")[0], row.status) for row in rows]

    def notes(self) -> list[dict[str, Any]]:
        notes: list[dict[str, Any]] = json.loads(bytes(self.turn().notes))
        return notes

    def turn(self) -> Any:
        turns = self.records.turns(self.client.api_key)
        wait_until(lambda: turns.exists() and not turns.filter(status="running").exists(), "the turn is closed")
        return turns.last()


def timed(call: Any) -> tuple[float, Any]:
    start = time.monotonic()
    result = call()
    return time.monotonic() - start, result
