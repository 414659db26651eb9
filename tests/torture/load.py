"""Steady traffic from a thread of its own: so many requests a second, whatever becomes of them, and what came back."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx

from tests.servers.client import NO_AUTHORITIES, TOOL, body

TERMINATORS = (b"event: message_stop", b"event: error")


@dataclass(frozen=True, slots=True)
class Reply:
    """`status` 0 is no answer at all; `ended` tells whether a stream had exactly one terminator."""

    began: float
    seconds: float  # until the head of the answer
    status: int
    retry_after: str
    text: str
    stream: bool
    ended: bool
    calls: tuple[str, ...] = field(default=())

    @property
    def good(self) -> bool:
        return self.status == 200 and "event: error" not in self.text


class Load:
    def __init__(
        self, url: str, api_key: str, rate: float, asked: Callable[[int], dict[str, Any]] | None = None
    ) -> None:
        self.replies: list[Reply] = []
        self._url = url
        self._key = api_key
        self._rate = rate
        self._asked = asked or (lambda number: body(f"Question {number}", tools=[TOOL], stream=number % 2 == 0))
        self._running = True
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="load", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running = False
        self._thread.join(60)
        assert not self._thread.is_alive(), "requests hang"

    def since(self, moment: float) -> list[Reply]:
        return [reply for reply in list(self.replies) if reply.began >= moment]

    async def _run(self) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
        async with httpx.AsyncClient(
            base_url=self._url, headers={"x-api-key": self._key}, timeout=30, verify=NO_AUTHORITIES, limits=limits
        ) as client:
            tasks: set[asyncio.Task[None]] = set()
            number, due = 0, time.monotonic()
            while self._running:
                task = asyncio.create_task(self._one(client, number))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                number, due = number + 1, due + 1 / self._rate
                await asyncio.sleep(max(0.0, due - time.monotonic()))
            await asyncio.gather(*tasks)

    async def _one(self, client: httpx.AsyncClient, number: int) -> None:
        asked, began = self._asked(number), time.monotonic()
        status, seconds, retry_after, content, whole = 0, 0.0, "", b"", False
        try:
            async with client.stream("POST", "/v1/messages", json=asked) as response:
                seconds = time.monotonic() - began
                status, retry_after = response.status_code, response.headers.get("retry-after", "")
                async for chunk in response.aiter_bytes():
                    content += chunk
                whole = True
        except httpx.HTTPError as error:
            content += f"({type(error).__name__}: {error})".encode()
            seconds = seconds or time.monotonic() - began
        stream = status == 200 and asked.get("stream", False)
        ended = whole and (not stream or sum(map(content.count, TERMINATORS)) == 1)
        text = content.decode(errors="replace")
        self.replies.append(
            Reply(began, seconds, status, retry_after, text, stream, ended, _calls(text, stream=stream))
        )


def _calls(text: str, *, stream: bool) -> tuple[str, ...]:
    """The tool calls that this answer has shown."""
    if not stream:
        blocks = json.loads(text).get("content", []) if text.startswith("{") else []
    else:
        events = [
            json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {") and line.endswith("}")
        ]
        blocks = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    return tuple(block["id"] for block in blocks if block["type"] == "tool_use")
