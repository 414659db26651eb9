"""From a parsed request to the upstream's: which conversation it is, what the store adds, what has to be repaired.

Nothing is written here. The result is a value; opening the turn, and answering it, come after.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from conversations.beside import LARGE, beside, size_of
from conversations.estimates import weight
from conversations.hosted.values import NOTHING_OFFERED, Hosted, Offered
from conversations.rejoining import rejoin
from conversations.routing import Route
from conversations.state import Conversation, Resolved, State
from conversations.storable import digest
from conversations.store.hosted import Ran
from conversations.store.reads import Answer
from translation import adapters, policies
from translation.adapter import UpstreamRequest
from translation.arguments import respelled
from translation.chain import ROOT, chain
from translation.chain import link as chain_link
from translation.client.identity import MODE, Identity
from translation.client.parse import parse_system
from translation.client.stored import fingerprint, is_content, parse_message, parse_told
from translation.client.tools import tools as parse_tools
from translation.errors import InvalidRequest, ThreadRefused
from translation.history import repair
from translation.hosted import Offer, call_block, check_choice, offer, relaxed
from translation.hosted_history import NOTHING_STORED, Stored, unanswered, waiting
from translation.hosted_history import told as tell
from translation.mcp_servers import without_connector
from translation.outline import MCP_TOOL_USE
from translation.places import noted
from translation.places import told as told_place
from translation.state import Snapshot, Wanted, continues, hydrate, restore, unknown_results, wanted
from translation.values import Link, Message, Note, Request, ServerToolUse, Text, ToolResult, ToolUse

TOOL_SEARCH = "tool_search_tool"


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
    offered: Offered = NOTHING_OFFERED  # the tools that the bridge runs itself
    stored: Stored = NOTHING_STORED
    waiting: tuple[Ran, ...] = ()  # what the last answer left running: its results come first

    @property
    def hosted(self) -> dict[str, Hosted]:
        return self.aimed.hosted

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
    weight: int  # of what is sent, in the bytes that its tokens are estimated from
    notes: tuple[Note, ...]
    hosted: dict[str, Hosted] = {}  # the tools that the bridge runs, by the model's names for them


async def prepare(
    state: State,
    key: int,
    storage: str,
    request: Request,
    identity: Identity,
    route: Route,
    offered: Offered = NOTHING_OFFERED,
) -> Prepared:
    if request.thread is not None and storage != "full":
        raise ThreadRefused("thread: this key does not store conversations", code="thread_unsupported_request")
    size = size_of(request)
    hashes = chain(request.messages) if size < LARGE else await beside(size, chain, request.messages)
    wants = wanted(request, hashes)
    resolved = await state.resolve(key, request.thread, identity, wants)
    conversation = resolved.conversation
    asked, hashes = await _completed(state, resolved, request, identity, hashes)
    received = asked
    if received is not request:
        wants = wanted(received, hashes)
    snapshot = await _known(state, conversation, wants, identity)
    if ToolResult in received.kinds:
        unknown_results(received, snapshot, len(received.messages) - len(request.messages))
    history: tuple[Message, ...] = ()
    if (link := continues(received, snapshot)) is not None:
        received, history = await _led_to(state, conversation, received, link)
    received, notes = restore(received, snapshot, history)
    received, lost = await rejoin(state, conversation, received, snapshot) if offered.tools else (received, ())
    if received is not asked:
        hashes = chain(received.messages)
        wants = wanted(received, hashes)
        snapshot = await _known(state, conversation, wants, identity)
    # What was put before the client's first message moves it; the other notes count the whole history already.
    moved = len(received.messages) - len(asked.messages)
    restored = (*[replace(note, message=note.message + moved) for note in notes], *lost) if notes or lost else ()
    stored, waits = await _ran(state, conversation, received, wants) if wants.hosted else (NOTHING_STORED, ())
    if received.tool_choice is not None and received.tool_choice.name:
        check_choice(received, [tool.offer for tool in offered.tools])
    if received is not request:
        size = size_of(received)
    small = size < LARGE
    hydrated = hydrate(received, hashes, snapshot) if small else await beside(size, hydrate, received, hashes, snapshot)
    given = (hydrated, route, offered, stored)
    try:
        aimed = aim(*given) if small else await beside(size, aim, *given)
    except InvalidRequest as error:
        raise told_place(error, hydrated.messages, request.messages) from None
    return Prepared(
        conversation,
        resolved.cut or resolved.base,
        received,
        hashes,
        hydrated,
        restored,
        aimed,
        _fresh((*restored, *aimed.notes), conversation, hashes, hydrated, route),
        offered,
        stored,
        waits,
    )


def aim(hydrated: Request, route: Route, offered: Offered = NOTHING_OFFERED, stored: Stored = NOTHING_STORED) -> Aimed:
    profile = route.target.profile
    native = adapters.relays(profile)
    asked, kept, offer_notes = _offered(hydrated, offered, native=native)
    told = tell(asked, stored, own_only=native) if offered.tools or stored is not NOTHING_STORED else asked
    governed, policy_notes = policies.apply(told, profile, route.policy)
    repaired, repair_notes = repair(governed, profile)
    if native and kept:
        repaired = replace(repaired, stream=True)  # the answer is cut into blocks: only a stream has them
    try:
        sent = build(repaired, route)
    except InvalidRequest as error:
        raise told_place(error, repaired.messages, hydrated.messages) from None
    lost = adapters.left_out(governed, profile)
    sent_notes = noted(sent.notes, repaired.messages, hydrated.messages)
    notes = (*offer_notes, *policy_notes, *repair_notes, *sent_notes, *lost)
    return Aimed(route, repaired, sent, weight(sent.body), notes, kept)


def _offered(
    request: Request, offered: Offered, *, native: bool
) -> tuple[Request, dict[str, Hosted], tuple[Note, ...]]:
    """With the bridge's own tools; without the connector's servers, unless they are passed on to Anthropic."""
    asked = request if native and not offered.connector else without_connector(request)
    lost = bool(request.mcp_servers) and not native and not offered.connector
    what = "mcp_servers: left out, since they were meant for Anthropic's own connector"
    notes = (Note("degradation", "mcp-servers-dropped", what),) if lost else ()
    if not offered.tools:
        return asked, {}, notes
    searches = native and any(tool.type.startswith(TOOL_SEARCH) for tool in asked.tools)
    request, kept, more = offer(asked, [tool.offer for tool in offered.tools], searches=searches)
    ours = {tool.offer.name: tool for tool in offered.tools if kept.get(tool.offer.name) is tool.offer}
    return request, ours, (*notes, *more)


def aim_elsewhere(prepared: Prepared, route: Route) -> Prepared:
    """The same request for another target."""
    aimed = aim(prepared.hydrated, route, prepared.offered, prepared.stored)
    told = (*prepared.restored, *aimed.notes)
    notes = _fresh(told, prepared.conversation, prepared.chain, prepared.hydrated, route)
    return replace(prepared, aimed=aimed, notes=notes)


def continued(prepared: Prepared, content: bytes) -> Prepared:
    """The same request, going on after this much of its answer: as a later one with this history would be sent."""
    message = parse_message("assistant", content)
    # What was hydrated stays so: other conversations may have lent the calls of the history.
    before = prepared.hydrated.messages[: len(prepared.received.messages)]
    received = replace(prepared.received, messages=(*before, message))
    hashes = (*prepared.chain, chain_link(prepared.chain[-1] if prepared.chain else b"", message))
    conversation = prepared.conversation
    hydrated = relaxed(hydrate(received, hashes, conversation.snapshot))
    stored = Stored(prepared.stored.results, conversation.rounds)
    aimed = aim(hydrated, prepared.route, prepared.offered, stored)
    return replace(prepared, hydrated=hydrated, aimed=aimed, stored=stored, notes=aimed.notes)


def build(request: Request, route: Route) -> UpstreamRequest:
    return adapters.adapter(route.target.profile).build(outgoing(request, route), route.target)


def outgoing(request: Request, route: Route) -> Request:
    """What the upstream is asked: a stream only if its route wants one."""
    return request if route.streams or not request.stream else replace(request, stream=False)


async def _known(state: State, conversation: Conversation, wants: Wanted, identity: Identity) -> Snapshot:
    known = await state.know(conversation, wants)
    return await state.know_elsewhere(conversation, known, wants) if identity.grouped else known


async def _ran(
    state: State, conversation: Conversation, received: Request, wants: Wanted
) -> tuple[Stored, tuple[Ran, ...]]:
    """What the store adds about calls that the bridge ran: results that the client has never been shown."""
    origins = await state.know_rounds(conversation, wants.hosted)
    runs = await state.ran(conversation, unanswered(received))
    last = waiting(received)
    results = {
        run.tool_use_id: ToolResult(run.tool_use_id, (Text(run.result),), run.is_error)
        for run in runs
        if run.over and run.tool_use_id not in last
    }
    return Stored(results, origins), tuple(run for run in runs if run.tool_use_id in last)


async def _broken_off(
    state: State, conversation: Conversation, request: Request, hashes: tuple[bytes, ...]
) -> Answer | None:
    """The turn that was cut off (a crash, a disconnect) after it had shown the call that is answered here."""
    link = continues(request, await state.know(conversation, wanted(request, hashes)))
    turn = await state.answer_of_turn(link.turn_id) if link is not None else None
    return turn if turn is not None and not turn.answer_hash else None


async def _gone_on(state: State, resolved: Resolved, request: Request, cut: Answer) -> Request | None:
    """After a turn that broke off what was asked in it, and the calls that it showed, stay said, and this follows."""
    base = resolved.base
    history = await _history_of(state, resolved.conversation, cut)
    hashes = chain(history)
    if cut.head_hash not in hashes or (base is not None and base.answer_hash not in hashes):
        return None  # its text is not kept, or others have gone on beside it
    start = hashes.index(cut.head_hash) + 1 - len(request.messages)
    if start >= 0 and chain(request.messages, hashes[start - 1] if start else ROOT)[-1] == cut.head_hash:
        history = history[:start]  # the same words again are said once
    changed = await _in_context(state, request, cut)
    return replace(changed, messages=history + request.messages)


async def _completed(
    state: State, resolved: Resolved, request: Request, identity: Identity, hashes: tuple[bytes, ...]
) -> tuple[Request, tuple[bytes, ...]]:
    """A request that holds only what is new gets the stored history, system and tools put before it."""
    base, cut, conversation = resolved.base, resolved.cut, resolved.conversation
    if identity.append and _brings_result(request):  # that names where it goes on
        if (broken := await _broken_off(state, conversation, request, hashes)) is not None:
            # The history up to its call comes with the call.
            return await _in_context(state, request, broken), hashes
    elif cut is not None and (gone_on := await _gone_on(state, resolved, request, cut)) is not None:
        return gone_on, chain(gone_on.messages)
    if base is None:
        return request, hashes
    if request.thread is not None:
        await _same_fingerprint(state, request, base)
    stored = await state.path(conversation, base.answer_hash)
    # What was said while the key kept no text is missing from the middle.
    if not stored or not all(is_content(item.content) for item in stored):
        if request.thread is None and _brings_result(request):
            return request, hashes  # the call is rebuilt from its mapping
        raise ThreadRefused(
            f"{'thread' if request.thread else MODE}: the text of this conversation is no longer kept",
            code="thread_unsupported_request",
        )
    history = tuple(parse_told(item.role, item.content) for item in stored)
    changed = await _in_context(state, request, base)
    whole = replace(changed, messages=history + request.messages)
    return whole, (*(item.chain_hash for item in stored), *chain(request.messages, base.answer_hash))


async def _led_to(
    state: State, conversation: Conversation, request: Request, link: Link
) -> tuple[Request, tuple[Message, ...]]:
    """What is stored up to this call; with its `system` and `tools`, unless the client tells a history of its own."""
    base = await state.answer_of_turn(link.turn_id)
    history = await _history_of(state, conversation, base) if base is not None else ()
    if base is None or not history or "assistant" in request.roles:
        return request, history
    return await _in_context(state, request, base), history


async def _in_context(state: State, request: Request, base: Answer) -> Request:
    """With the `system` and `tools` of an earlier turn, where they are left out."""
    if not request.raw_system and base.system_digest:
        raw = await state.blob(base.conversation.id, base.system_digest)
        request = replace(request, raw_system=raw, system=parse_system(raw))
    if not request.raw_tools and base.tools_digest:
        raw = await state.blob(base.conversation.id, base.tools_digest)
        request = replace(request, raw_tools=raw, tools=parse_tools(msgspec.Raw(raw), request.betas))
    return request


def _brings_result(request: Request) -> bool:
    """Whether what is new begins with the result of a call."""
    first = next((message for message in request.messages if message.role != "system"), None)
    return first is not None and any(type(block) is ToolResult for block in first.blocks)


async def _same_fingerprint(state: State, request: Request, base: Answer) -> None:
    for name, raw, known in (
        ("system", request.raw_system, base.system_digest),
        ("tools", request.raw_tools, base.tools_digest),
    ):
        if not raw or digest(raw) == known:
            continue
        if fingerprint(raw) != fingerprint(await state.blob(base.conversation.id, known)):
            raise ThreadRefused(f"{name}: differs from the thread's", code="thread_fingerprint_mismatch")


async def _history_of(state: State, conversation: Conversation, base: Answer) -> tuple[Message, ...]:
    """What is stored up to and including the answer of this turn."""
    head = base.answer_hash or base.head_hash
    ours = base.conversation.id == conversation.row.id
    stored = await (state.path(conversation, head) if ours else state.path_elsewhere(base.conversation.id, head))
    history = tuple(parse_told(item.role, item.content) for item in stored if is_content(item.content))
    if len(history) != len(stored):
        return ()  # a key that keeps no text: the call is rebuilt from its mapping
    if not base.answer_hash and history and (links := await state.turn_links(base.turn)):
        # The turn never ended (a crash, a disconnect), but the client has seen these calls.
        runs = {run.tool_use_id: run for run in await state.ran_in_turn(base.turn)}
        history = (*history, Message("assistant", tuple(_seen(item, runs.get(item.tool_use_id)) for item in links)))
    return history


def _seen(link: Link, run: Ran | None) -> ToolUse | ServerToolUse:
    """A call that a client has seen before the turn broke off."""
    arguments = respelled(link.arguments or b"{}")
    if run is None:
        return ToolUse(link.tool_use_id, link.name, arguments, link)
    block = call_block(link.tool_use_id, Offer(link.name, run.server_name, run.tool_name))
    return ServerToolUse(link.tool_use_id, run.tool_name, arguments, MCP_TOOL_USE, block, link)


def _fresh(
    notes: Sequence[Note], conversation: Conversation, hashes: Sequence[bytes], hydrated: Request, route: Route
) -> tuple[Note, ...]:
    """What an earlier turn told this upstream was recorded there: storage grows by what is new only.

    The last answer is stored, but it is told for the first time; to another upstream all of the history is, of which
    one note of each rule is kept.
    """
    if not notes:
        return ()
    told, _ = conversation.deepest(hashes)
    switched = False
    for index in range(told - 1, -1, -1):
        if (origin := hydrated.messages[index].origin) is not None:
            switched = (origin.upstream, origin.model) != (route.target.upstream, route.target.model)
            told = index if index == told - 1 else told
            break
    older = {note.rule: note for note in reversed(notes) if 0 <= note.message < told} if switched else {}
    return tuple(note for note in notes if note.message < 0 or note.message >= told or note is older.get(note.rule))
