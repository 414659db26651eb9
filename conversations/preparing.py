"""From a parsed request to the upstream's: which conversation it is, what the store adds, what has to be repaired.

Nothing is written here. The result is a value; opening the turn, and answering it, come after.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from conversations.records import digest
from conversations.routing import Route
from conversations.state import Conversation, Resolved, State
from conversations.store.reads import Answer
from translation import adapters, policies
from translation.adapter import UpstreamRequest
from translation.chain import chain
from translation.client.identity import Identity
from translation.client.parse import parse_system
from translation.client.stored import parse_message
from translation.client.tools import tools as parse_tools
from translation.errors import ThreadRefused
from translation.history import repair
from translation.state import continues, hydrate, restore, unknown_results, wanted
from translation.values import Link, Message, Note, Request, ToolUse


class Prepared(Struct, frozen=True):
    """A request that is ready to be sent, and everything that the turn has to remember about how it came to be."""

    conversation: Conversation
    base: Answer | None
    received: Request  # with what the store put before it, as it will be stored
    chain: tuple[bytes, ...]
    hydrated: Request
    restored: tuple[Note, ...]  # what was put into it from the store
    aimed: "Aimed"
    notes: tuple[Note, ...]
    system_digest: bytes
    tools_digest: bytes

    @property
    def request(self) -> Request:
        return self.aimed.request

    @property
    def route(self) -> Route:
        return self.aimed.route

    @property
    def sent(self) -> UpstreamRequest:
        return self.aimed.sent


class Aimed(Struct, frozen=True):
    """A request made ready for one target."""

    route: Route
    request: Request  # under the policies, repaired
    sent: UpstreamRequest
    notes: tuple[Note, ...]


async def prepare(state: State, key: int, storage: str, request: Request, identity: Identity, route: Route) -> Prepared:
    if request.thread is not None and storage != "full":
        raise ThreadRefused("thread: this key does not store conversations", code="thread_unsupported_request")
    hashes = chain(request.messages)
    resolved = await state.resolve(key, request, identity, hashes)
    conversation = resolved.conversation
    asked, hashes = await _completed(state, resolved, request, hashes)
    received = asked
    snapshot = await state.know(conversation, wanted(received, hashes))
    unknown_results(received, snapshot)
    link = continues(received, snapshot)
    history = await _history_of(state, conversation, link) if link is not None else ()
    received, notes = restore(received, snapshot, history)
    if notes:
        hashes = chain(received.messages)
        snapshot = await state.know(conversation, wanted(received, hashes))
    # What was put before the client's first message moves it; the other notes count the whole history already.
    moved = len(received.messages) - len(asked.messages)
    restored = tuple(replace(note, message=note.message + moved) for note in notes)
    hydrated = hydrate(received, hashes, snapshot)
    aimed = aim(hydrated, route)
    return Prepared(
        conversation,
        resolved.base,
        received,
        hashes,
        hydrated,
        restored,
        aimed,
        _fresh((*restored, *aimed.notes), conversation, hashes),
        digest(received.raw_system) if received.raw_system else b"",
        digest(received.raw_tools) if received.raw_tools else b"",
    )


def aim(hydrated: Request, route: Route) -> Aimed:
    governed, policy_notes = policies.apply(hydrated, route.target.profile, route.policy)
    repaired, repair_notes = repair(governed, route.target.profile)
    sent = build(repaired, route)
    lost = adapters.left_out(repaired, route.target.profile)
    return Aimed(route, repaired, sent, (*policy_notes, *repair_notes, *sent.notes, *lost))


def aim_elsewhere(prepared: Prepared, route: Route) -> Prepared:
    """The same request for another target."""
    aimed = aim(prepared.hydrated, route)
    notes = _fresh((*prepared.restored, *aimed.notes), prepared.conversation, prepared.chain)
    return replace(prepared, aimed=aimed, notes=notes)


def build(request: Request, route: Route) -> UpstreamRequest:
    return adapters.adapter(route.target.profile).build(outgoing(request, route), route.target)


def outgoing(request: Request, route: Route) -> Request:
    """What the upstream is asked: a stream only if its route wants one."""
    return request if route.streams or not request.stream else replace(request, stream=False)


async def _completed(
    state: State, resolved: Resolved, request: Request, hashes: tuple[bytes, ...]
) -> tuple[Request, tuple[bytes, ...]]:
    """A request that holds only what is new gets the stored history, system and tools put before it."""
    base, conversation = resolved.base, resolved.conversation
    if base is None:
        return request, hashes
    if request.thread is not None:
        _same_fingerprint(request, base)
    stored = await state.path(conversation, base.answer_hash)
    if stored and not _is_content(stored[0].content):
        raise ThreadRefused(
            "thread: the text of this conversation is no longer kept", code="thread_unsupported_request"
        )
    history = tuple(parse_message(item.role, item.content) for item in stored)
    changed = replace(request, messages=history + request.messages)
    if not request.raw_system and base.system_digest:
        raw = await state.blob(conversation, base.system_digest)
        changed = replace(changed, raw_system=raw, system=parse_system(raw))
    if not request.raw_tools and base.tools_digest:
        raw = await state.blob(conversation, base.tools_digest)
        changed = replace(changed, raw_tools=raw, tools=parse_tools(msgspec.Raw(raw), request.betas))
    return changed, (*(item.chain_hash for item in stored), *chain(request.messages, base.answer_hash))


def _same_fingerprint(request: Request, base: Answer) -> None:
    for name, raw, known in (
        ("system", request.raw_system, base.system_digest),
        ("tools", request.raw_tools, base.tools_digest),
    ):
        if raw and digest(raw) != known:
            raise ThreadRefused(f"{name}: differs from the thread's", code="thread_fingerprint_mismatch")


async def _history_of(state: State, conversation: Conversation, link: Link) -> tuple[Message, ...]:
    """What is stored up to and including the answer that made this call."""
    base = await state.answer_of_turn(link.turn_id)
    if base is None:
        return ()
    stored = await state.path(conversation, base.answer_hash or base.head_hash)
    history = tuple(parse_message(item.role, item.content) for item in stored if _is_content(item.content))
    if len(history) != len(stored):
        return ()  # a key that keeps no text: the call is rebuilt from its mapping
    if not base.answer_hash and history:
        # The turn never ended (a crash, a disconnect), but the client has seen these calls.
        links = await state.turn_links(link.turn_id)
        calls = tuple(ToolUse(item.tool_use_id, item.name, item.arguments or b"{}", item) for item in links)
        history = (*history, Message("assistant", calls))
    return history


def _is_content(content: bytes) -> bool:
    """Below full storage a message's blocks are only their kinds and sizes."""
    blocks = msgspec.json.decode(content)
    return not any("size" in block and len(block) == 2 for block in blocks)


def _fresh(notes: Sequence[Note], conversation: Conversation, hashes: Sequence[bytes]) -> tuple[Note, ...]:
    """A repair of a message that an earlier turn stored was recorded there: storage grows by what is new only."""
    stored, _ = conversation.deepest(hashes)
    return tuple(note for note in notes if note.message < 0 or note.message >= stored)
