"""Native web search as the Messages API shows it: a call and its result, each one whole block, and citations."""

import hashlib
from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct

from translation.events import Citation


class _Source(Struct, frozen=True):
    url: str = ""
    title: str | None = None


class _Action(Struct, frozen=True):
    type: str = ""
    query: str | None = None
    queries: tuple[str, ...] | None = None
    url: str | None = None
    sources: tuple[_Source, ...] | None = None


class _Call(Struct, frozen=True):
    id: str | None = None
    status: str | None = None
    action: _Action | None = None


class _Annotation(Struct, frozen=True):
    type: str = ""
    url: str = ""
    title: str | None = None


def citations(annotations: Iterable[Raw]) -> list[Citation]:
    """URL citations; the API's own also quotes the source, which this one does not tell."""
    found = [msgspec.json.decode(raw, type=_Annotation) for raw in annotations]
    return [
        Citation(
            msgspec.json.encode(
                {
                    "type": "web_search_result_location",
                    "url": each.url,
                    "title": each.title,
                    "encrypted_index": "",
                    "cited_text": "",
                }
            )
        )
        for each in found
        if each.type == "url_citation"
    ]


def search_blocks(raw: Raw, response_id: str, ordinal: int) -> tuple[int, list[bytes]]:
    """How many searches the item stands for, and its two blocks. An opened page shows as a search for its address."""
    call = msgspec.json.decode(raw, type=_Call)
    action = call.action or _Action()
    # Our own id: the upstream's is not in the API's alphabet everywhere, and must not repeat within a conversation.
    digest = hashlib.sha256(f"{response_id}/{ordinal}/{call.id or ''}".encode()).hexdigest()
    use_id = f"srvtoolu_{digest[:24]}"
    query = action.query or ", ".join(action.queries or ()) or action.url or ""
    use = {"type": "server_tool_use", "id": use_id, "name": "web_search", "input": {"query": query}}
    result = {"type": "web_search_tool_result", "tool_use_id": use_id, "content": _results(call.status, action)}
    return int(action.type in ("", "search")), [msgspec.json.encode(use), msgspec.json.encode(result)]


def _results(status: str | None, action: _Action) -> object:
    if status == "failed":
        return {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    sources = action.sources or ((_Source(action.url),) if action.url else ())
    return [
        {
            "type": "web_search_result",
            "url": source.url,
            "title": source.title or source.url,
            "encrypted_content": "",
            "page_age": None,
        }
        for source in sources
    ]
