"""Blocks that a model does not take as they are, in words: documents, search results, what servers ran, the unknown."""

from collections.abc import Callable
from typing import TypeGuard

import msgspec

from translation.unreadable import UNREADABLE
from translation.values import (
    Block,
    Document,
    Image,
    Other,
    SearchResult,
    ServerToolResult,
    ServerToolUse,
    Text,
    ToolReference,
)

PDF = "application/pdf"
LIMIT = 8000  # characters of a summarised block
OPAQUE = ("encrypted_content", "encrypted_index", "encrypted_stdout", "signature", "cache_control")


class _Compaction(msgspec.Struct):
    content: str | None = None


def document(block: Document, shown: int = 0) -> str:
    """A text document, of whose images so many follow it. A PDF or a file has no text here: its adapter sends it
    natively or refuses it."""
    inner = block.data if block.kind == "text" else join(block.blocks)
    lost = len(pictures(block)) - shown
    tail = [f"[images of it that follow: {shown}]"] if shown else []
    tail += [f"[images of it that are left out: {lost}]"] if lost else []
    return "\n".join([caption(block), inner, *tail])


def caption(block: Document) -> str:
    title = f"[document: {block.title or 'untitled'}]"
    return f"{title}\n{block.context}" if block.context else title


def filename(block: Document) -> str:
    """What a file is called: of a PDF OpenAI goes by the end of its name."""
    name = block.title or "document"
    return name if block.media_type not in ("", PDF) or name.lower().endswith(".pdf") else f"{name}.pdf"


def pictures(block: Block) -> tuple[Image, ...]:
    """The images in a document that is made of blocks."""
    if type(block) is not Document or block.kind != "content":
        return ()
    return tuple(part for part in block.blocks if type(part) is Image)


def is_wordless(block: Block) -> TypeGuard[Image | Document]:
    """A file: `words` has nothing to say of it."""
    return isinstance(block, Image) or (isinstance(block, Document) and block.kind not in ("text", "content"))


def unpacked(block: Block, takes: Callable[[Image], bool], *, names_files: bool = True) -> tuple[Block, ...]:
    """What a model takes of a document: its text, then its images; a file after its caption. Any other block as it is.

    `names_files`: the provider's own part for a file has a name, so that a title alone needs no caption.
    """
    if type(block) is not Document:
        return (block,)
    if block.kind in ("base64", "url"):
        named = names_files and block.kind == "base64"
        return (Text(caption(block)), block) if block.context or (block.title and not named) else (block,)
    images = pictures(block)
    if not images:
        return (block,)
    shown = tuple(filter(takes, images))
    return (Text(document(block, len(shown))), *shown)


def is_cited(block: Block) -> bool:
    """Whether the client wants answers that cite it."""
    return isinstance(block, Document | SearchResult) and block.citations


def search_result(block: SearchResult) -> str:
    return f"[search result: {block.title} ({block.source})]\n{join(block.blocks)}"


def reference(block: ToolReference) -> str:
    return f"[tool available: {block.tool_name}]"


def summary(block: ServerToolUse | ServerToolResult | Other) -> str:
    """What a provider ran itself, or a block that nobody knows: its JSON without what only its maker can read."""
    if isinstance(block, ServerToolUse):
        return f"[{block.type} {block.name}: {_short(block.input.decode('utf-8', 'replace'))}]"
    try:
        value = _readable(msgspec.json.decode(block.raw))
    except UNREADABLE:
        return f"[{block.type}]"
    if isinstance(block, Other) and (told := compacted(block)):
        return f"[{block.type}: {told}]"
    return f"[{block.type}: {_short(msgspec.json.encode(value).decode())}]"


def compacted(block: Other) -> str:
    """The summary that a `compaction` puts in place of the messages before it; "" where that failed."""
    if block.type != "compaction":
        return ""
    try:
        return msgspec.json.decode(block.raw, type=_Compaction).content or ""
    except UNREADABLE:
        return ""


def join(blocks: tuple[Block, ...]) -> str:
    """The text of blocks inside another block."""
    if len(blocks) == 1:
        return words(blocks[0])
    return "\n".join([text for text in map(words, blocks) if text])


def words(block: Block) -> str:
    """Any block; "" for one that has no words, such as an image."""
    match block:
        case Text(text=text):
            return text
        case Document(kind="text" | "content"):
            return document(block)
        case SearchResult():
            return search_result(block)
        case ToolReference():
            return reference(block)
        case ServerToolUse() | ServerToolResult() | Other():
            return summary(block)
        case _:
            return ""


def _short(text: str) -> str:
    return text if len(text) <= LIMIT else f"{text[:LIMIT]}... ({len(text) - LIMIT} more characters were left out)"


def _readable(value: object) -> object:
    if isinstance(value, dict):
        # Of a file only the bytes are `data`; of a page that was fetched as text it is what the page says.
        left = (*OPAQUE, "type", "tool_use_id", *(("data",) if value.get("type") != "text" else ()))
        return {key: _readable(item) for key, item in value.items() if key not in left}
    if isinstance(value, list):
        return [_readable(item) for item in value]
    return value
