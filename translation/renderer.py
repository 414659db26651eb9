"""What the bridge says to a client, in the client's dialect. One renderer per answer: it may have to count."""

from typing import Protocol

from msgspec import Struct

from translation.accumulator import Accumulator
from translation.errors import BridgeError
from translation.events import WireEvent


class Refusal(Struct, frozen=True):
    """An error in place of an answer."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Renderer(Protocol):
    ping: bytes  # keeps a quiet stream open

    def events(self, wire: list[WireEvent]) -> bytes:
        """All events that go out in one write."""
        ...

    def whole(self, accumulator: Accumulator) -> bytes:
        """The answer for a client that did not ask for a stream."""
        ...

    def error(self, error: BridgeError, request_id: str) -> bytes:
        """What ends a stream that cannot go on."""
        ...

    def refusal(self, error: BridgeError, request_id: str) -> Refusal: ...

    def headers(self, request_id: str) -> tuple[tuple[str, str], ...]: ...
