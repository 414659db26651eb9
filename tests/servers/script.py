"""What a scripted upstream says, step by step, and what it heard."""

import asyncio
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


class Gate:
    """Holds the answer until the test opens it; `reached` tells the test that the upstream stands before it."""

    def __init__(self) -> None:
        self.reached: Final = threading.Event()
        self._open = threading.Event()

    def open(self) -> None:
        self._open.set()

    async def passed(self) -> None:
        self.reached.set()
        while not self._open.is_set():  # noqa: ASYNC110 - the test opens it from another thread
            await asyncio.sleep(0.002)


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing more, for as long as the client stays."""


@dataclass(frozen=True, slots=True)
class Abort:
    """The connection is reset, in the middle of whatever was being said."""


Step = bytes | Pause | Gate | Silence | Abort


@dataclass(frozen=True, slots=True)
class Answer:
    """A well-formed HTTP answer unless a step breaks it: chunked, one chunk per bytes step."""

    steps: tuple[Step, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Raw:
    """Exactly these bytes on the wire, head and all; the connection is closed after them."""

    steps: tuple[Step, ...]


def json_answer(payload: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer((json.dumps(payload).encode(),), status, {"content-type": "application/json", **(headers or {})})


def sse_answer(*steps: Step) -> Answer:
    return Answer(steps, headers={"content-type": "text/event-stream"})


@dataclass(slots=True)
class Recorded:
    """A request as the upstream got it; header names in lower case."""

    method: str = ""
    path: str = ""
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    # Set when the client went away before the answer was complete.
    abandoned: threading.Event = field(default_factory=threading.Event)

    def json(self) -> Any:
        return json.loads(self.body)
