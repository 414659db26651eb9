"""The contract of opaque state, for any adapter: what an upstream needs back, it gets back, and nobody else does.

An adapter joins with a `Secret`: a captured answer, the JSON that has to be in the next request, and the strings in it
that must never reach another upstream. The client in between loses everything that an Anthropic client can lose.
"""

from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tests.translation.captures import CAPTURES, Case, decode, load
from translation.accumulator import Accumulator
from translation.adapter import Adapter, Target
from translation.chain import chain
from translation.client.stored import parse_blocks
from translation.events import Event, Finished, ToolEnded, ToolStarted
from translation.history import repair
from translation.state import Snapshot, hydrate
from translation.values import (
    Block,
    Link,
    Message,
    Origin,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
)
from translation.writer import BlockWriter

TURN = 7


class Secret(Struct, frozen=True):
    """`sent_back`: JSON of the next request, byte for byte. `hidden`: what no other upstream may see."""

    adapter: Adapter
    target: Target
    case: str  # a directory of tests/captures
    sent_back: tuple[bytes, ...]
    hidden: tuple[bytes, ...]

    @property
    def id(self) -> str:
        return f"{self.target.upstream}: {self.case}"

    @property
    def captured(self) -> Case:
        return load(CAPTURES / Path(self.case))


class Told(Struct, frozen=True):
    """An answer after it was delivered: what the client shows of it, and what the store keeps."""

    blocks: tuple[Block, ...]
    links: dict[str, Link]
    origin: Origin


def told(secret: Secret) -> Told:
    case = secret.captured
    events = _minted(decode(secret.adapter, case, [case.upstream], secret.target))
    finished = events[-1]
    assert isinstance(finished, Finished)
    writer, accumulator = BlockWriter(signature="ours"), Accumulator()
    accumulator.feed(writer.feed(events[:-1]))
    accumulator.feed(writer.finish(finished, Usage()))
    origin = Origin(secret.target.upstream, secret.target.model, finished.state)
    return Told(parse_blocks(accumulator.content), _links(events, origin), origin)


def next_body(secret: Secret, answer: Told, *, elsewhere: str = "", whole: bool = True) -> bytes:
    """The next upstream request, after a client that dropped all thinking and all fields that it does not know.

    `elsewhere` is the name of another upstream that speaks the same dialect; without `whole`, the turn died after its
    calls were delivered, before the state of the message was known.
    """
    results = tuple(ToolResult(id_, (Text("done"),)) for id_ in answer.links) or (Text("go on"),)
    messages = (
        *secret.captured.request.messages,
        Message("assistant", _lossy(answer.blocks)),
        Message("user", results),
    )
    request = replace(secret.captured.request, messages=messages)
    hashes = chain(messages)
    request = hydrate(request, hashes, _snapshot(answer, hashes[-2], whole=whole))
    target = replace(secret.target, upstream=elsewhere) if elsewhere else secret.target
    legal, notes = repair(request, target.profile)
    assert notes == ()
    return secret.adapter.build(legal, target).body


def check_sent_back(secret: Secret) -> None:
    body = next_body(secret, told(secret))
    for fragment in secret.sent_back:
        assert body.count(fragment) == 1, f"{fragment.decode()}\nnot once in\n{body.decode()}"


def check_known_with_the_calls(secret: Secret) -> None:
    """What was known when a call was delivered comes back even if the turn died right after."""
    answer = told(secret)
    body = next_body(secret, answer, whole=False)
    kept = b"".join(link.origin.state for link in answer.links.values())
    for text in secret.hidden:
        if text in kept:
            assert text in body, f"{text.decode()}\nnot in\n{body.decode()}"


def check_hidden_from_others(secret: Secret, others: list[tuple[Adapter, Target]]) -> None:
    answer = told(secret)
    bodies = [next_body(secret, answer, elsewhere="elsewhere")]
    bodies += [
        next_body(replace(secret, adapter=adapter, target=target), answer)
        for adapter, target in others
        if target.upstream != secret.target.upstream
    ]
    for body in bodies:
        for text in secret.hidden:
            assert text not in body, f"{text.decode()}\nin\n{body.decode()}"


def _minted(events: list[Event]) -> list[Event]:
    return [
        replace(event, id=f"toolu_{event.call:024d}") if isinstance(event, ToolStarted) else event for event in events
    ]


def _links(events: list[Event], origin: Origin) -> dict[str, Link]:
    started = {event.call: event for event in events if isinstance(event, ToolStarted)}
    ended = {event.call: event for event in events if isinstance(event, ToolEnded)}
    return {
        call.id: Link(
            call.id,
            call.name,
            call.upstream_name or call.name,
            call.upstream_id,
            ended[number].arguments.encode(),
            replace(origin, state=ended[number].state),
            TURN,
            number,
        )
        for number, call in started.items()
    }


def _lossy(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    said = (block for block in blocks if not isinstance(block, Thinking | RedactedThinking))
    return tuple(
        replace(block, input=msgspec.json.format(block.input, indent=1)) if isinstance(block, ToolUse) else block
        for block in said
    )


def _snapshot(answer: Told, hash_: bytes, *, whole: bool) -> Snapshot:
    return Snapshot(answer.links, {hash_: TURN}, {TURN: answer.origin if whole else replace(answer.origin, state=b"")})
