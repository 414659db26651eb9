"""What in a history Anthropic would refuse beyond what `history.repair` mends: others' thinking, odd ids and names."""

import re
from collections.abc import Iterator
from hashlib import sha256

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from translation.adapter import Target
from translation.history import NO_CONTENT, joined, reminder
from translation.names import ToolNames
from translation.providers.anthropic_searches import own, served
from translation.providers.anthropic_state import is_unsigned, remembered, unsigned
from translation.state import OUR_SIGNATURE
from translation.values import (
    Block,
    Message,
    Note,
    RedactedThinking,
    Request,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
)

CONTINUE = Message("user", (Text("Continue."),))
THINKING = ("thinking", "redacted_thinking")
CALLS = frozenset((ToolUse, ToolResult))
LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]+")


def legal(request: Request, target: Target, names: ToolNames) -> tuple[tuple[Message, ...], list[Note]]:
    """The messages, each the same object unless it had to change."""
    notes: list[Note] = []
    messages = list(request.messages)
    ran = served(request.messages)
    for index, message in enumerate(request.messages):
        claudes = _own(message, index, target.upstream, notes)
        if ran is not None:
            claudes = own(claudes, index, target.upstream, ran, notes)
        if message.role == "system" and not (request.body or message.raw):
            # A chat client's. `role 'system' is not supported on this model`, and elsewhere not everywhere.
            claudes = reminder(claudes, index, notes)
        messages[index] = _renamed(claudes, index, names, notes)
    thinking = request.thinking.kind if request.thinking is not None else ""
    if thinking == "enabled" or (thinking != "disabled" and any(map(is_unsigned, request.messages))):
        _remember(messages, target.upstream, notes, fixed=thinking == "enabled")
    ended = tuple(_ended(messages, notes))
    last = messages[-1] if messages and not request.body else None
    if last is not None and last.role == "assistant" and type(last.blocks[-1]) is Text:
        # A chat client's. `This model does not support assistant message prefill`: none since Claude 4.6.
        what = "the last message is the assistant's; Claude answers users only, so it is asked to continue"
        notes.append(Note("degradation", "prefill-continued", what))
        ended = (*ended, CONTINUE)
    return ended, notes


def _remember(messages: list[Message], upstream: str, notes: list[Note], *, fixed: bool) -> None:
    """The tool turn that goes on gets back the thinking that the client left out of it, if that has to be there.

    Where thinking is not signed, it is a server that is only like Anthropic, and may want that of every tool turn.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user" and not any(isinstance(block, ToolResult) for block in message.blocks):
            fixed = False
        if message.role != "assistant" or any(map(_is_thinking, message.blocks)):
            continue
        whole = remembered(message, upstream) if fixed or is_unsigned(message) else None
        if whole is not None:
            messages[index] = whole
            what = f"messages.{index}: its thinking, which the client left out, was put back"
            notes.append(Note("repair", "thinking-restored", what, message=index))


def _own(message: Message, index: int, upstream: str, notes: list[Note]) -> Message:
    why = _unwelcome(message, upstream)
    if not why:
        return message
    blocks = tuple(block for block in message.blocks if not _is_thinking(block)) or (NO_CONTENT,)
    what = f"messages.{index}: its thinking was left out: {why}"
    notes.append(Note("repair", "thinking-dropped", what, message=index))
    return replace(message, blocks=blocks, raw=b"")


def lacks_thinking(request: Request, messages: tuple[Message, ...]) -> bool:
    """Whether fixed-budget thinking would be refused: a tool turn that goes on has to begin with Claude's own.

    Adaptive thinking does not ask for that, and models that know nothing else cannot switch it off.
    """
    if request.thinking is None or request.thinking.kind != "enabled":
        return False
    spoken = [message for message in messages if message.role != "system"]
    if len(spoken) < 2 or not any(isinstance(block, ToolResult) for block in spoken[-1].blocks):
        return False
    return not _is_thinking(spoken[-2].blocks[0])


def _ended(messages: list[Message], notes: list[Note]) -> Iterator[Message]:
    """No message may end in thinking: an answer that goes on in the next message is one with it."""
    held: Message | None = None
    for index, given in enumerate(messages):
        message = given
        if held is not None and message.role == "assistant":
            notes.append(Note("repair", "merged", f"messages.{index}: an answer in two messages became one", index))
            message = joined([held, message], notes, index)
        elif held is not None:
            yield _with_end(held, index - 1, notes)
        held = message if any(map(_is_thinking, message.blocks[-1:])) else None
        if held is None:
            yield message
    if held is not None:
        yield _with_end(held, len(messages) - 1, notes)


def _with_end(message: Message, index: int, notes: list[Note]) -> Message:
    notes.append(Note("repair", "placeholder", f"messages.{index}: the answer ended in thinking", index))
    return replace(message, blocks=(*message.blocks, NO_CONTENT), raw=b"")


def _unwelcome(message: Message, upstream: str) -> str:
    """By provenance, never by looks. What the store does not know passes, unless it bears no signature or our own.

    What breaks off bears none either, so only thinking that is known to be whole is given back without one.
    """
    if message.role != "assistant" or not any(map(_is_thinking, message.blocks)):
        return ""
    links = [block.link for block in message.blocks if isinstance(block, ToolUse) and block.link is not None]
    makers = {link.origin.upstream for link in links} | ({message.origin.upstream} if message.origin else set())
    if makers - {upstream}:
        return f"{', '.join(sorted(makers - {upstream}))} made it"
    thinking = [block for block in message.blocks if isinstance(block, Thinking)]
    if not makers and any(block.signature.startswith(OUR_SIGNATURE) for block in thinking):
        return "it bears the bridge's own signature"
    bare = [block.text for block in thinking if not block.signature]
    return "" if not bare or unsigned(message, upstream).issuperset(bare) else "it bears no signature"


def _is_thinking(block: Block) -> bool:
    return isinstance(block, Thinking | RedactedThinking)


def _renamed(message: Message, index: int, names: ToolNames, notes: list[Note]) -> Message:
    """Ids and names may be such as Anthropic refuses: each has one alias, everywhere."""
    if message.kinds.isdisjoint(CALLS):
        return message
    blocks = tuple([_with_legal_id(block, names) for block in message.blocks])
    if all(new is old for new, old in zip(blocks, message.blocks, strict=True)):
        return message
    notes += [Note("repair", rule, f"messages.{index}: {what}", index) for rule, what in _aliased(message, blocks)]
    return replace(message, blocks=blocks, raw=b"")


def _with_legal_id(block: Block, names: ToolNames) -> Block:
    if isinstance(block, ToolUse):
        name = names.upstream(block.name)
        if name == block.name and LEGAL_ID.fullmatch(block.id):
            return block
        return replace(block, id=block.id if LEGAL_ID.fullmatch(block.id) else _alias(block.id), name=name)
    if isinstance(block, ToolResult):
        return _with_legal_references(block, names)
    return block


def _with_legal_references(result: ToolResult, names: ToolNames) -> ToolResult:
    if not LEGAL_ID.fullmatch(result.tool_use_id):
        result = replace(result, tool_use_id=_alias(result.tool_use_id))
    if not any(type(block) is ToolReference for block in result.blocks):
        return result
    told = tuple([_referenced(block, names) for block in result.blocks])
    return result if told == result.blocks else replace(result, blocks=told)


def _referenced(block: Block, names: ToolNames) -> Block:
    return ToolReference(names.upstream(block.tool_name)) if isinstance(block, ToolReference) else block


def _aliased(message: Message, blocks: tuple[Block, ...]) -> Iterator[tuple[str, str]]:
    """The rules that changed a message."""
    names = [block.name for block in message.blocks if isinstance(block, ToolUse)]
    if [block.name for block in blocks if isinstance(block, ToolUse)] != names:
        yield "name-aliased", "a call has a name that is refused"
    if any(map(_has_odd_id, message.blocks)):
        yield "id-aliased", "a tool id has characters that are refused"


def _has_odd_id(block: Block) -> bool:
    id_ = block.id if isinstance(block, ToolUse) else block.tool_use_id if isinstance(block, ToolResult) else "-"
    return not LEGAL_ID.fullmatch(id_)


def _alias(id_: str) -> str:
    return f"toolu_{sha256(id_.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


# ---------------------------------------------------------------- as bytes, for the retry


class _Wire(Struct):
    role: str
    content: Raw


class _Kind(Struct):
    type: str = ""


def without_thinking(raw: bytes) -> bytes:
    """A message without its thinking; the same bytes when it has none."""
    message = msgspec.json.decode(raw, type=_Wire)
    if message.role != "assistant" or not bytes(message.content).startswith(b"["):
        return raw
    blocks = msgspec.json.decode(message.content, type=list[Raw])
    kept = [block for block in blocks if msgspec.json.decode(block, type=_Kind).type not in THINKING]
    if len(kept) == len(blocks):
        return raw
    content = kept or [Raw(msgspec.json.encode({"type": "text", "text": NO_CONTENT.text}))]
    return msgspec.json.encode({"role": "assistant", "content": content})
