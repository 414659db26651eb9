"""A request's messages as rows: those that are not stored yet, and what they answer."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress as chosen
from operator import itemgetter

import msgspec

from conversations.conversation import Conversation
from conversations.store.others import COMPRESSED, PACKED
from conversations.store.packing import compress, pack
from conversations.store.reads import Node
from conversations.store.writes import Answered, MessageRow
from translation.client.marks import dump_written, is_marked
from translation.client.stored import dump_all, dump_blocks
from translation.values import ROLE, Block, Message, Request, Role, ToolResult

FEW = 8  # messages that get a row each; of more, those up to the last answer share rows
TOGETHER = 500  # messages in one row
TOGETHER_BYTES = 1_000_000
LARGE = 1_000_000  # bytes: while such a row is written, nothing else is
New = tuple[Role, bytes, bytes]  # role, hash, content
CONTENT = itemgetter(2)


def messages(
    conversation: Conversation, request: Request, chain: Sequence[bytes], storage: str, form: int
) -> tuple[tuple[MessageRow, ...], Node]:
    """The rows that are not stored yet, and the node of the request's last message."""
    stored, node = conversation.deepest(chain)
    depth, answers = (node.depth, node.answers) if node else (0, 0)
    head = Node(chain[-1] if chain else b"", depth + len(chain) - stored, answers)
    if storage == "minimal":
        return (), head
    said = request.messages[stored:]
    contents = map(_sizes, said) if storage != "full" else _contents(said, conversation.row.recognised)
    new: list[New] = [*zip(map(ROLE, said), chain[stored:], contents, strict=True)]
    parent = chain[stored - 1] if stored else b""
    parts = _together(new) if form >= PACKED and len(new) > FEW else [[one] for one in new]
    return tuple(_rows(parts, parent, depth, answers, form)), head


def _contents(said: Sequence[Message], recognised: str) -> list[bytes]:
    contents = dump_all(said)
    # Claude Code's breakpoints move with each turn, and its histories come whole.
    marked = is_marked.all(said) if recognised != "session" else ()
    for place in chosen(range(len(said)), marked):
        contents[place] = dump_written(said[place])
    return contents


def _rows(parts: Iterable[list[New]], parent: bytes, depth: int, answers: int, form: int) -> Iterator[MessageRow]:
    for part in parts:
        role, chain_hash, content = part[-1]
        depth += len(part)
        if len(part) > 1:
            content = compress(pack(part))
        elif len(content) >= LARGE and form >= COMPRESSED:
            content = compress(content)
        yield MessageRow(chain_hash, parent, depth, answers, role, content, len(part))
        parent = chain_hash


def _together(new: list[New]) -> Iterator[list[New]]:
    """What comes whole, a history from elsewhere, shares rows up to its last answer: by answers the next request finds
    it again. What follows, unless it is very long, has a row each: clients take that back, and who sends it again must
    not store it twice."""
    shared = max(_answered(new), len(new) - TOGETHER)
    if shared <= TOGETHER and sum(map(len, map(CONTENT, new[:shared]))) <= TOGETHER_BYTES:
        yield from ([new[:shared]] if shared else ())
        yield from ([one] for one in new[shared:])
        return
    part: list[New] = []
    size = 0
    for one in new[:shared]:
        size += len(one[2])
        if part and (len(part) == TOGETHER or size > TOGETHER_BYTES):
            yield part
            part, size = [], len(one[2])
        part.append(one)
    if part:
        yield part
    yield from ([one] for one in new[shared:])


def _answered(new: list[New]) -> int:
    """How many there are up to the last answer before the last message."""
    return next((index for index in range(len(new) - 1, 0, -1) if new[index - 1][0] == "assistant"), 0)


def kept(content: bytes, message: Message, storage: str) -> bytes:
    """What is stored of an answer's content."""
    return content if storage == "full" else _sizes(message)


def _sizes(message: Message) -> bytes:
    """Below full storage."""
    return msgspec.json.encode([{"type": _kind(block), "size": len(dump_blocks((block,)))} for block in message.blocks])


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
