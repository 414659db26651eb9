"""The whole path of a turn: prepare, open it in the store, call the upstream, make tool calls durable, answer, close.

A `Turn` is driven by its reader: `begin` gets the first events that may be shown (trying again, while nothing has been
shown), `read` those of each further upstream read, until `done`. Whatever ends it is stored.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any

import msgspec
from msgspec.structs import replace

from conversations import ids, records
from conversations.estimates import Estimates
from conversations.preparing import Prepared, prepare
from conversations.routing import Router
from conversations.state import Sent, State
from conversations.store import Store
from conversations.store.reads import KeyRow, Node
from conversations.store.writes import CloseTurn, LinkRow, MessageRow, OpenTurn, SaveLinks, StaleConversation, UsageRow
from conversations.upstream import Answer, Upstreams, key_refused
from translation import adapters
from translation.accumulator import Accumulator
from translation.adapter import Decoder
from translation.chain import link as chain_link
from translation.client.identity import Identity
from translation.client.stored import parse_message
from translation.errors import BridgeError, OwnFault, StoreUnavailable, UpstreamFault
from translation.events import Event, Failed, Finished, ToolDropped, ToolEnded, ToolStarted, WireEvent
from translation.values import Link, Note, Origin, Request, Usage
from translation.writer import BlockWriter

log = logging.getLogger(__name__)

STALE_TRIES = 3
RETRY_BASE, RETRY_CAP = 0.5, 10.0
RAW_LIMIT = 8 * 1024 * 1024  # of an upstream's answer that is kept


class Settings(msgspec.Struct, frozen=True):
    """What of the configuration a turn needs."""

    process: int
    policy: str = "agentic"
    retries: int = 2
    warn_unstored: bool = False


class Bridge:
    """What all turns of a process share."""

    def __init__(self, store: Store, state: State, upstreams: Upstreams, router: Router, rows: ids.RowIds) -> None:
        self.store = store
        self.state = state
        self.upstreams = upstreams
        self.router = router
        self.rows = rows
        self.estimates = Estimates()
        self.settings = Settings(process=0)
        self.running: dict[int, set[Turn]] = {}  # by conversation
        self._tasks: set[asyncio.Task[None]] = set()

    def turn(self, key: KeyRow, request: Request, identity: Identity, request_id: str, headers: dict[str, str]) -> "Turn":
        return Turn(self, key, request, identity, request_id, headers)

    def track(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Runs on after its request is gone; the process waits for it before it stops."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    def end_conversation(self, conversation_id: int, error: BridgeError) -> None:
        """It was terminated or purged: nothing of it may be shown or stored any more."""
        self.state.forget(conversation_id)
        for turn in tuple(self.running.get(conversation_id, ())):
            turn.end(error)


class Turn:
    """One request on its way."""

    def __init__(
        self, bridge: Bridge, key: KeyRow, request: Request, identity: Identity, request_id: str, headers: dict[str, str]
    ) -> None:
        self.bridge = bridge
        self.key = key
        self.request = request
        self.identity = identity
        self.request_id = request_id
        self.message_id = ids.message_id()
        self.headers = headers
        self.id = 0
        self.started = time.perf_counter()
        self.done = False
        self.written = False  # something of the answer has been shown
        self.notes: list[Note] = []
        self.accumulator = Accumulator()
        self.usage = Usage()
        self._prepared: Prepared | None = None
        self._opened: asyncio.Future[None] | None = None
        self._head = Node(b"", 0, 0)
        self._answer: Answer | None = None
        self._decoder: Decoder | None = None
        self._writer: BlockWriter | None = None
        self._calls: dict[int, LinkRow] = {}
        self._attempts: list[dict[str, object]] = []
        self._entries: list[UsageRow] = []
        self._raw: list[bytes] = []
        self._raw_size = 0
        self._failure: BridgeError | None = None
        self._ended: BridgeError | None = None
        self._closed = False
        self._first_byte = 0.0
        self._first_token = 0.0
        self._task: asyncio.Task[Any] | None = None

    @property
    def conversation_id(self) -> str:
        return self._prepared.conversation.row.external_id if self._prepared else ""

    @property
    def estimate(self) -> Usage:
        """For `message_start`, before anybody knows."""
        if self._prepared is None:
            return Usage(input_tokens=1, estimated=True)
        target, size = self._prepared.route.target, len(self._prepared.sent.body)
        return Usage(input_tokens=self.bridge.estimates.prompt(target.upstream, target.model, size), output_tokens=1)

    # ------------------------------------------------------------ the reader's verbs

    async def begin(self) -> list[WireEvent]:
        """The first events that may be shown. Raises what the client gets to see instead."""
        self._task = asyncio.current_task()
        for attempt in range(STALE_TRIES):
            try:
                return await self._begin()
            except StaleConversation:
                await self._drop_upstream()
                if self._prepared is None or attempt == STALE_TRIES - 1:
                    raise StoreUnavailable from None
                self._leave()
                self.bridge.state.forget(self._prepared.conversation.row.id)
            except asyncio.CancelledError:
                if self._ended is None:
                    raise
                raise self._ended from None
        raise StoreUnavailable

    async def read(self) -> list[WireEvent]:
        """The events of the next upstream read; none when the turn was only nudged."""
        assert self._answer is not None and self._decoder is not None
        if self._ended is not None:
            raise self._ended
        if self._failure is not None:
            raise self._failure
        chunk = await self._answer.read()
        if self._ended is not None:
            raise self._ended
        if chunk is None:
            events = self._decoder.close()
        elif not chunk:
            return []
        else:
            self._keep(chunk)
            events = self._decoder.feed(chunk)
        return await self._advance(events)

    def nudge(self) -> None:
        if self._answer is not None:
            self._answer.nudge()

    def end(self, error: BridgeError) -> None:
        """Stop, from outside."""
        self._ended = error
        if self._answer is not None:
            self._answer.nudge()
        elif self._task is not None:
            self._task.cancel()

    def fail(self, error: BridgeError) -> None:
        """The client is told of this error."""
        self._finish_in_background("error", error)

    def abort(self) -> None:
        """The client has gone."""
        self._finish_in_background("aborted", None)

    # ------------------------------------------------------------ before anything is shown

    async def _begin(self) -> list[WireEvent]:
        await self._open()
        assert self._prepared is not None and self._opened is not None
        for attempt in range(1, self.bridge.settings.retries + 2):
            started = time.perf_counter()
            try:
                wire = await self._first_events()
            except UpstreamFault as error:
                self._record_attempt(attempt, started, error)
                if not error.transient or attempt > self.bridge.settings.retries:
                    raise
                await self._drop_upstream()
                await asyncio.sleep(_pause(attempt, error))
            else:
                await self._opened
                self._prepared.conversation.stored = True
                self.written = True
                return wire
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _open(self) -> None:
        """Prepare the request and submit the turn's opening write; it is awaited before anything is shown."""
        bridge = self.bridge
        route = bridge.router.resolve(self.request.model)
        self._prepared = prepared = await prepare(
            bridge.state, self.key.id, self.key.storage, self.request, self.identity, route, bridge.settings.policy
        )
        self.notes = list(prepared.notes)
        self.id = bridge.rows.mint()
        last = await bridge.state.last_sent(prepared.conversation) if self.key.storage == "full" else None
        self._opened = bridge.store.write(self._opening(prepared, last))
        # Whoever waits for it hears of a failure; nobody may if the upstream fails first.
        self._opened.add_done_callback(_consume)
        bridge.running.setdefault(prepared.conversation.row.id, set()).add(self)

    def _opening(self, prepared: Prepared, last: Sent | None) -> OpenTurn:
        received, storage = prepared.received, self.key.storage
        rows, self._head = records.messages(prepared.conversation, received, prepared.chain, storage)
        full = storage == "full"
        delta = records.delta(last, prepared.sent.body if full else b"")
        if full:
            self.bridge.state.note_sent(prepared.conversation, Sent(self.id, delta.depth, prepared.sent.body))
        meta = {"path": prepared.sent.path, "headers": dict(prepared.sent.headers), "stream": prepared.sent.stream}
        contexts = ((prepared.system_digest, received.raw_system), (prepared.tools_digest, received.raw_tools))
        return OpenTurn(
            conversation=prepared.conversation.row,
            created=not prepared.conversation.stored,
            turn=self.id,
            process=self.bridge.settings.process,
            request_id=self.request_id,
            message_id=self.message_id,
            now=records.now(),
            requested_model=self.request.model[:200],
            params=records.params(self.request) if storage != "minimal" else b"{}",
            headers=records.kept_headers(self.headers) if storage != "minimal" else b"{}",
            stream=self.request.stream,
            head_hash=self._head.chain_hash,
            system_digest=prepared.system_digest if full else b"",
            tools_digest=prepared.tools_digest if full else b"",
            upstream=prepared.route.target.upstream,
            resolved_model=prepared.route.target.model[:200],
            notes=records.notes_json(self.notes),
            note_count=len(self.notes),
            sent_parent=delta.parent,
            sent_prefix=delta.prefix,
            sent_tail=delta.tail,
            sent_meta=msgspec.json.encode(meta),
            sent_depth=delta.depth,
            state_ms=self._elapsed(),
            blobs=tuple((key, records.compress(raw)) for key, raw in contexts if key and full),
            messages=rows,
            answered=records.answered(self.request),
        )

    async def _first_events(self) -> list[WireEvent]:
        """Call the upstream, and read until there is something to show."""
        assert self._prepared is not None
        prepared, target = self._prepared, self._prepared.route.target
        adapter = adapters.adapter(target.profile)
        self._answer = answer = await self.bridge.upstreams.send(prepared.route.upstream, prepared.sent)
        self._first_byte = self._elapsed()
        if not 200 <= answer.status < 300:
            body = await answer.body()
            self._keep(body)
            if answer.status in (401, 403):
                raise key_refused(answer.status)
            raise adapter.failure(target, answer.status, dict(answer.headers), body)
        self._decoder = adapter.decoder(prepared.request, target, prepared.sent, answer.content_type)
        self._writer = self._new_writer(prepared.request)
        self.accumulator = Accumulator()
        start = self._writer.start(self.message_id, self.request.model, self.estimate)
        self.accumulator.feed([start])
        while not self.done:
            if wire := await self.read():
                self._first_token = self._elapsed()
                return [start, *wire]
        return [start]

    def _new_writer(self, request: Request) -> BlockWriter:
        return BlockWriter(
            signature=f"toolbridge_{self.message_id}",
            eager=frozenset(tool.name for tool in request.tools if tool.eager),
            omit_thinking=request.thinking is not None and request.thinking.display == "omitted",
            starts_early=request.stream,
        )

    def _record_attempt(self, number: int, started: float, error: BridgeError | None) -> None:
        assert self._prepared is not None
        target = self._prepared.route.target
        elapsed = (time.perf_counter() - started) * 1000
        status = "error" if error else "complete"
        self._attempts.append(
            {
                "upstream": target.upstream,
                "model": target.model,
                "status": status,
                "error": error.message if error else None,
                "ms": round(elapsed, 1),
            }
        )
        if error is not None:
            entry = UsageRow(attempt=number, upstream=target.upstream, model=target.model, status=status, duration_ms=elapsed)
            self._entries.append(entry)

    # ------------------------------------------------------------ each upstream read

    async def _advance(self, events: list[Event]) -> list[WireEvent]:
        assert self._writer is not None
        if not events:
            return []
        rows = [row for index, event in enumerate(events) if (row := self._link(events, index, event)) is not None]
        if rows:
            await self._store_links(rows)
        wire = self._writer.feed(events)
        self.accumulator.feed(wire)
        last = events[-1]
        if isinstance(last, Finished):
            wire += await self._complete(last)
        elif isinstance(last, Failed):
            if not wire:
                raise last.error
            self._failure = last.error  # what came before it is shown first
        return wire

    def _link(self, events: list[Event], index: int, event: Event) -> LinkRow | None:
        """The row that an event has to leave before it may be shown; a call that starts gets its id here."""
        match event:
            case ToolStarted():
                started = event if event.id else replace(event, id=ids.tool_use_id())
                events[index] = started
                upstream_name = started.upstream_name or started.name
                row = LinkRow(started.id, started.name, upstream_name, started.upstream_id, started.call)
            case ToolEnded():
                row = records.finished_link(self._calls[event.call], event.arguments.encode(), event.state, "pending")
            case ToolDropped():
                row = records.finished_link(self._calls[event.call], b"", b"", "truncated")
            case _:
                return None
        self._calls[row.ordinal] = replace(row, fresh=False)
        return row

    async def _store_links(self, rows: list[LinkRow]) -> None:
        assert self._prepared is not None and self._opened is not None
        prepared, target = self._prepared, self._prepared.route.target
        # A call that starts and ends in one read is one row.
        latest = {row.tool_use_id: row for row in rows}
        fresh = {row.tool_use_id for row in rows if row.fresh}
        links = tuple(replace(row, fresh=row.tool_use_id in fresh) for row in latest.values())
        write = SaveLinks(prepared.conversation.row, self.id, target.upstream, target.model, records.now(), links)
        try:
            await self._opened
            await self.bridge.store.write(write)
        except StoreUnavailable:
            if not self.bridge.settings.warn_unstored:
                raise
            log.error("state.link_unstored: %s", ", ".join(link.tool_use_id for link in links))
            self.notes.append(Note("degradation", "unstored-link", "a tool call was shown that could not be stored"))
        origin = Origin(target.upstream, target.model)
        self.bridge.state.note_links(prepared.conversation, [self._known(link, origin) for link in links])

    def _known(self, row: LinkRow, origin: Origin) -> Link:
        made = replace(origin, state=row.state)
        return Link(row.tool_use_id, row.name, row.upstream_name, row.upstream_id, row.arguments, made, self.id, row.ordinal)

    def _keep(self, chunk: bytes) -> None:
        if self._raw_size < RAW_LIMIT:
            self._raw.append(chunk)
            self._raw_size += len(chunk)

    # ------------------------------------------------------------ the end

    async def _complete(self, finished: Finished) -> list[WireEvent]:
        """Store the answer, then end the message."""
        assert self._writer is not None and self._prepared is not None and self._opened is not None
        target, sent = self._prepared.route.target, self._prepared.sent
        if finished.usage is not None:
            self.usage = finished.usage
            self.bridge.estimates.learn(target.upstream, target.model, len(sent.body), finished.usage)
        else:
            self.usage = self.bridge.estimates.usage(target.upstream, target.model, len(sent.body), self._answered())
            self.notes.append(Note("degradation", "usage-estimated", "the upstream reported no usage; it is estimated"))
        self.notes += [Note("repair", "answer-mended", what) for what in finished.notes]
        wire = self._writer.finish(finished, self.usage)
        self.accumulator.feed(wire)
        row = self._message(finished)
        self.done = True
        await self._opened
        try:
            await self._close("complete", None, row, finished.model)
        except StoreUnavailable:
            if not self.bridge.settings.warn_unstored:
                raise
            log.error("state.turn_unstored: %s", self.request_id)
        if row is not None:
            origin = Origin(target.upstream, target.model, finished.state)
            node = Node(row.chain_hash, row.depth, row.answers)
            self.bridge.state.note_answer(self._prepared.conversation, node, self.id, origin)
        return wire

    def _message(self, finished: Finished) -> MessageRow | None:
        assert self._prepared is not None
        if self.key.storage == "minimal":
            return None
        content = self.accumulator.content
        message = parse_message("assistant", content)
        row = records.answer(
            self._head, chain_link(self._head.chain_hash, message), content, message.blocks, self.key.storage
        )
        target = self._prepared.route.target
        return replace(row, message_id=self.message_id, upstream=target.upstream, model=target.model, state=finished.state)

    def _answered(self) -> int:
        return len(self.accumulator.content)

    async def _close(self, status: str, error: BridgeError | None, message: MessageRow | None, returned: str) -> None:
        assert self._prepared is not None
        self._closed = True
        await self._drop_upstream()
        self._leave()
        await self.bridge.store.write(self._closing(status, error, message, returned))

    def _closing(self, status: str, error: BridgeError | None, message: MessageRow | None, returned: str) -> CloseTurn:
        assert self._prepared is not None
        prepared, target, usage = self._prepared, self._prepared.route.target, self.usage
        full = self.key.storage == "full"
        meta = {"status": self._answer.status, "content_type": self._answer.content_type} if self._answer else {}
        entry = UsageRow(
            attempt=len(self._entries) + 1,
            upstream=target.upstream,
            model=target.model[:200],
            returned_model=returned[:200],
            status=status,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read=usage.cache_read,
            cache_write=usage.cache_write,
            thinking_tokens=usage.thinking_tokens,
            estimated=usage.estimated,
            tool_count=len(self._calls),
            duration_ms=self._elapsed(),
            first_token_ms=self._first_token,
        )
        return CloseTurn(
            conversation=prepared.conversation.row,
            turn=self.id,
            request_id=self.request_id,
            now=records.now(),
            requested_model=self.request.model[:200],
            status=status,
            attempts=msgspec.json.encode(self._attempts),
            notes=records.notes_json(self.notes),
            note_count=len(self.notes),
            answer=records.compress(b"".join(self._raw)) if full else b"",
            answer_meta=msgspec.json.encode(meta),
            usage=(*self._entries, entry),
            message=message,
            stop_reason=self.accumulator.stop_reason or "",
            http_status=error.status if error else 200,
            error_type=error.type if error else "",
            error_message=error.message[:2000] if error else "",
            first_byte_ms=self._first_byte,
            first_token_ms=self._first_token,
            duration_ms=self._elapsed(),
        )

    def _finish_in_background(self, status: str, error: BridgeError | None) -> None:
        if self._closed or self._prepared is None or self._opened is None:
            return
        self.done = True
        if self.written:
            target = self._prepared.route.target
            sent = len(self._prepared.sent.body)
            self.usage = self.bridge.estimates.usage(target.upstream, target.model, sent, self._answered())
        self.bridge.track(self._store_end(status, error))

    async def _store_end(self, status: str, error: BridgeError | None) -> None:
        """Until it is stored, or the conversation is gone: a turn must not stay `running` in a living process."""
        try:
            for pause in (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0):
                await asyncio.sleep(pause)
                try:
                    await self._close(status, error, None, "")
                except StoreUnavailable:
                    continue
                return
        except OwnFault as gone:
            log.info("state.turn_gone: %s: %s", self.request_id, gone.message)

    def _leave(self) -> None:
        assert self._prepared is not None
        turns = self.bridge.running.get(self._prepared.conversation.row.id)
        if turns is not None:
            turns.discard(self)
            if not turns:
                del self.bridge.running[self._prepared.conversation.row.id]

    async def _drop_upstream(self) -> None:
        if self._answer is not None:
            await self._answer.close()

    def _elapsed(self) -> float:
        return round((time.perf_counter() - self.started) * 1000, 3)


def _pause(attempt: int, error: BridgeError) -> float:
    """Backoff; an upstream that says when is believed, within reason."""
    if error.retry_after is not None:
        return min(error.retry_after, RETRY_CAP)
    return float(min(RETRY_BASE * 2 ** (attempt - 1), RETRY_CAP))


def _consume(future: "asyncio.Future[None]") -> None:
    if not future.cancelled():
        future.exception()
