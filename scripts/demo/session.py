"""A client of the demo: one conversation with the bridge, as an agent holds it."""

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from scripts.demo.upstream import Cast, Line
from tests.e2e.dialects.script import Call
from tests.servers.client import Client, folded

Json = dict[str, Any]
SYSTEM = (
    "You are a careful software engineer. Read before you write, run the tests after each change, and keep answers "
    "short. The repository is a web shop: Python services under services/, a React front end under web/, Terraform "
    "under infra/. "
) * 6


def tool(name: str, about: str, /, **properties: str) -> Json:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return {"name": name, "description": about, "input_schema": schema | {"required": list(properties)[:1]}}


TOOLS = [
    tool("Read", "Read a file of the repository.", path="string", limit="integer"),
    tool("Grep", "Search the repository for a pattern.", pattern="string", path="string"),
    tool("Edit", "Replace text in a file.", path="string", old="string", new="string"),
    tool("Bash", "Run a command in the sandbox.", command="string"),
    tool("WebFetch", "Fetch a page.", url="string"),
    tool("Screenshot", "A picture of the running application.", page="string"),
    tool("Task", "Start a sub-agent with a task of its own.", description="string", prompt="string"),
]


class Session:
    """`ask` sends the history and the model's next lines; what comes back becomes part of the history."""

    def __init__(self, client: Client, cast: Cast, opening: str, model: str, pace: float) -> None:
        self.client, self.cast, self.opening, self.model = client, cast, opening, model
        self.history: list[Json] = []
        self.headers: dict[str, str] = {}
        self.fields: Json = {"system": SYSTEM, "tools": TOOLS, "max_tokens": 4096}
        self.stream = True
        self.chance = random.Random(opening)  # noqa: S311 - not for secrets
        self.tempo = pace

    def ask(self, said: Any, *lines: Line) -> list[Json]:
        """The calls of the answer; none when it failed."""
        self.cast.expect(self.opening, *lines)
        messages = [*self.history, {"role": "user", "content": said}]
        if self.stream:
            blocks = self._streamed(messages)
        else:
            response = self.client.ask(*messages, headers=self.headers, **self.fields, model=self.model)
            blocks = response.json()["content"] if response.status_code == 200 else []
        if blocks:
            self.history = [*messages, {"role": "assistant", "content": blocks}]
        return [block for block in blocks if block["type"] == "tool_use"]

    def _streamed(self, messages: list[Json]) -> list[Json]:
        fields: Json = {**self.fields, "model": self.model}
        with self.client.stream(*messages, headers=self.headers, **fields) as (response, events):
            if response.status_code != 200:
                response.read()
                return []
            seen = list(events)
        return folded(seen) if seen[-1].name == "message_stop" else []

    def leave(self, said: Any, line: Line, after: int = 4) -> None:
        """Begin a turn, and go away in the middle of it."""
        self.cast.expect(self.opening, line)
        messages = [*self.history, {"role": "user", "content": said}]
        fields: Json = {**self.fields, "model": self.model}
        with self.client.stream(*messages, headers=self.headers, **fields) as (_, events):
            for _ in range(after):
                next(events, None)
        self.history = messages

    def work(self, said: Any, *steps: tuple[Line, "tuple[Any, ...]"]) -> None:
        """A chain of calls: each step is what the model says, and what its calls give."""
        calls: list[Json] = []
        for line, results in steps:
            calls = self.ask(said, line)
            if len(calls) != len(results):
                return
            self.pause(0.02, 0.35)
            said = [answered(call, given) for call, given in zip(calls, results, strict=True)]

    def pause(self, least: float, most: float) -> None:
        time.sleep(self.tempo * self.chance.uniform(least, most))


class Failed(str):
    """A result that is an error."""

    __slots__ = ()


def answered(call: Mapping[str, Any], given: Any) -> Json:
    block = {"type": "tool_result", "tool_use_id": call["id"], "content": given}
    return block | ({"is_error": True} if isinstance(given, Failed) else {})


def use(name: str, /, **arguments: Any) -> Call:
    return Call(name, arguments)


Story = Callable[[Session, int], None]
