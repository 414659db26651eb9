"""Several web processes on one database, asked over HTTP; keys are issued by the operator's own commands."""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.servers.bridge import PROJECT
from tests.servers.script import Answer, json_answer
from tests.servers.tree import Tree

CHAT = "/v1/chat/completions"
QUESTION = {"model": "openai/gpt-x", "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]}


def chat_answer(prompt: int = 40, completion: int = 20, text: str = "hi") -> Answer:
    message = {"role": "assistant", "content": text}
    return json_answer(
        {
            "id": "c1",
            "object": "chat.completion",
            "model": "gpt-x",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
        }
    )


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def error(self) -> str:
        return str(self.body["error"]["type"])


class Cluster:
    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self.tree = Tree(home, environment)
        self.database = environment.get("DATABASE_URL", "")
        self._home = home

    def start(self) -> None:
        self.tree.start()
        # The supervisor, the background process and the web processes.
        self.tree.wait_for_processes(2 + int(self.environment["WEB_WORKERS"]))

    def stop(self) -> None:
        self.tree.stop()

    def manage(self, *arguments: str) -> str:
        """What a management command prints."""
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=PROJECT, env=self.tree._environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def issue(self, name: str, **limits: object) -> str:
        options = [f"--{option.replace('_', '-')}={value}" for option, value in limits.items()]
        return self.manage("issue_key", name, *options)

    def price(self, pattern: str, given: float, answered: float) -> None:
        """As the operator does in the admin; counts within a second."""
        save = f"Price.objects.update_or_create(pattern='{pattern}', defaults=dict(input={given}, output={answered}))"
        models = "from conversations.models import Price; from conversations import ledger"
        self.manage("shell", "--no-imports", "-c", f"{models}; {save}; ledger.announce_prices()")
        time.sleep(1)

    def ask(self, key: str, body: object = None, path: str = "/v1/messages", **headers: str) -> Reply:
        """On a connection of its own, so that any process may take it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.tree.port, timeout=60)
        given = {"x-api-key": key, "content-type": "application/json", **headers}
        try:
            connection.request("POST", path, json.dumps(body or QUESTION), given)
            response = connection.getresponse()
            data = response.read()
            streamed = response.headers.get("content-type", "").startswith("text/event-stream")
            return Reply(response.status, dict(response.headers), data if streamed else json.loads(data))
        finally:
            connection.close()

    def ask_many(self, key: str, count: int, body: object = None) -> list[Reply]:
        """All at the same time."""
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(lambda _: self.ask(key, body), range(count)))

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.tree.port, timeout=60)
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database) as connection:
            return connection.execute(sql.encode(), values).fetchall()
