"""What this process remembers of conversations: a cache in front of the store that only ever adds.

Messages and links are immutable, so what is cached stays true; what is not cached is asked for. Only the end of a
conversation takes something away: then its entry is dropped, and a turn that still believed in it fails its opening
write.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import filterfalse, repeat, takewhile

from msgspec import Struct

from conversations import ids
from conversations.conversation import Conversation, Sent
from conversations.recent import Recent
from conversations.store import Store, answers, hosted, reads
from conversations.store.answers import Answer
from conversations.store.database import Database
from conversations.store.hosted import Ran
from conversations.store.reads import Found, Known, Node, Stored
from conversations.store.writes import ConversationRow
from translation.client.identity import MAX_ID, Identity
from translation.errors import ConversationEnded, ThreadNotFound
from translation.state import Snapshot, Wanted
from translation.values import Link, Origin, Thread

CONVERSATIONS = 4_096
POINTERS = 65_536
SENT_BYTES = 32 * 1024 * 1024
NO_MESSAGES: list[Stored] = []
NOTHING_KNOWN = Known({}, {}, {}, ())


class Resolved(Struct, frozen=True):
    """The conversation of a request; `base` is where the request goes on when it holds only what is new."""

    conversation: Conversation
    base: Answer | None = None
    cut: Answer | None = None  # a turn after it whose answer broke off


class State:
    def __init__(self, store: Store, rows: ids.RowIds) -> None:
        self._store = store
        self._rows = rows
        self._conversations: Recent[tuple[int, str], Conversation] = Recent(CONVERSATIONS)
        self._names: dict[int, tuple[int, str]] = {}
        self._tools: Recent[tuple[int, str], Found] = Recent(POINTERS)
        self._hashes: Recent[tuple[int, bytes], Found] = Recent(POINTERS)
        self._sent: OrderedDict[int, Sent] = OrderedDict()
        self._sent_size = 0
        self.bury: Callable[[], Awaitable[int]] = _nobody  # closes turns that processes left which have just died
        self.hits = 0  # requests that the cache could answer
        self.misses = 0

    # ------------------------------------------------------------ which conversation is this

    async def resolve(self, key: int, thread: Thread | None, identity: Identity, wanted: Wanted) -> Resolved:
        """The six steps, always within the key."""
        if thread is not None and thread.kind == "continue":
            return await self._continue(key, thread.previous_message_id)
        if identity.conversation_id:
            conversation = await self._named(key, identity.conversation_id, "header", identity)
            base, cut = await self._last(conversation) if identity.append else (None, None)
            return _from(conversation, base, cut)
        if identity.session_id:
            return Resolved(await self._named(key, _session(identity), "session", identity))
        if wanted.tool_use_ids or wanted.hashes:
            found = await self._recognise(key, wanted.tool_use_ids, wanted.hashes)
            if found is not None:
                return Resolved(self._entry(key, found))
        return Resolved(self._fresh(key, ids.conversation_id(), "new", identity))

    async def _continue(self, key: int, message_id: str) -> Resolved:
        base = await self._store.read(partial(answers.answer_by_message, key=key, message_id=message_id), None)
        if base is None or not base.answer_hash:
            raise ThreadNotFound(f"thread.previous_message_id: {message_id} is not known", code="thread_not_found")
        return _from(self._entry(key, base.conversation), base)

    async def _named(self, key: int, name: str, how: str, identity: Identity) -> Conversation:
        known = self._conversations.use((key, name))
        if known is not None and known.stored:
            return known
        # Of one that is not stored here another process may have stored its own.
        found = await self._store.read(partial(reads.conversation, key=key, external_id=name), None)
        # Another request may have made the entry while this one was reading: there must be one.
        known = self._conversations.use((key, name))
        if known is not None and (found is None or known.stored):
            return known
        return self._entry(key, found) if found else self._fresh(key, name, how, identity)

    async def _last(self, conversation: Conversation) -> tuple[Answer | None, Answer | None]:
        if not conversation.stored:
            return None, None
        job = partial(answers.last_said, conversation_id=conversation.row.id)
        nothing: tuple[Answer | None, Answer | None, bool] = (None, None, False)
        last, cut, running = await self._store.read(job, nothing)
        if running and await self.bury():
            last, cut, _ = await self._store.read(job, nothing)
        return last, cut

    async def _recognise(self, key: int, tools: Sequence[str], hashes: Sequence[bytes]) -> Found | None:
        """By calls, also those that the bridge ran: of an answer that was cut off they are all that is stored."""
        for name in filter(self._tools.__contains__, zip(repeat(key), reversed(tools), strict=False)):
            if (found := self._tools.use(name)) is not None and self._alive(found):
                if self._has_said(found, hashes):
                    return found
                break  # servers that only speak like Anthropic repeat their ids: the store knows all that have it
        if not tools:
            for place in filter(self._hashes.__contains__, zip(repeat(key), reversed(hashes), strict=False)):
                if (found := self._hashes.use(place)) is not None and self._alive(found):
                    return found
        return await self._store.read(partial(_search, key=key, tools=tools, hashes=hashes), None)

    def _alive(self, found: Found) -> bool:
        """Still cached under that id: a conversation that ended was dropped, and its name may be another one's now."""
        return found.id in self._names

    def _has_said(self, found: Found, hashes: Sequence[bytes]) -> bool:
        """Whether one of these answers is known to be its; without any of them there is nothing to tell by."""
        entry = self._conversations.get(self._names[found.id])
        return not hashes or (entry is not None and any(hash_ in entry.turns for hash_ in reversed(hashes)))

    def _entry(self, key: int, found: Found) -> Conversation:
        known = self._conversations.use((key, found.external_id))
        if known is not None and known.row.id == found.id:
            known.stored = True
            return known
        return self._keep(Conversation(ConversationRow(found.id, key, found.external_id, ""), stored=True))

    def _fresh(self, key: int, name: str, how: str, identity: Identity) -> Conversation:
        session = (
            (identity.session_id, identity.agent_id, identity.parent_agent_id) if how == "session" else ("", "", "")
        )
        return self._keep(Conversation(ConversationRow(self._rows.mint(), key, name, how, *session), stored=False))

    def _keep(self, conversation: Conversation) -> Conversation:
        row = conversation.row
        forgotten = self._conversations.put((row.api_key, row.external_id), conversation)
        if forgotten is not None:
            self._let_go(forgotten)
        self._names[row.id] = (row.api_key, row.external_id)
        if len(self._names) > 2 * CONVERSATIONS:
            live = {entry.row.id for entry in self._conversations.values()}
            self._names = {id_: name for id_, name in self._names.items() if id_ in live}
        return conversation

    def _let_go(self, conversation: Conversation) -> None:
        """What leads to a conversation that is not cached leads nowhere."""
        key = conversation.row.api_key
        self.forget(conversation.row.id)
        for tool in conversation.links:
            self._tools.pop((key, tool), None)
        for hash_ in conversation.turns:
            self._hashes.pop((key, hash_), None)

    # ------------------------------------------------------------ what is known of it

    async def know(self, conversation: Conversation, wanted: Wanted, *, elsewhere: bool = False) -> Snapshot:
        """A snapshot that holds all that is stored of what the request mentions, maybe in other conversations too."""
        if conversation.stored:
            await self._learn(conversation, wanted)
        else:
            self.hits += 1
        return await self._know_elsewhere(conversation, wanted) if elsewhere else conversation.snapshot

    async def _learn(self, conversation: Conversation, wanted: Wanted) -> None:
        missing = tuple(filterfalse(conversation.links.__contains__, wanted.tool_use_ids))
        # A message whose place is known may be an answer all the same whose state is not.
        hashes = tuple(filterfalse(conversation.turns.__contains__, wanted.hashes))
        if missing or hashes:
            job = partial(reads.known, conversation_id=conversation.row.id, tool_use_ids=missing, hashes=hashes)
            self.misses += 1
            conversation.learn(await self._store.read(job, NOTHING_KNOWN))
        else:
            self.hits += 1

    async def _know_elsewhere(self, conversation: Conversation, wanted: Wanted) -> Snapshot:
        """With what other conversations of the key have called and answered. Not cached: these end when they are ended.

        Whoever goes on with another's history begins with it: answers after the first of one's own are nobody else's.
        """
        known = conversation.snapshot
        missing = tuple(filterfalse(known.links.__contains__, wanted.tool_use_ids))
        told = tuple(takewhile(lambda hash_: not known.turns.get(hash_), wanted.hashes))
        if not missing and not told:
            return known
        job = partial(reads.known_elsewhere, key=conversation.row.api_key, tool_use_ids=missing, hashes=told)
        lent = await self._store.read(job, NOTHING_KNOWN)
        if not lent.links and not lent.turns:
            return known
        return Snapshot(known.links | lent.links, known.turns | lent.turns, known.origins | lent.origins)

    async def path_elsewhere(self, conversation_id: int, head: bytes) -> list[Stored]:
        return await self._store.read(partial(reads.path, conversation_id=conversation_id, head=head), NO_MESSAGES)

    async def path(self, conversation: Conversation, head: bytes) -> list[Stored]:
        stored = await self.path_elsewhere(conversation.row.id, head)
        for message in stored:
            if message.node:
                conversation.nodes[message.chain_hash] = Node(message.chain_hash, message.depth, message.answers)
        return stored

    async def answer_of_turn(self, turn: int) -> Answer | None:
        return await self._store.read(partial(answers.answer_of_turn, turn=turn), None)

    async def know_rounds(self, conversation: Conversation, tool_use_ids: Sequence[str]) -> dict[str, Origin]:
        """The opaque state of the rounds that these calls were part of."""
        missing = tuple(id_ for id_ in tool_use_ids if id_ not in conversation.rounds)
        if missing and conversation.stored:
            job = partial(hosted.round_origins, conversation_id=conversation.row.id, tool_use_ids=missing)
            none: dict[str, Origin] = {}
            conversation.rounds.update(await self._store.read(job, none))
        return conversation.rounds

    async def ran(self, conversation: Conversation, tool_use_ids: Sequence[str]) -> list[Ran]:
        if not tool_use_ids or not conversation.stored:
            return []
        job = partial(hosted.ran, conversation_id=conversation.row.id, tool_use_ids=tool_use_ids)
        return await self._store.read(job, [])

    async def ran_in_turn(self, turn: int) -> list[Ran]:
        return await self._store.read(partial(hosted.ran_in_turn, turn=turn), [])

    async def know_mixed(self, conversation: Conversation, turns: Sequence[int]) -> frozenset[int]:
        """Those of these turns, all of them over, in which the bridge ran tools."""
        missing = tuple(turn for turn in turns if turn not in conversation.mixed)
        if missing:
            found: set[int] = await self._store.read(partial(hosted.turns_with_runs, turns=missing), set())
            conversation.mixed.update({turn: turn in found for turn in missing})
        return frozenset(turn for turn in turns if conversation.mixed[turn])

    async def delivered(self, turn: int) -> bytes:
        """The content of a complete turn's answer; b"" when there is none."""
        found = await self._store.read(partial(answers.delivered, turn=turn), None)
        return found.content if found is not None else b""

    async def turn_links(self, turn: int) -> list[Link]:
        return await self._store.read(partial(reads.turn_links, turn=turn), [])

    async def blob(self, conversation_id: int, digest: bytes) -> bytes:
        """A `system` or `tools` that the conversation began with; b"" where it had none."""
        if not digest:
            return b""
        found = await self._store.read(partial(reads.blob, conversation_id=conversation_id, digest=digest), b"")
        if not found:
            raise ConversationEnded("the conversation was terminated while this request was read")
        return found

    async def last_sent(self, conversation: Conversation) -> Sent | None:
        known = self._sent.get(conversation.row.id)
        if known is not None or not conversation.stored:
            return known
        found = await self._store.read(partial(reads.last_sent, conversation_id=conversation.row.id), None)
        return Sent(*found) if found else None

    # ------------------------------------------------------------ what is new

    def note_links(self, conversation: Conversation, links: Sequence[Link]) -> None:
        found = Found(conversation.row.id, conversation.row.external_id)
        for link in links:
            conversation.links[link.tool_use_id] = link
            self._tools.put((conversation.row.api_key, link.tool_use_id), found)

    def note_answer(self, conversation: Conversation, node: Node, turn: int, origin: Origin) -> None:
        conversation.nodes[node.chain_hash] = node
        conversation.turns[node.chain_hash] = turn
        conversation.origins[turn] = origin
        conversation.latest = max(conversation.latest, turn)
        found = Found(conversation.row.id, conversation.row.external_id)
        self._hashes.put((conversation.row.api_key, node.chain_hash), found)

    def note_sent(self, conversation: Conversation, sent: Sent) -> None:
        old = self._sent.pop(conversation.row.id, None)
        self._sent_size += len(sent.body) - (len(old.body) if old else 0)
        self._sent[conversation.row.id] = sent
        while self._sent_size > SENT_BYTES and len(self._sent) > 1:
            self._sent_size -= len(self._sent.popitem(last=False)[1].body)

    def forget(self, *conversations: int) -> None:
        """They ended, or this process was wrong about them."""
        for number in conversations:
            name = self._names.pop(number, None)
            if name is not None and (entry := self._conversations.get(name)) is not None and entry.row.id == number:
                del self._conversations[name]
            if (sent := self._sent.pop(number, None)) is not None:
                self._sent_size -= len(sent.body)


async def _nobody() -> int:
    return 0


def _from(conversation: Conversation, base: Answer | None, cut: Answer | None = None) -> Resolved:
    if (last := cut or base) is not None:
        conversation.latest = max(conversation.latest, last.turn)
    return Resolved(conversation, base, cut)


def _session(identity: Identity) -> str:
    """The name of an agent's conversation. What is too long for one ends in a hash: agents must not share theirs."""
    name = identity.session_id + (f"/{identity.agent_id}" if identity.agent_id else "")
    if len(name) <= MAX_ID:
        return name
    end = "/" + blake2b(name.encode(), digest_size=16).hexdigest()
    return name[: MAX_ID - len(end)] + end


def _search(db: Database, key: int, tools: Sequence[str], hashes: Sequence[bytes]) -> Found | None:
    """One hop for steps four and five."""
    return (reads.by_tool(db, key, tools, hashes) if tools else None) or reads.by_prefix(db, key, hashes)
