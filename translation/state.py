"""What the store knows about a request, put into it: the calls that it names, who made its answers, what it left out.

The shell asks the store for what is `wanted` and gives the answer as a `Snapshot`; nothing here knows the store.
Order of use: `unknown_results`, `restore`, `chain` of the restored messages, `hydrate`; then `history.repair`.
"""

from collections.abc import Iterable, Sequence
from itertools import chain as chained
from itertools import compress
from operator import is_

from msgspec import Struct
from msgspec.structs import replace

from translation.arguments import respelled
from translation.errors import UnknownToolResult
from translation.memo import hand_on
from translation.outline import ASKED, NAMED, NAMING, is_hosted, outline, outlines
from translation.values import ROLE, Link, Message, Note, Origin, Request, ServerToolUse, ToolResult, ToolUse

OUR_SIGNATURE = "toolbridge_"  # how the bridge signs the thinking of models that do not sign their own


class Snapshot(Struct, frozen=True):
    links: dict[str, Link] = {}
    turns: dict[bytes, int] = {}  # chain hash of an assistant message -> the turn that made it
    origins: dict[int, Origin] = {}  # turn -> provenance and opaque state of its assistant message


CALLS = (ToolUse, ServerToolUse)


class Wanted(Struct, frozen=True):
    tool_use_ids: tuple[str, ...]
    hashes: tuple[bytes, ...]  # of assistant messages, oldest first
    hosted: tuple[str, ...] = ()  # those of the tool ids that name calls which a server ran


def wanted(request: Request, chain: Sequence[bytes]) -> Wanted:
    """What to ask the store for: every tool id that the request names, and the hash of every answer in it."""
    hashes = tuple(compress(chain, map("assistant".__eq__, map(ROLE, request.messages))))
    if NAMING.isdisjoint(request.kinds):
        return Wanted((), hashes)
    ids = dict.fromkeys(chained.from_iterable(map(NAMED, outlines(request))))
    return Wanted(tuple(ids), hashes, _hosted(request.messages) if ServerToolUse in request.kinds else ())


def _hosted(messages: tuple[Message, ...]) -> tuple[str, ...]:
    blocks = [block for message in messages for block in message.blocks]
    return tuple([block.id for block in blocks if type(block) is ServerToolUse and is_hosted(block)])


# ---------------------------------------------------------------- hydration


def hydrate(request: Request, chain: Sequence[bytes], snapshot: Snapshot) -> Request:
    """Each tool call gets its link and each answer its origin; what the store does not know stays as it is."""
    if not snapshot.links and not snapshot.origins:
        return request
    messages = [
        _hydrated(message, hash_, snapshot) if message.role == "assistant" else message
        for message, hash_ in zip(request.messages, chain, strict=True)
    ]
    same = all(map(is_, messages, request.messages))
    return request if same else replace(request, messages=tuple(messages))


def opaque(message: Message, upstream: str) -> bytes:
    """The state to send back to `upstream` with this assistant message; b"" when that upstream did not make it."""
    if message.origin is not None and message.origin.upstream == upstream and message.origin.state:
        return message.origin.state
    for block in message.blocks:
        if type(block) is ToolUse and block.link is not None:
            origin = block.link.origin
            if origin.upstream == upstream and origin.state:
                return origin.state
    return b""


def _hydrated(message: Message, hash_: bytes, snapshot: Snapshot) -> Message:
    if message.kinds.isdisjoint(CALLS):
        origin = snapshot.origins.get(snapshot.turns.get(hash_, 0), message.origin)
        return message if origin is message.origin else hand_on(message, replace(message, origin=origin))
    links = [snapshot.links.get(block.id) for block in message.blocks if isinstance(block, CALLS)]
    known = [link for link in links if link is not None]
    turns = [link.turn_id for link in known] + [snapshot.turns.get(hash_, 0)]
    origin = next((snapshot.origins[turn] for turn in turns if turn in snapshot.origins), message.origin)
    if not known and origin is message.origin:
        return message
    blocks = [
        replace(block, link=snapshot.links.get(block.id, block.link)) if isinstance(block, CALLS) else block
        for block in message.blocks
    ]
    return hand_on(message, replace(message, blocks=tuple(blocks), origin=origin))


# ---------------------------------------------------------------- continuation


def unknown_results(request: Request, snapshot: Snapshot, stored: int = 0) -> None:
    """Raises for a result in the newest turn whose call is known neither to the request nor to the store.

    `stored` messages were put before the client's, which counts its own.
    """
    known: set[str] = set()
    for index in range(_newest(request.messages), len(request.messages)):
        for position, block in enumerate(request.messages[index].blocks):
            if type(block) is not ToolResult or block.tool_use_id in snapshot.links:
                continue
            known = known or _calls(request.messages)
            if block.tool_use_id in known:
                continue
            raise UnknownToolResult(
                f"messages.{index - stored}.content.{position}: unexpected `tool_use_id` found in `tool_result` "
                f"blocks: {block.tool_use_id}. Each `tool_result` block must have a corresponding `tool_use` block "
                "in the previous message."
            )


def continues(request: Request, snapshot: Snapshot) -> Link | None:
    """The stored call that the first message answers and the request does not hold: its history has to come before."""
    if not snapshot.links:
        return None
    first = next((message for message in request.messages if message.role != "system"), None)
    if first is None or ToolResult not in first.kinds:
        return None
    return max(_missing(first, _calls(request.messages), snapshot), key=_place, default=None)


def restore(request: Request, snapshot: Snapshot, history: tuple[Message, ...]) -> tuple[Request, tuple[Note, ...]]:
    """The request with everything that it answers but does not hold.

    `history` is what is stored up to and including the answer that made the call of `continues`, () when its text is
    not kept. Calls that are still missing then are rebuilt from their links, right before the message with the result.
    """
    if not snapshot.links:
        return request, ()
    notes = []
    messages = request.messages
    if history and (link := continues(request, snapshot)):
        what = f"messages.0 answers {link.tool_use_id}: {len(history)} stored messages were put before it"
        notes.append(Note("repair", "history-restored", what, message=0))
        messages = history + messages
    if not _may_lack(messages, snapshot):
        return (replace(request, messages=messages) if notes else request), tuple(notes)
    known = _calls(messages)
    restored: list[Message] = []
    for position, message in enumerate(messages):
        links = sorted(_missing(message, known, snapshot), key=_place)
        if links:
            index = position - len(messages) + len(request.messages)
            restored.append(_rebuilt(links, snapshot))
            notes.append(_rebuilt_note(links, index))
            known.update(link.tool_use_id for link in links)
        restored.append(message)
    return (replace(request, messages=tuple(restored)) if notes else request), tuple(notes)


def _rebuilt(links: list[Link], snapshot: Snapshot) -> Message:
    calls = tuple(ToolUse(link.tool_use_id, link.name, respelled(link.arguments or b"{}"), link) for link in links)
    alone = len({link.turn_id for link in links}) == 1
    return Message("assistant", calls, origin=snapshot.origins.get(links[0].turn_id) if alone else None)


def _rebuilt_note(links: list[Link], index: int) -> Note:
    ids = ", ".join(link.tool_use_id for link in links)
    what = f"messages.{index} answers {ids}, which the request does not hold: rebuilt from the stored mapping"
    return Note("repair", "call-rebuilt", what, message=index)


def _may_lack(messages: tuple[Message, ...], snapshot: Snapshot) -> bool:
    """Whether the store knows a call that is named, and not by an answer that is legal as it is: rarely."""
    outlines = outline.all(messages)
    named = set(chained.from_iterable(map(NAMED, outlines)))
    named.difference_update(*filter(None, map(ASKED, outlines)))
    return not snapshot.links.keys().isdisjoint(named)


def _missing(message: Message, known: set[str], snapshot: Snapshot) -> list[Link]:
    """The links of the calls that a user message answers, that the store knows and the request does not hold."""
    if message.role != "user":
        return []
    ids = dict.fromkeys(block.tool_use_id for block in message.blocks if type(block) is ToolResult)
    return [snapshot.links[id_] for id_ in ids if id_ not in known and id_ in snapshot.links]


def _place(link: Link) -> tuple[int, int]:
    return link.turn_id, link.ordinal


def _calls(messages: Iterable[Message]) -> set[str]:
    return {block.id for message in messages for block in message.blocks if type(block) is ToolUse}


def _newest(messages: tuple[Message, ...]) -> int:
    """The index where the newest turn begins: after the last answer."""
    index = len(messages)
    while index and messages[index - 1].role != "assistant":
        index -= 1
    return index
