"""From a parsed request to the upstream's: which conversation it is, what the store adds, what has to be repaired.

Nothing is written here. The result is a value; opening the turn, and answering it, come after.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from conversations.beside import LARGE, beside, size_of
from conversations.continuing import completed, led_to
from conversations.conversation import Conversation
from conversations.estimates import weight
from conversations.hosted.values import NOTHING_OFFERED, Hosted, Offered
from conversations.rejoining import rejoin
from conversations.routing import Route
from conversations.state import State
from conversations.store.answers import Answer
from conversations.store.hosted import Ran
from translation import adapters, policies
from translation.adapter import UpstreamRequest
from translation.chain import chain
from translation.chain import link as chain_link
from translation.client.identity import Identity
from translation.client.stored import parse_message
from translation.errors import InvalidRequest, ThreadRefused
from translation.history import repair
from translation.hosted import check_choice, offer, relaxed
from translation.hosted_history import NOTHING_STORED, Stored, unanswered, waiting
from translation.hosted_history import told as tell
from translation.mcp_servers import without_connector
from translation.places import noted
from translation.places import told as told_place
from translation.state import Snapshot, Wanted, continues, hydrate, restore, unknown_results, wanted
from translation.values import Message, Note, Request, Text, ToolResult

TOOL_SEARCH = "tool_search_tool"
NO_NOTES: tuple[Note, ...] = ()


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
    only_new = identity.append or resolved.base is not None or resolved.cut is not None
    asked, hashes = await completed(state, resolved, request, identity, hashes) if only_new else (request, hashes)
    received = asked
    if received is not request:
        wants = wanted(received, hashes)
    elsewhere = identity.grouped
    snapshot = await state.know(conversation, wants, elsewhere=elsewhere)
    if ToolResult in received.kinds:
        unknown_results(received, snapshot, len(received.messages) - len(request.messages))
    received, notes = await _led(state, conversation, received, snapshot) if snapshot.links else (received, NO_NOTES)
    received, lost = await rejoin(state, conversation, received, snapshot) if offered.tools else (received, NO_NOTES)
    if received is not asked:
        hashes = chain(received.messages)
        wants = wanted(received, hashes)
        snapshot = await state.know(conversation, wants, elsewhere=elsewhere)
    restored = (*_moved(notes, asked, received), *lost) if notes or lost else NO_NOTES
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
    told = (*restored, *aimed.notes)
    return Prepared(
        conversation,
        resolved.cut or resolved.base,
        received,
        hashes,
        hydrated,
        restored,
        aimed,
        _fresh(told, conversation, hashes, hydrated, route) if told else NO_NOTES,
        offered,
        stored,
        waits,
    )


async def _led(
    state: State, conversation: Conversation, asked: Request, snapshot: Snapshot
) -> tuple[Request, tuple[Note, ...]]:
    """With everything stored that it answers but does not hold."""
    history: tuple[Message, ...] = ()
    if (link := continues(asked, snapshot)) is not None:
        asked, history = await led_to(state, conversation, asked, link)
    return restore(asked, snapshot, history)


def _moved(notes: tuple[Note, ...], asked: Request, received: Request) -> list[Note]:
    """What was put before the client's first message moves it; other notes count the whole history already."""
    moved = len(received.messages) - len(asked.messages)
    return [replace(note, message=note.message + moved) for note in notes]


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
    sent_notes = noted(sent.notes, repaired.messages, hydrated.messages) if sent.notes else NO_NOTES
    notes = (*offer_notes, *policy_notes, *repair_notes, *sent_notes, *lost)
    return Aimed(route, repaired, sent, weight(sent.body), notes, kept)


def _offered(
    request: Request, offered: Offered, *, native: bool
) -> tuple[Request, dict[str, Hosted], tuple[Note, ...]]:
    """With the bridge's own tools; without the connector's servers, unless they are passed on to Anthropic."""
    if not (offered.tools or request.tools or request.mcp_servers):
        return request, {}, NO_NOTES
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
    notes = _fresh(told, prepared.conversation, prepared.chain, prepared.hydrated, route) if told else NO_NOTES
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


def _fresh(
    notes: Sequence[Note], conversation: Conversation, hashes: Sequence[bytes], hydrated: Request, route: Route
) -> tuple[Note, ...]:
    """What an earlier turn told this upstream was recorded there: storage grows by what is new only.

    The last answer is stored, but it is told for the first time; to another upstream all of the history is, of which
    one note of each rule is kept.
    """
    told, _ = conversation.deepest(hashes)
    switched = False
    for index in range(told - 1, -1, -1):
        if (origin := hydrated.messages[index].origin) is not None:
            switched = (origin.upstream, origin.model) != (route.target.upstream, route.target.model)
            told = index if index == told - 1 else told
            break
    older = {note.rule: note for note in reversed(notes) if 0 <= note.message < told} if switched else {}
    return tuple(note for note in notes if note.message < 0 or note.message >= told or note is older.get(note.rule))
