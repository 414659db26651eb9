"""What a watcher of a conversation is told: the turns that run or are new, and the calls that wait. Reads, shapes."""

import datetime as dt
from typing import Any

import msgspec
from django.db.models import Q
from django.utils import timezone
from msgspec import Struct

from conversations.admin import cells
from conversations.admin.toolchain import Buffer
from conversations.answered import given_before
from conversations.models import (
    Conversation,
    ExecutionStatus,
    LiveSnapshot,
    Message,
    ToolExecution,
    ToolMapping,
    ToolStatus,
    Turn,
)
from conversations.secrets import unseal
from conversations.store.hosted import progressed
from conversations.wording import harmless

TURNS = 20  # the newest
CALLS = 50
TEXT = 20_000  # characters of a block
SLACK = 5_000 << 22  # ids are minted from clocks: five seconds of them, in case those of two machines differ
WAITING = (ToolStatus.STREAMING, ToolStatus.PENDING)


class BlockView(Struct, frozen=True):
    kind: str
    text: str
    name: str = ""
    cut: int = 0  # characters before the text


class TurnView(Struct, frozen=True):
    id: str  # a number that JavaScript could not hold
    status: str
    sequence: int
    model: str
    started: float  # milliseconds, as browsers count
    url: str
    blocks: tuple[BlockView, ...]
    error: str = ""


class CallView(Struct, frozen=True):
    id: str
    name: str
    status: str
    since: float


class ProgressView(Struct, frozen=True):
    """How far a tool is that the bridge runs."""

    id: str  # of the tool call
    progress: float
    total: float | None
    message: str


class Update(Struct, frozen=True):
    """One message to the browser; `number` counts them, `now` lets it tick without trusting its own clock."""

    number: int
    now: float
    turns: tuple[TurnView, ...]
    waiting: tuple[CallView, ...]
    progress: tuple[ProgressView, ...]


class Tail:
    """What one watcher has been told, and what is new since."""

    def __init__(self, conversation: int, after: int) -> None:
        self.conversation = conversation
        self._after = after
        self._told: dict[int, tuple[str, int]] = {}  # turn -> status and sequence
        self._calls_told: tuple[tuple[CallView, ...], tuple[ProgressView, ...]] | None = None
        self._followed: set[int] = set()
        self._number = 0

    def news(self) -> bytes | None:
        """The next message, None when nothing has changed."""
        turns, calls = self._turns(), (self._calls(), self._progress())
        if not turns and calls == self._calls_told:
            return None
        self._calls_told = calls
        self._number += 1
        return msgspec.json.encode(Update(self._number, _milliseconds(timezone.now()), turns, *calls))

    def is_over(self) -> bool:
        return not Conversation.objects.filter(pk=self.conversation, ended_at=None).exists()

    def _turns(self) -> tuple[TurnView, ...]:
        new = Q(pk__gt=self._after) | Q(status="running") | Q(pk__in=self._unfinished())
        columns = (
            "status",
            "upstream",
            "resolved_model",
            "requested_model",
            "started_at",
            "error_type",
            "error_message",
            "answer_hash",
            "conversation",
        )
        rows = list(Turn.objects.filter(new, conversation=self.conversation).only(*columns).order_by("-pk")[:TURNS])
        running = [row.pk for row in rows if row.status == "running"]
        sequences = dict(LiveSnapshot.objects.filter(turn__in=running).values_list("turn", "sequence"))
        states = {row.pk: (row.status, sequences.get(row.pk, 0)) for row in rows}
        changed = [row for row in rows[::-1] if self._told.get(row.pk) != states[row.pk]]
        contents = _contents(changed) if changed else {}
        # What was read may be newer than its number; then it is told once more, never too little.
        self._told |= states
        return tuple(_turn(row, states[row.pk][1], contents.get(row.pk, b"[]")) for row in changed)

    def _unfinished(self) -> list[int]:
        return [turn for turn, (status, _) in self._told.items() if status == "running"]

    def _calls(self) -> tuple[CallView, ...]:
        rows = ToolMapping.objects.filter(conversation=self.conversation, status__in=WAITING).order_by("-pk")[:CALLS]
        found = list(rows.values_list("turn", "tool_use_id", "tool_name", "status", "created_at"))
        self._find_followed({turn for turn, *_ in found})
        return tuple(
            CallView(harmless(id_), harmless(name), status, _milliseconds(at))
            for turn, id_, name, status, at in found
            if turn not in self._followed
        )

    def _find_followed(self, turns: set[int]) -> None:
        """Turns that the conversation has gone on after: what they called is no longer waited for."""
        answers = Turn.objects.filter(pk__in=turns - self._followed).exclude(answer_hash=b"")
        hashes = {bytes(own): turn for turn, own in answers.values_list("pk", "answer_hash")}
        if hashes:
            after = Message.objects.filter(conversation=self.conversation, parent_hash__in=list(hashes))
            self._followed |= {hashes[bytes(parent)] for parent in after.values_list("parent_hash", flat=True)}

    def _progress(self) -> tuple[ProgressView, ...]:
        running = ToolExecution.objects.filter(conversation=self.conversation, status=ExecutionStatus.RUNNING)
        rows = running.exclude(progress="").order_by("-pk")[:CALLS].values_list("tool_use_id", "progress")
        told = ((id_, progressed(written)) for id_, written in rows)
        return tuple(ProgressView(harmless(id_), at.progress, at.total, harmless(at.message)) for id_, at in told if at)


def _contents(rows: list[Turn]) -> dict[int, bytes]:
    running = [row.pk for row in rows if row.status == "running"]
    ended = [row.pk for row in rows if row.status != "running"]
    found: list[tuple[int, Buffer]] = list(LiveSnapshot.objects.filter(turn__in=running).values_list("turn", "content"))
    answers = Message.objects.filter(turn__in=ended).exclude(message_id="")
    found += list(answers.values_list("turn", "content"))
    told = {turn for turn, _ in found}
    found += [(row.turn_id, row.content) for row in given_before([row for row in rows if row.pk not in told])]
    return {turn: unseal(bytes(content)) for turn, content in found}


def _turn(row: Turn, sequence: int, content: bytes) -> TurnView:
    blocks = tuple(_block(block) for block in msgspec.json.decode(content) if isinstance(block, dict))
    model = f"{row.upstream}/{row.resolved_model}" if row.upstream else row.requested_model
    error = f"{row.error_type}: {row.error_message[:1000]}" if row.error_type else ""
    return TurnView(
        str(row.pk),
        row.status,
        sequence,
        harmless(model),
        _milliseconds(row.started_at),
        cells.url(row, "hops_page"),
        blocks,
        harmless(error),
    )


def _block(block: dict[str, Any]) -> BlockView:
    kind = harmless(str(block.get("type", "")))
    match kind:
        case "text" | "thinking":
            text = str(block.get(kind, ""))
        case "tool_use" | "mcp_tool_use":
            text = str(block.get("partial", "")) or msgspec.json.encode(block.get("input", {})).decode()
        case "mcp_tool_result":
            text = "\n".join(str(part.get("text", "")) for part in block.get("content", ()))
        case _:
            text = ""
    cut = int(block.get("cut", 0)) + max(len(text) - TEXT, 0)
    return BlockView(kind, harmless(text[-TEXT:]), harmless(str(block.get("name", ""))), cut)


def _milliseconds(moment: dt.datetime) -> float:
    return moment.timestamp() * 1_000
