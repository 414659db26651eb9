"""The tool chain of a conversation: from rows to what the page shows. Pure: rows in, values out."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from conversations import wording
from conversations.admin.content import Shown, shown, unescaped
from conversations.admin.parts import Part, parts
from conversations.models import Conversation, Message, ToolMapping, ToolStatus, Turn
from conversations.store import packing
from conversations.wording import TOOL_COLOURS, TURN_COLOURS
from translation.policies.system import without_reminders
from translation.unreadable import UNREADABLE
from translation.values import Note

Buffer = bytes | memoryview

BROUGHT = 30  # parts that a turn brought, beyond that a number
LOOP = 3  # the same so often in a row goes in circles
SAID = 50  # parts of an answer or of a result


class CallView(Struct, frozen=True):
    pk: int
    id: str
    name: str
    upstream_name: str
    upstream_id: str
    status: str
    colour: str
    size: int  # of the arguments
    arguments: Shown | None
    result: tuple[Part, ...]
    result_left_out: int  # parts
    result_size: int
    is_error: bool
    latency_ms: float  # -1 while there is no result
    latency: str
    answered_in: int  # number of the turn, 0 for none
    has_state: bool
    repeats: int  # how many calls in a row were the same, up to and with this one

    @property
    def result_words(self) -> str:
        return wording.size(self.result_size)


class Step(Struct, frozen=True):
    """What an answer said, and the calls that it made then: with hosted tools it goes on after their results."""

    said: tuple[Part, ...]
    calls: tuple[CallView, ...]


class TurnView(Struct, frozen=True):
    number: int
    pk: int
    request_id: str
    status: str
    colour: str
    model: str
    asked_model: str
    started_at: dt.datetime
    duration: str
    first_token: str
    tokens_in: str
    tokens_out: str
    cached: str
    cost: str
    stop_reason: str
    error: str
    notes: tuple[Note, ...]
    brought: tuple[Part, ...]
    left_out: int  # parts that the page does not show
    steps: tuple[Step, ...]
    follows: int  # number of the turn whose answer it goes on from, 0 for none
    branch: bool  # another turn went on from there before
    agents: tuple[Conversation, ...] = ()  # that it started


class Rows(Struct, frozen=True):
    """What a stretch of the timeline is made of."""

    turns: Sequence[Turn]  # of this stretch
    mappings: Sequence[ToolMapping]  # of the whole conversation, in order
    messages: Sequence[Message]  # of these turns, and of those that answered their calls
    digests: Mapping[str, bytes] = {}  # call -> its result's, for those that look alike
    agents: Mapping[int, Sequence[Conversation]] = {}  # turn -> the sub-agents that it started


class Index(Struct, frozen=True):
    """The whole conversation without its content."""

    numbers: Mapping[int, int]  # turn -> its number, from 1
    follows: Mapping[int, int]  # turn -> the turn whose answer it goes on from

    @property
    def last(self) -> int:
        return max(self.numbers, default=0)


def index(turns: Iterable[tuple[int, Buffer]], nodes: Iterable[tuple[Buffer, Buffer, int, bool]]) -> Index:
    """From every turn's (id, head hash) and every message's (hash, parent, turn, is an answer)."""
    heads = list(turns)
    tree = {bytes(own): (bytes(parent), turn, answer) for own, parent, turn, answer in nodes}
    follows: dict[int, int] = {}
    for turn, head in heads:
        place = bytes(head)
        while place in tree:
            parent, by, answer = tree[place]
            if answer:
                follows[turn] = by
                break
            place = parent
    return Index({turn: number for number, (turn, _) in enumerate(heads, 1)}, follows)


def states(mappings: Iterable[ToolMapping], index: Index) -> dict[int, str]:
    """By call. One without a result is no longer waited for once the conversation has gone on without it."""
    continued = set(index.follows.values())
    found = {}
    for row in mappings:
        found[row.pk] = row.status
        if row.status == ToolStatus.PENDING and row.turn_id in continued:
            found[row.pk] = "repaired"
        elif row.status == ToolStatus.PENDING and row.turn_id != index.last:
            found[row.pk] = "orphaned"
    return found


def shape(rows: Rows, index: Index, *, readable: bool) -> tuple[TurnView, ...]:
    contents = _contents(rows.messages, readable=readable)
    results = _results(contents)
    repeats, status = repetitions(rows.mappings, rows.digests), states(rows.mappings, index)
    calls, known = defaultdict(list), {row.tool_use_id for row in rows.mappings}
    for row in rows.mappings:
        calls[row.turn_id].append(row)
    views = []
    for turn in rows.turns:
        own = [
            _call(row, status[row.pk], results.get(row.tool_use_id, ()), repeats[row.pk], index, readable=readable)
            for row in calls[turn.pk]
        ]
        view = _turn(turn, contents.get(turn.pk, []), tuple(own), known, index, readable=readable)
        views.append(replace(view, agents=tuple(rows.agents.get(turn.pk, ()))))
    return tuple(views)


def repetitions(mappings: Iterable[ToolMapping], digests: Mapping[str, bytes]) -> dict[int, int]:
    """For each call, how many it is in a row with the same tool, arguments and result (its size, where not known).

    One that has no result is like no other: several at once are no loop.
    """
    seen: dict[int, int] = {}
    last: dict[str, tuple[bytes | int, int, bytes]] = {}
    counts: dict[str, int] = {}
    for row in mappings:
        # Arguments that did not come, or were not worth reading, are like no others, either.
        known = row.answered_at is not None and canonical(row.call_arguments)
        call = (known or row.pk, row.result_size, digests.get(row.tool_use_id, b""))
        counts[row.tool_name] = counts.get(row.tool_name, 0) + 1 if last.get(row.tool_name) == call else 1
        last[row.tool_name] = call
        seen[row.pk] = counts[row.tool_name]
    return seen


def alike(mappings: Sequence[ToolMapping]) -> list[ToolMapping]:
    """The calls whose results have to be compared: three in a row that differ in nothing else."""
    repeats = repetitions(mappings, {})
    looping = {row.tool_name for row in mappings if repeats[row.pk] >= LOOP}
    return [row for row in mappings if row.tool_name in looping]


def digests(messages: Iterable[bytes], calls: Iterable[str]) -> dict[str, bytes]:
    """What each of these calls was answered with, in a few bytes. Reminders, which differ each time, do not count."""
    wanted, found = set(calls), {}
    for content in messages:
        for block in _results_in(content):
            if (call := block.get("tool_use_id")) in wanted:
                told = without_reminders(msgspec.json.encode(block.get("content")).decode())
                found[str(call)] = blake2b(told.encode(), digest_size=16).digest()
    return found


def _results_in(content: bytes) -> list[dict[str, Any]]:
    try:
        blocks = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_result"]


def canonical(arguments: bytes) -> bytes:
    """The same for the same arguments, however they are written."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted")
    except msgspec.DecodeError:
        return arguments


def notes(raw: bytes) -> tuple[Note, ...]:
    try:
        return msgspec.json.decode(raw, type=tuple[Note, ...])
    except UNREADABLE:
        return ()


Contents = dict[int, list[tuple[str, bool, tuple[Part, ...]]]]


def _contents(messages: Iterable[Message], *, readable: bool) -> Contents:
    """By turn: (role, is its answer, parts)."""
    found: Contents = defaultdict(list)
    for row in messages:
        for role, content in packing.messages(row.role, row.span, row.content):
            found[row.turn_id].append((role, bool(row.message_id), parts(content, readable=readable)))
    return found


def _results(contents: Contents) -> dict[str, tuple[Part, ...]]:
    found: dict[str, list[Part]] = defaultdict(list)
    for messages in contents.values():
        for _, _, content in messages:
            for part in content:
                if part.kind.startswith("tool_result") and part.call:
                    found[part.call].append(part)
    return {call: tuple(items) for call, items in found.items()}


def _turn(
    turn: Turn, messages: list[tuple[str, bool, tuple[Part, ...]]], calls: tuple[CallView, ...], known: set[str],
    index: Index, *, readable: bool,
) -> TurnView:  # fmt: skip
    answer = [part for _, is_answer, content in messages if is_answer for part in content]
    steps, unseen = _steps(answer, calls)
    brought = [
        replace(part, who=role) for role, answer, content in messages if not answer for part in content
        if not part.kind.startswith(("tool_result", "tool_use")) or (part.call and part.call not in known)
    ]  # fmt: skip
    follows = index.follows.get(turn.pk, 0)
    others = [other for other, before in index.follows.items() if before == follows and other < turn.pk]
    return TurnView(
        number=index.numbers.get(turn.pk, 0),
        pk=turn.pk,
        request_id=turn.request_id,
        status=turn.status,
        colour=TURN_COLOURS.get(turn.status, ""),
        model=f"{turn.upstream}/{turn.resolved_model}" if turn.upstream else turn.requested_model,
        asked_model=turn.requested_model,
        started_at=turn.started_at,
        duration=wording.milliseconds(turn.duration_ms),
        first_token=wording.milliseconds(turn.first_token_ms),
        tokens_in=wording.tokens(
            turn.input_tokens + turn.cache_read + turn.cache_write, estimated=turn.usage_estimated
        ),
        tokens_out=wording.tokens(turn.output_tokens, estimated=turn.usage_estimated),
        cached=wording.count(turn.cache_read),
        cost=wording.money(turn.cost_micros),
        stop_reason=turn.stop_reason,
        error=_error(turn, readable=readable),
        notes=notes(bytes(turn.notes)),
        brought=tuple(brought[-BROUGHT:]),
        left_out=max(0, len(brought) - BROUGHT) + unseen,
        steps=steps,
        follows=index.numbers.get(follows, 0),
        branch=bool(follows and others),
    )


def _steps(answer: Iterable[Part], calls: Sequence[CallView]) -> tuple[tuple[Step, ...], int]:
    """In the order of the answer, and how many parts are too many. Calls and results stand by themselves; what is left
    is what somebody said, and calls that were made elsewhere."""
    own = {call.id: call for call in calls}
    waiting, number = dict(own), 0
    steps: list[tuple[list[Part], list[CallView]]] = [([], [])]
    for part in answer:
        if call := waiting.pop(part.call, None):
            steps[-1][1].append(call)
        elif part.kind != "tool_use" and part.call not in own:
            number += 1
            if steps[-1][1]:
                steps.append(([], []))
            if number <= SAID:
                steps[-1][0].append(part)
    steps[-1][1].extend(waiting.values())  # of an answer that is not stored, or not yet
    return tuple(Step(tuple(said), tuple(made)) for said, made in steps), max(0, number - SAID)


def _error(turn: Turn, *, readable: bool) -> str:
    if not turn.error_type:
        return ""
    return f"{turn.error_type}: {turn.error_message}" if readable else turn.error_type


def _call(
    row: ToolMapping, status: str, result: tuple[Part, ...], repeats: int, index: Index, *, readable: bool
) -> CallView:
    arguments = row.call_arguments
    latency = (row.answered_at - row.created_at).total_seconds() * 1_000 if row.answered_at else -1.0
    return CallView(
        pk=row.pk,
        id=row.tool_use_id,
        name=row.tool_name,
        upstream_name=row.upstream_name if row.upstream_name != row.tool_name else "",
        upstream_id=row.upstream_call_id,
        status=status,
        colour=TOOL_COLOURS.get(status, ""),
        size=len(arguments),
        arguments=shown(unescaped(arguments)) if readable and arguments else None,
        result=result[:SAID],
        result_left_out=max(0, len(result) - SAID),
        result_size=row.result_size,
        is_error=row.is_error,
        latency_ms=latency,
        latency=wording.milliseconds(latency),
        answered_in=index.numbers.get(row.answered_turn or 0, 0),
        has_state=bool(row.state),
        repeats=repeats,
    )
