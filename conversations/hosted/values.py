"""What the parts of this package hand each other."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from conversations.store.hosted import Progressed
from translation.hosted import Offer
from translation.unreadable import UNREADABLE
from translation.values import Note

Progress = Callable[[Progressed], Awaitable[None]]
Failure = Literal[
    "", "refused", "unreachable", "timeout", "status", "bad-json", "too-large", "protocol", "arguments", "resting",
    "busy", "tool", "interrupted",
]  # fmt: skip
# Of these the server is the cause: after some in a row it is left alone for a while.
BLAMED: frozenset[Failure] = frozenset({"unreachable", "timeout", "protocol"})


HIDDEN = "[hidden]"
SHORTEST_SECRET = 6  # shorter ones are words


class Endpoint(Struct, frozen=True):
    """Where a tool is. `headers` hold secrets: they appear nowhere but in the head of a request to this host."""

    kind: Literal["http", "mcp"]
    url: str
    owner: str  # whose it is: nothing is shared between two owners, not even a cached list
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float | None = None
    row: int | None = None
    long_running: bool = False
    failures: int = 0  # in a row, as far as the store knows
    open_until: float = 0.0  # the time until which some process lets it rest

    def without_secrets(self, text: str) -> str:
        """What a server says may repeat what it was sent."""
        for _, value in self.headers:
            for secret in (value, value.rpartition(" ")[2]):
                text = text.replace(secret, HIDDEN) if len(secret) >= SHORTEST_SECRET else text
        return text

    def __repr__(self) -> str:
        return f"Endpoint({self.kind!r}, row={self.row})"


class Hosted(Struct, frozen=True):
    """A tool that is offered, and where it is."""

    offer: Offer
    endpoint: Endpoint


class Offered(Struct, frozen=True):
    """What a request is offered."""

    tools: tuple[Hosted, ...] = ()
    notes: tuple[Note, ...] = ()
    listings: tuple[bytes, ...] = ()  # blocks that its answer begins with: what servers were asked for
    connector: bool = False  # its `mcp_servers` are the bridge's matter; else Anthropic's own


NOTHING_OFFERED = Offered()


class Outcome(Struct, frozen=True):
    """What a run gave: the text that the model is told."""

    text: str
    is_error: bool = False
    error: Failure = ""
    attempts: int = 1
    ms: float = 0


class ToolFailed(Exception):
    """A tool could not be run, or did not answer as it should; the text is for the model."""

    def __init__(self, kind: Failure, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


def given(arguments: bytes) -> dict[str, Any]:
    """What a call gives its tool, by name."""
    try:
        return msgspec.json.decode(arguments or b"{}", type=dict[str, Any])
    except UNREADABLE:
        raise ToolFailed("arguments", "the arguments are not a JSON object") from None
