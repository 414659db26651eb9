"""One call of an upstream: sent, checked, decoded and written as the client's events, read by read."""

import asyncio
from collections.abc import Callable
from copy import copy
from functools import partial

from conversations.redaction import scrub
from conversations.routing import Route
from conversations.upstream import Answer, Upstreams, misconfigured
from translation import adapters
from translation.accumulator import Accumulator
from translation.adapter import Decoder, Ending, RoundsWriter, UpstreamRequest, Writer
from translation.errors import BridgeError, PromptTooLong, UpstreamFault
from translation.events import (
    Event,
    Failed,
    Finished,
    MessageStart,
    Relayed,
    ToolArguments,
    ToolDropped,
    ToolEnded,
    ToolStarted,
    WireEvent,
)
from translation.overflow import counted
from translation.policies import Watch
from translation.values import Request, Usage
from translation.writer import BlockWriter

RAW_LIMIT = 8 * 1024 * 1024  # of an upstream's answer that is kept
ENDING_SECONDS = 5.0  # for the figures of an answer that has ended
SILENCE = 0.5  # seconds in the middle of a tool call, after which its block is shown
NEVER_ENDING = Ending()
# What is stored before it is shown, numbered, or ends the turn: most reads bring only words.
MATTERS: frozenset[type] = frozenset({ToolStarted, ToolArguments, ToolEnded, ToolDropped, Finished, Failed})
Show = Callable[[list[WireEvent]], bool]  # whether the client takes more
Mark = tuple[int, Writer]  # how many events were said, and what says the next one


class Attempt:
    """`events` are the upstream's, `write` makes them the client's."""

    def __init__(
        self,
        route: Route,
        request: Request,
        sent: UpstreamRequest,
        start: MessageStart,
        watch: Watch | None = None,
        writer: Writer | None = None,
    ) -> None:
        self.route = route
        self.accumulator = Accumulator()
        self.raw: list[bytes] = []
        self.status = 0
        self.content_type = ""
        self._request = request
        self._sent = sent
        self._watch = watch
        self._estimate = start.usage.input_tokens
        self.size = 0
        self._answer: Answer | None = None
        self._adapter = adapters.adapter(route.target.profile)
        self._writer = writer or adapters.writer(route.target.profile, request, start.id)
        self._blocks = self._writer if isinstance(self._writer, BlockWriter) else None
        self._silent = False  # in the middle of a call
        self.show: Show | None = None  # takes words as they come
        self._kept_back: list[Event] | Exception = []  # of what was to be passed on
        self.start = self._writer.start(start.id, start.model, start.usage)
        self.accumulator.feed([self.start])

    async def send(self, upstreams: Upstreams) -> None:
        """Raises what the upstream answered instead of an answer."""
        target = self.route.target
        self._answer = answer = await upstreams.send(self.route.upstream, self._sent)
        self.status, self.content_type = answer.status, answer.content_type
        if not 200 <= answer.status < 300:
            # Some upstreams say which key they refuse.
            body = scrub(await answer.body())
            self.raw.append(body)
            error = self._failure(answer, body)
            upstreams.judge(self.route.upstream, answer, error)
            raise error
        upstreams.judge(self.route.upstream, answer, None)
        self._decoder = decoder = self._adapter.decoder(self._request, target, self._sent, self.content_type)
        self._ending = decoder if isinstance(decoder, Ending) else NEVER_ENDING

    def another_decoder(self) -> Decoder:
        """For whoever wants to read the same answer beside this attempt."""
        return self._adapter.decoder(self._request, self.route.target, self._sent, self.content_type)

    def _failure(self, answer: Answer, body: bytes) -> BridgeError:
        if (ours := misconfigured(answer.status)) is not None:
            return ours
        return self._counted(self._adapter.failure(self.route.target, answer.status, answer.headers, body))

    def _counted(self, error: BridgeError) -> BridgeError:
        return counted(error, self.route.target, self._estimate) if isinstance(error, PromptTooLong) else error

    async def events(self) -> list[Event]:
        """What the next upstream read brings that was not passed on; nothing when the reader was nudged."""
        answer, blocks = self._answer, self._blocks
        if answer is None:
            return []
        if blocks is not None and blocks.holds:
            reading = self._within_call(answer)
        elif self.show is not None and self._watch is None:
            reading = answer.read(partial(self._pass_on, answer, self.show))
        else:
            reading = answer.read()
        try:
            chunk = await reading
        except UpstreamFault:
            if not self._kept_back:  # else it fails again at the next read
                events = self._decoder.close()
                if not events or not isinstance(events[-1], Finished):
                    raise  # else the answer was complete: how its connection ended does not matter
                return self._checked(events)
            chunk = b""
        if self._kept_back:
            return self._taken_back() + (self._checked(self._decoded(answer, chunk)) if chunk else [])
        if chunk:
            return self._checked(self._decoded(answer, chunk))
        return [] if chunk is not None else self._checked(self._decoder.close())

    def _taken_back(self) -> list[Event]:
        kept, self._kept_back = self._kept_back, []
        if isinstance(kept, Exception):
            raise kept
        return kept

    def _pass_on(self, answer: Answer, show: Show, chunk: bytes) -> bool:
        """Words go on to who reads them where the upstream's socket is read: waking the reader for each of them would
        cost as much as all the rest. What matters is kept for it."""
        try:
            events = self._decoded(answer, chunk)
            if MATTERS.isdisjoint(map(type, events)):
                return show(self.write(events)) and not self._ending.ending
            self._kept_back = self._checked(events)
        except Exception as error:  # noqa: BLE001 - the reader's, not the socket's
            self._kept_back = error
        return False

    def _decoded(self, answer: Answer, chunk: bytes) -> list[Event]:
        if self.size < RAW_LIMIT:
            self.raw.append(chunk)
            self.size += len(chunk)
        events = self._decoder.feed(chunk)
        if self._ending.ending:
            answer.hurry(ENDING_SECONDS)
        return events

    def _checked(self, events: list[Event]) -> list[Event]:
        if events and isinstance(events[-1], Failed):
            events[-1] = Failed(self._counted(events[-1].error))
            self._scrub(events[-1].error)
        return events if self._watch is None else self._watch.feed(events)

    async def _within_call(self, answer: Answer) -> bytes | None:
        """Calls are shown when they are whole, so that one which is cut off is never run; but nobody waits for long."""
        timer = asyncio.get_running_loop().call_later(SILENCE, self._fell_silent, answer)
        try:
            return await answer.read()
        finally:
            timer.cancel()

    def _fell_silent(self, answer: Answer) -> None:
        self._silent = True
        answer.nudge()

    def waited(self) -> list[WireEvent]:
        """What is shown because the upstream says nothing more."""
        silent, self._silent = self._silent, False
        if silent and self._blocks is not None and self._blocks.holds:
            return self._shown(self._blocks.release())
        return []

    def _scrub(self, error: BridgeError) -> None:
        """What an upstream says of its failure in the middle of an answer, shown and kept without its key."""
        error.message = scrub(error.message.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        self.raw = [scrub(b"".join(self.raw))]

    def write(self, events: list[Event]) -> list[WireEvent]:
        wire = self._writer.feed(events)
        self.accumulator.feed(wire)
        return wire

    def finish(self, finished: Finished, usage: Usage) -> list[WireEvent]:
        return self._shown(self._writer.finish(finished, usage))

    def go_on(self, before: "Attempt") -> list[WireEvent]:
        """Write on where an earlier attempt of the same message ended."""
        self.accumulator, self._writer, self.start = before.accumulator, before._writer, Relayed(b"")
        self._blocks = before._blocks
        return self.end_round()

    def mark(self) -> Mark:
        return len(self.accumulator.said), copy(self._writer)

    def rewind(self, mark: Mark) -> None:
        """Take back what was said since, which nobody was shown: no block was open then."""
        said, writer = self.accumulator.said[: mark[0]], copy(mark[1])
        self.accumulator, self._writer = Accumulator(), writer
        self.accumulator.feed(said)
        self._blocks = writer if isinstance(writer, BlockWriter) else None

    def end_round(self) -> list[WireEvent]:
        """Close what is open: the message goes on, but not with what this attempt brought."""
        assert isinstance(self._writer, RoundsWriter)
        return self._shown(self._writer.next_round())

    def add(self, block: bytes) -> list[WireEvent]:
        """A block of the bridge's own, after what this attempt wrote."""
        assert isinstance(self._writer, RoundsWriter)
        return self._shown(self._writer.add(block))

    def _shown(self, wire: list[WireEvent]) -> list[WireEvent]:
        self.accumulator.feed(wire)
        return wire

    def nudge(self) -> bool:
        """Whether there is a reader to be woken."""
        if self._answer is None:
            return False
        self._answer.nudge()
        return True

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()
