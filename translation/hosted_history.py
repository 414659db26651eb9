"""How a history with tools that a server ran is told to an upstream.

In the client's history such a call and its result stand in one assistant message (`mcp_tool_use`, `mcp_tool_result`).
To an upstream they are told as what they were: a call in an answer, its result in the user message after it, and the
next answer. A round ends with its results, so the blocks themselves say where to cut.
"""

from collections.abc import Iterator, Mapping
from typing import TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from translation.hosted import MCP_TOOL_RESULT, offered_name, result_of, server_of
from translation.mcp_servers import TOOL_LISTING
from translation.outline import MCP_TOOL_USE, is_hosted
from translation.state import Snapshot
from translation.values import (
    Block,
    Message,
    Origin,
    Other,
    Request,
    ServerToolResult,
    ServerToolUse,
    Text,
    ToolResult,
    ToolUse,
)


class Stored(Struct, frozen=True):
    """What the store knows of calls that the bridge ran: results that the client has not sent back, and the opaque
    state of the round that a call was part of."""

    results: Mapping[str, ToolResult] = {}
    origins: Mapping[str, Origin] = {}


NOTHING_STORED = Stored()


def unanswered(request: Request) -> tuple[str, ...]:
    """The calls that a server ran, without a result. At the end of the history they wait for it; the rest was
    interrupted."""
    blocks = [block for message in request.messages for block in message.blocks]
    answered = {block.tool_use_id for block in blocks if type(block) is ServerToolResult}
    calls = (block for block in blocks if type(block) is ServerToolUse and is_hosted(block))
    return tuple(call.id for call in calls if call.id not in answered)


def waiting(request: Request) -> tuple[str, ...]:
    """The calls that the newest answer left open: its client asks for nothing but to go on."""
    if not request.messages or request.messages[-1].role != "assistant":
        return ()
    last = {block.id for block in request.messages[-1].blocks if _is_call(block)}
    return tuple(id_ for id_ in unanswered(request) if id_ in last)


def halved(message: Message, snapshot: Snapshot) -> int:
    """The turn of an answer that holds calls of the client's and none that a server ran; 0 when it is none."""
    if message.role != "assistant" or any(_is_call(block) for block in message.blocks):
        return 0
    links = (snapshot.links.get(block.id) for block in message.blocks if type(block) is ToolUse)
    return next((link.turn_id for link in links if link is not None), 0)


def whole_of(message: Message, stored: Message) -> Message | None:
    """The stored answer, if the message says what a client keeps of it that cannot hold a server's calls."""
    return stored if _kept(message) == _kept(stored) else None


def _kept(message: Message) -> tuple[str, list[str]]:
    said = "".join(block.text for block in message.blocks if type(block) is Text)
    return said.strip(), [block.id for block in message.blocks if type(block) is ToolUse]


def told(request: Request, stored: Stored = NOTHING_STORED, *, own_only: bool = False) -> Request:
    """Calls and results in their ordinary places; `own_only` leaves to Anthropic what it ran itself."""
    listings = own_only and bool(request.mcp_servers)  # of servers that Anthropic asks
    if not any(
        _is_told(block, own_only=own_only) or (_is_listing(block) and not listings)
        for message in request.messages
        for block in message.blocks
    ):
        return request
    messages: list[Message] = []
    results: tuple[ToolResult, ...] = ()
    for run in _runs(request.messages):
        if run[0].role == "assistant":
            history = _History(stored, own_only=own_only, listings=listings)
            history.read(run)
            messages += _brought(results)
            spoken, results = history.messages(), history.open
            messages += spoken
        elif run[0].role == "user" and results:
            messages += [replace(run[0], blocks=(*results, *run[0].blocks), raw=b""), *run[1:]]
            results = ()
        else:
            messages += run
    messages += _brought(results)
    return replace(request, messages=tuple(messages))


def _brought(results: tuple[ToolResult, ...]) -> list[Message]:
    return [Message("user", results)] if results else []


class _Round:
    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.calls: list[str] = []
        self.answered = False
        self.origin: Origin | None = None


class _History:
    """The answers of one run, cut into rounds. `open` are the last one's results: the next user message brings them."""

    def __init__(self, stored: Stored, *, own_only: bool, listings: bool) -> None:
        self._stored = stored
        self._own_only = own_only
        self._listings = listings
        self._rounds = [_Round()]
        self._results: dict[str, ToolResult] = {}
        self._touched = False
        self._run: list[Message] = []
        self.open: tuple[ToolResult, ...] = ()

    def read(self, run: list[Message]) -> None:
        self._run = run
        for message in run:
            for block in message.blocks:
                self._block(block)
                self._rounds[-1].origin = message.origin

    def messages(self) -> list[Message]:
        if not self._touched:
            return self._run
        spoken: list[Message] = []
        for one in self._rounds:
            results = self._of(one)
            if one.blocks:
                spoken.append(Message("assistant", tuple(one.blocks), origin=self._origin(one)))
            if one is self._rounds[-1]:
                self.open = results
            elif results:
                spoken.append(Message("user", results))
        return spoken

    def _block(self, block: Block) -> None:
        current = self._rounds[-1]
        if type(block) is ServerToolResult and block.type == MCP_TOOL_RESULT and self._knows(block.tool_use_id):
            self._results[block.tool_use_id] = result_of(block)
            current.answered = True
            return
        if _is_listing(block) and not self._listings:
            self._touched = True
            return
        if current.answered:
            current = _Round()
            self._rounds.append(current)
        if isinstance(block, ServerToolUse) and _is_told(block, own_only=self._own_only):
            self._touched = True
            current.calls.append(block.id)
            current.blocks.append(_ordinary(block))
        else:
            current.blocks.append(block)

    def _knows(self, id_: str) -> bool:
        return any(id_ in one.calls for one in self._rounds)

    def _of(self, one: _Round) -> tuple[ToolResult, ...]:
        known = (self._results.get(id_) or self._stored.results.get(id_) for id_ in one.calls)
        return tuple(result for result in known if result is not None)

    def _origin(self, one: _Round) -> Origin | None:
        """Of a round that went on, the state was kept with its calls; the message's own is the last one's."""
        kept = next((self._stored.origins[id_] for id_ in one.calls if id_ in self._stored.origins), None)
        return kept or (one.origin if one is self._rounds[-1] else None)


def _ordinary(block: ServerToolUse) -> ToolUse:
    """With the arguments as the model wrote them, where they are known: clients spell JSON their own way."""
    if block.link is None:
        given = block.input if block.input.startswith(b"{") else b"{}"  # upstreams want an object
        return ToolUse(block.id, offered_name(server_of(block), block.name), given)
    return ToolUse(block.id, block.link.name, block.link.arguments or block.input, block.link)


def _runs(messages: tuple[Message, ...]) -> Iterator[list[Message]]:
    run: list[Message] = []
    for message in messages:
        if run and run[0].role != message.role:
            yield run
            run = []
        run.append(message)
    yield run


def _is_call(block: Block) -> TypeGuard[ServerToolUse]:
    return type(block) is ServerToolUse and block.type == MCP_TOOL_USE


def _is_listing(block: Block) -> bool:
    return type(block) is Other and block.type == TOOL_LISTING


def _is_told(block: Block, *, own_only: bool) -> bool:
    return _is_call(block) and (not own_only or block.link is not None)
