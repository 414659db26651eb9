"""Requests that go on from what is stored: the history, system and tools that are put before what is new."""

import msgspec
from msgspec.structs import replace

from conversations.conversation import Conversation
from conversations.state import Resolved, State
from conversations.storable import digest
from conversations.store.answers import Answer
from conversations.store.hosted import Ran
from translation.arguments import respelled
from translation.chain import ROOT, chain
from translation.client.identity import MODE, Identity
from translation.client.parse import parse_system
from translation.client.stored import fingerprint, is_content, parse_told
from translation.client.tools import tools as parse_tools
from translation.errors import ConversationEnded, ThreadRefused
from translation.hosted import Offer, call_block
from translation.outline import MCP_TOOL_USE
from translation.state import continues, wanted
from translation.values import Link, Message, Request, ServerToolUse, ToolResult, ToolUse


async def completed(
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
    if request.thread is not None and request.thread.kind == "continue":
        await _same_fingerprint(state, request, base)
    stored = await state.path(conversation, base.answer_hash)
    if base.answer_hash and not stored:
        raise ConversationEnded("the conversation was terminated while this request was put together")
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


async def led_to(
    state: State, conversation: Conversation, request: Request, link: Link
) -> tuple[Request, tuple[Message, ...]]:
    """What is stored up to this call; with its `system` and `tools`, unless the client tells a history of its own."""
    base = await state.answer_of_turn(link.turn_id)
    history = await _history_of(state, conversation, base) if base is not None else ()
    if base is None or not history or "assistant" in request.roles:
        return request, history
    return await _in_context(state, request, base), history


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
