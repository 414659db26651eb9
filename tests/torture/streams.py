"""An upstream's bytes on their way to the client, as a turn drives them, without HTTP and store."""

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tests.torture import grammar
from tests.translation.adapters import TARGETS
from tests.translation.captures import Case
from translation import adapters
from translation.accumulator import Accumulator
from translation.adapter import UpstreamRequest
from translation.chain import chain
from translation.client.render import MESSAGES
from translation.client.stored import parse_answer
from translation.errors import BridgeError
from translation.events import Event, Failed, Finished, ToolDropped, ToolEnded, ToolStarted, WireEvent
from translation.history import repair
from translation.state import Snapshot, hydrate
from translation.values import Link, Message, Origin, Request, Text, ToolResult, ToolUse, Usage

VALIDATORS = {provider: validate for provider, _, validate in TARGETS}
TURN = 7
# An upstream's own ids and blocks go back to it as it made them, whatever they look like.
ITS_OWN = re.compile(
    r"` blocks cannot be here|string too long or empty|an ID that begins with|Base64 decoding|Invalid `\w+` in `"
    r"|unknown field '(extra_content|provider_specific_fields|thought_signature|thinking_blocks|reasoning_\w+)'"
)


class Told(Struct):
    """What the client got, and what the store would keep of it."""

    shown: list[bytes]
    refused: bytes = b""
    whole: bytes = b""
    finished: Finished | None = None
    content: bytes = b"[]"
    links: dict[str, Link] = {}


@lru_cache(maxsize=1024)
def built(folder: str, case: Case, *, stream: bool) -> tuple[Request, UpstreamRequest]:
    request = replace(case.request, stream=stream)
    return request, adapters.adapter(case.profile).build(request, case.target)


def answer(case: Case, content_type: str, chunks: Iterable[bytes], *, stream: bool) -> Told:
    request, sent = built(str(case.folder), case, stream=stream)
    decoder = adapters.adapter(case.profile).decoder(request, case.target, sent, content_type)
    turn = _Turn(case, request)
    told = Told([], links={})
    try:
        for chunk in chunks:
            if turn.advance(decoder.feed(chunk), told):
                break
        else:
            assert turn.advance(decoder.close(), told), "the decoder closed without a last event"
    except BridgeError as error:
        if told.shown and stream:
            told.shown.append(MESSAGES.error(error, "req_0123456789"))
        else:
            told.refused = MESSAGES.refusal(error, "req_0123456789").body
        return told
    told.whole = b"" if stream else MESSAGES.whole(turn.accumulator)
    return told


class _Turn:
    def __init__(self, case: Case, request: Request) -> None:
        self._case = case
        self._writer = adapters.writer(case.profile, request, "msg_0123456789")
        self._start = self._writer.start("msg_0123456789", request.model, Usage())
        self._failure: BridgeError | None = None
        self.accumulator = Accumulator()
        self.accumulator.feed([self._start])

    def advance(self, events: list[Event], told: Told) -> bool:
        """Whether it is over; raises what the client is told instead."""
        assert not any(isinstance(event, Finished | Failed) for event in events[:-1]), "events after the last one"
        events = [self._linked(event, told.links) for event in events]
        wire = self._writer.feed(events)
        self.accumulator.feed(wire)
        last = events[-1] if events else None
        if isinstance(last, Finished):
            closing = self._writer.finish(last, last.usage or Usage())
            self.accumulator.feed(closing)
            told.finished, told.content = last, self.accumulator.content
            parse_answer(told.content)
            wire = wire + closing
        if wire:
            self._show(wire, told)
        if isinstance(last, Failed):
            raise last.error
        return isinstance(last, Finished)

    def _show(self, wire: list[WireEvent], told: Told) -> None:
        if not told.shown:
            wire = [self._start, *wire]
        told.shown.append(MESSAGES.events(wire))

    def _linked(self, event: Event, links: dict[str, Link]) -> Event:
        """As a turn stores calls: what it needs of an event must be there."""
        match event:
            case ToolStarted():
                event = event if event.id else replace(event, id=f"toolu_{event.call:024d}")
                upstream_name = event.upstream_name or event.name
                origin = Origin(self._case.provider, self._case.request.model)
                links[event.id] = Link(
                    event.id, event.name, upstream_name, event.upstream_id, b"{}", origin, TURN, event.call
                )
            case ToolEnded(call=call, arguments=arguments, state=state):
                (id_,) = [id_ for id_, link in links.items() if link.ordinal == call]
                given = msgspec.json.decode(arguments.encode())
                assert isinstance(given, dict), arguments
                origin = replace(links[id_].origin, state=state)
                links[id_] = replace(links[id_], arguments=arguments.encode(), origin=origin)
            case ToolDropped(call=call):
                assert any(link.ordinal == call for link in links.values())
        return event


def check(case: Case, told: Told, *, stream: bool) -> list[grammar.Json] | None:
    """Grammar, and what is stored reads back; the blocks of an answer, None for an error."""
    relayed = adapters.relays(case.profile)
    if told.refused:
        grammar.check_error(told.refused)
        return None
    blocks: list[grammar.Json] | None
    if stream:
        blocks = grammar.check_stream(b"".join(told.shown), relayed=relayed)
    else:
        blocks = grammar.check_message(told.whole, relayed=relayed)["content"]
    assert blocks is None or told.finished is not None
    return blocks


def check_continues(case: Case, told: Told) -> None:
    """The next turn is legal, whatever the upstream left of itself in this one."""
    assert told.finished is not None
    spoken = parse_answer(told.content)
    calls = [block.id for block in spoken.blocks if isinstance(block, ToolUse)]
    results = tuple(ToolResult(id_, (Text("done"),)) for id_ in calls) or (Text("go on"),)
    messages = (*case.request.messages, spoken, Message("user", results))
    request = replace(case.request, messages=messages)
    hashes = chain(messages)
    origin = Origin(case.provider, case.request.model, told.finished.state)
    snapshot = Snapshot(told.links, {hashes[-2]: TURN}, {TURN: origin})
    legal, _ = repair(hydrate(request, hashes, snapshot), case.profile)
    sent = adapters.adapter(case.profile).build(legal, case.target)
    msgspec.json.decode(sent.body)
    if case.provider in VALIDATORS:
        wrong = [each for each in VALIDATORS[case.provider](sent.body) if not ITS_OWN.search(each)]
        assert wrong == [], (wrong, sent.body.decode()[-3000:])
