"""Google's own search as the Messages API shows it: a call and its result, each one whole block, and citations."""

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from translation.events import Citation
from translation.providers.gemini_wire import Grounding, Web
from translation.values import Tool


def searches(tool: Tool) -> bool:
    """Whether the client's tool is what this one stands for."""
    return tool.type.startswith("web_search")


def joined(known: Grounding, told: Grounding) -> Grounding:
    """What one chunk leaves out, another one has told."""
    return Grounding(
        told.web_search_queries or known.web_search_queries,
        told.grounding_chunks or known.grounding_chunks,
        told.grounding_supports or known.grounding_supports,
    )


def citations(found: Grounding) -> list[Citation]:
    """The pages that the answer goes back to, each once; the API's own also quotes them, which Google does not."""
    return [
        Citation(
            msgspec.json.encode(
                {
                    "type": "web_search_result_location",
                    "url": page.uri,
                    "title": page.title,
                    "encrypted_index": "",
                    "cited_text": "",
                }
            )
        )
        for page in _cited(found)
    ]


def search_blocks(found: Grounding, response_id: str) -> list[bytes]:
    id_ = "srvtoolu_" + sha256(response_id.encode()).hexdigest()[:24]
    query = "; ".join(found.web_search_queries)
    use = {"type": "server_tool_use", "id": id_, "name": "web_search", "input": {"query": query}}
    pages = [
        {
            "type": "web_search_result",
            "url": source.web.uri,
            "title": source.web.title,
            "encrypted_content": "",
            "page_age": None,
        }
        for source in found.grounding_chunks
        if source.web is not None
    ]
    result = {"type": "web_search_tool_result", "tool_use_id": id_, "content": pages}
    return [msgspec.json.encode(use), msgspec.json.encode(result)]


def _cited(found: Grounding) -> Iterator[Web]:
    chunks = found.grounding_chunks
    indices = (index for support in found.grounding_supports for index in support.grounding_chunk_indices)
    for index in dict.fromkeys(indices):
        page = chunks[index].web if 0 <= index < len(chunks) else None
        if page is not None:
            yield page
