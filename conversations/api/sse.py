"""A turn as the response to its client: a whole message, or a stream that always ends in exactly one terminator."""

import asyncio
import logging
import time

from conversations.api.exchange import Drain, LeanResponse, Write
from conversations.api.lean import refused
from conversations.audience import Reader
from conversations.process import WebProcess
from conversations.repeats import Repeat
from conversations.store import patience
from conversations.turn import Turn
from translation.errors import BridgeError, OwnFault
from translation.events import WireEvent
from translation.renderer import Renderer
from translation.values import Note

log = logging.getLogger(__name__)

STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
WARNINGS = {"unstored-link": "unstored-link", "usage-estimated": "usage-estimated"}
# Every healthy session has them.
ROUTINE = frozenset({"system-in-place", "results-ordered", "merged", "tools-deferred"})
WARNING_KINDS = {"substitution": "state-substituted", "repair": "history-repaired"}


async def whole(turn: Turn | Repeat | Reader, renderer: Renderer) -> LeanResponse:
    try:
        await turn.begin()
        while not (turn := turn.reader or turn).done:
            await turn.read()
    except BridgeError as error:
        return _refused(turn, error, renderer)
    except asyncio.CancelledError:
        turn.abort()
        raise
    headers = [(b"content-type", b"application/json"), *_headers(turn, renderer)]
    return LeanResponse(200, headers, renderer.whole(turn.accumulator))


async def stream(turn: Turn | Repeat, process: WebProcess, renderer: Renderer) -> LeanResponse:
    """Holds the status line until there is something to show, or it takes too long: errors until then are real ones."""
    first = asyncio.get_running_loop().create_task(turn.begin())
    held = time.perf_counter() - turn.ask.received
    try:
        await asyncio.wait((first,), timeout=max(0.0, process.conf.hold_seconds - held))
        if first.done():
            first.result()
    except BridgeError as error:
        return _refused(turn, error, renderer)
    except asyncio.CancelledError:
        first.cancel()
        (turn.reader or turn).abort()
        raise
    body = _Stream(turn, process, renderer, first)
    return LeanResponse(200, [*STREAM_HEADERS, *_headers(turn, renderer)], stream=body.send)


class _Stream:
    """The body of a stream. Quiet ones are ticked by the process, so that no stream needs a timer of its own."""

    __slots__ = (
        "_behind",
        "_first",
        "_last",
        "_noted",
        "_ping",
        "_process",
        "_renderer",
        "_turn",
        "_warned",
        "_write",
    )

    def __init__(
        self, turn: Turn | Repeat, process: WebProcess, renderer: Renderer, first: "asyncio.Task[list[WireEvent]]"
    ) -> None:
        self._turn = turn
        self._process = process
        self._renderer = renderer
        self._first = first
        self._last = time.monotonic()
        self._ping = process.conf.ping_seconds
        self._noted = 0
        self._write: Write
        self._behind: Drain | None = None
        self._warned = set(_warnings(turn))  # the head of the response says these

    def tick(self, now: float) -> None:
        if now - self._last >= self._ping:
            self._turn.nudge()

    async def send(self, write: Write) -> None:
        turn: Turn | Repeat | Reader = self._turn
        self._write, asked = write, patience.current()
        self._process.quiet.add(self)
        try:
            await self._tell(self._rendered(await self._first_events()))
            if isinstance(turn, Turn):
                turn.show = self._show
            while not (turn := turn.reader or turn).done:
                asked.spent = 0.0
                wire = await turn.read()
                if wire:
                    await self._tell(self._rendered(wire))
                elif time.monotonic() - self._last >= self._ping:
                    await self._tell(self._renderer.ping)
                else:
                    await self._drain()
        except BridgeError as error:
            await self._fail(turn, error)
        except asyncio.CancelledError:
            self._first.cancel()
            (turn.reader or turn).abort()
            raise
        except Exception:  # promise 2: whatever happened, the stream ends in a terminator
            log.exception("stream %s failed", turn.ask.request_id)
            await self._fail(turn, OwnFault("internal error"))
        finally:
            self._process.quiet.discard(self)
            if isinstance(self._turn, Turn):
                self._turn.show = None  # it and this object would refer to each other

    async def _first_events(self) -> list[WireEvent]:
        while not self._first.done():
            await asyncio.wait((self._first,), timeout=self._ping)
            if not self._first.done():
                await self._tell(self._renderer.ping)
        return self._first.result()

    def _show(self, wire: list[WireEvent]) -> bool:
        """Where the upstream is read, while this waits for it. Whether the client takes more."""
        if wire:
            self._last = time.monotonic()
            self._behind = self._write(self._rendered(wire))
        return self._behind is None

    def _rendered(self, wire: list[WireEvent]) -> bytes:
        piece = self._renderer.events(wire)
        return piece if len(self._turn.notes) == self._noted else self._late_warnings() + piece

    async def _tell(self, piece: bytes) -> None:
        await self._drain()
        self._last = time.monotonic()
        self._behind = self._write(piece)
        await self._drain()

    async def _drain(self) -> None:
        behind, self._behind = self._behind, None
        if behind is not None:
            await behind()

    async def _fail(self, turn: Turn | Repeat | Reader, error: BridgeError) -> None:
        turn.fail(error)
        await self._tell(self._renderer.error(error, turn.ask.request_id))

    def _late_warnings(self) -> bytes:
        """What only shows after the head went out, as comments: clients skip them, people see them."""
        self._noted = len(self._turn.notes)
        late = [code for code in _warnings(self._turn) if code not in self._warned]
        self._warned.update(late)
        return b"".join(b": x-bridge-warning: %b\n\n" % code.encode() for code in late)


def _refused(turn: Turn | Repeat | Reader, error: BridgeError, renderer: Renderer) -> LeanResponse:
    """An error that comes before anything was shown: a real status, and the conversation that it belongs to."""
    turn.fail(error)
    response = refused(renderer.refusal(error, turn.ask.request_id))
    response.lean_headers.append(_conversation(turn))
    return response


def _conversation(turn: Turn | Repeat | Reader) -> tuple[bytes, bytes]:
    return b"x-conversation-id", turn.conversation_id.encode()


def _headers(turn: Turn | Repeat | Reader, renderer: Renderer) -> list[tuple[bytes, bytes]]:
    headers = [(name.encode(), value.encode()) for name, value in renderer.headers(turn.ask.request_id)]
    headers.append(_conversation(turn))
    if warnings := _warnings(turn):
        headers.append((b"x-bridge-warning", ", ".join(warnings).encode()))
    return headers


def _warnings(turn: Turn | Repeat | Reader) -> list[str]:
    return list(dict.fromkeys([code for note in turn.notes if (code := _warning(note))])) if turn.notes else []


def _warning(note: Note) -> str | None:
    if note.rule in ROUTINE:
        return None
    return WARNINGS.get(note.rule) or WARNING_KINDS.get(note.kind)
