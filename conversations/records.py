"""From what happened in a turn to the rows that remember it, at the storage level of its key."""

import time
from collections.abc import Sequence
from hashlib import blake2b

import msgspec
import zstandard
from msgspec import Struct

from conversations.state import Conversation, Sent
from conversations.store.database import timestamp
from conversations.store.reads import SENT_CHAIN, Node
from conversations.store.writes import Answered, LinkRow, MessageRow
from translation.client.stored import dump_blocks
from translation.values import Block, Message, Note, Request, ToolResult

COMPRESSION = 1
SECRET_HEADERS = frozenset({"authorization", "x-api-key", "cookie", "proxy-authorization", "api-key", "x-goog-api-key"})
HEADER_LIMIT = 8_000


class Delta(Struct, frozen=True):
    """A request as sent: the turn whose request it begins like, how far, and the rest."""

    parent: int | None
    prefix: int
    tail: bytes
    depth: int


def now() -> str:
    return timestamp(time.time())


def compress(data: bytes) -> bytes:
    return zstandard.compress(data, COMPRESSION) if data else b""


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def delta(last: Sent | None, body: bytes) -> Delta:
    """Against the conversation's last request; kept whole where little is shared, and now and then anyway."""
    if last is not None and last.depth < SENT_CHAIN:
        prefix = _shared(last.body, body)
        if prefix * 2 >= len(body):
            return Delta(last.turn, prefix, compress(body[prefix:]), last.depth + 1)
    return Delta(None, 0, compress(body), 0)


def _shared(one: bytes, other: bytes) -> int:
    """The length of the common prefix, in a few comparisons."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def notes_json(notes: Sequence[Note]) -> bytes:
    return msgspec.json.encode(notes)


def messages(
    conversation: Conversation, request: Request, chain: Sequence[bytes], storage: str
) -> tuple[tuple[MessageRow, ...], Node]:
    """The rows that are not stored yet, and the node of the request's last message."""
    stored, node = conversation.deepest(chain)
    depth, answers = (node.depth, node.answers) if node else (0, 0)
    head = Node(chain[-1] if chain else b"", depth + len(chain) - stored, answers)
    if storage == "minimal":
        return (), head
    rows = []
    for index in range(stored, len(chain)):
        message = request.messages[index]
        content = _content(message.blocks, storage)
        parent = chain[index - 1] if index else b""
        rows.append(MessageRow(chain[index], parent, depth + index - stored + 1, answers, message.role, content))
    return tuple(rows), head


def answer(head: Node, chain_hash: bytes, content: bytes, blocks: tuple[Block, ...], storage: str) -> MessageRow:
    kept = content if storage == "full" else _content(blocks, storage)
    return MessageRow(chain_hash, head.chain_hash, head.depth + 1, head.answers + 1, "assistant", kept)


def _content(blocks: tuple[Block, ...], storage: str) -> bytes:
    if storage == "full":
        return dump_blocks(blocks)
    return msgspec.json.encode([{"type": _kind(block), "size": len(dump_blocks((block,)))} for block in blocks])


def _kind(block: Block) -> str:
    name = type(block).__name__
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def answered(request: Request) -> tuple[Answered, ...]:
    """The results that the newest turn of a request brings."""
    results = []
    for message in reversed(request.messages):
        if message.role == "assistant":
            break
        results += [
            Answered(block.tool_use_id, "failed" if block.is_error else "answered", block.is_error, _size(block))
            for block in message.blocks
            if isinstance(block, ToolResult)
        ]
    return tuple(results)


def _size(result: ToolResult) -> int:
    return len(dump_blocks(result.blocks))


def kept_headers(headers: dict[str, str]) -> bytes:
    shown = {name: value for name, value in headers.items() if name not in SECRET_HEADERS}
    encoded = msgspec.json.encode(shown)
    return encoded if len(encoded) <= HEADER_LIMIT else b"{}"


def params(request: Request) -> bytes:
    """The request's own settings: what is neither history nor context."""
    shown = {
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "top_k": request.top_k,
        "stop_sequences": request.stop_sequences or None,
        "tool_choice": request.tool_choice,
        "thinking": request.thinking,
        "effort": request.effort or None,
        "output_schema": msgspec.Raw(request.output_schema) if request.output_schema else None,
        "betas": request.betas or None,
        "version": request.version,
        "unknown": request.unknown or None,
    }
    return msgspec.json.encode({name: value for name, value in shown.items() if value is not None})


def restored(stored_blocks: tuple[Block, ...], role: str) -> Message:
    return Message("assistant" if role == "assistant" else "system" if role == "system" else "user", stored_blocks)


def finished_link(link: LinkRow, arguments: bytes, state: bytes, status: str) -> LinkRow:
    return msgspec.structs.replace(link, arguments=arguments, state=state, status=status)
