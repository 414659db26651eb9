"""Web search where the model has none, and the citations of one that searches by itself.

A request that can do nothing but search (Claude Code sends such ones), or that has to, is told so in the API's own
blocks at the beginning of its answer, and the turn goes on with what the model knows.
"""

from hashlib import sha256

import msgspec
from msgspec import Raw, Struct

from translation.adapter import Decoder, UpstreamRequest
from translation.events import Citation, Event, Failed, WholeBlock
from translation.typed_tools import kind
from translation.unreadable import UNREADABLE
from translation.values import Request, Tool

SEARCH = "web_search_"
CITED = {"type": "web_search_result_location", "url": "", "title": None, "encrypted_index": "", "cited_text": ""}


class _Page(Struct, frozen=True):
    url: str
    title: str | None = None


class _Annotation(Struct, frozen=True):
    """Gateways that pass on what the Responses API says have the page's fields here."""

    type: str = ""
    url_citation: _Page | None = None
    url: str | None = None
    title: str | None = None

    @property
    def page(self) -> _Page | None:
        return self.url_citation or (_Page(self.url, self.title) if self.url else None)


_decode = msgspec.json.Decoder(list[_Annotation] | None).decode


def citations(annotations: list[Raw]) -> list[Citation]:
    """The pages that an answer names, each once; the API's own also quotes them, which this one does not."""
    pages = dict.fromkeys(page for raw in annotations for page in _pages(raw))
    return [Citation(msgspec.json.encode(CITED | {"url": page.url, "title": page.title})) for page in pages]


def _pages(raw: Raw) -> list[_Page]:
    try:
        found = _decode(raw) or []
    except UNREADABLE:
        return []
    return [page for each in found if each.type == "url_citation" and (page := each.page) is not None]


def is_search(tool: Tool) -> bool:
    return tool.type.startswith(SEARCH)


def told(decoder: Decoder, request: Request, sent: UpstreamRequest) -> Decoder:
    """The decoder itself, or one whose answer begins with the search that could not be made."""
    if "server" not in kind.all(request.tools):
        return decoder
    searches = [tool for tool in request.tools if is_search(tool)]
    if not searches or not (_has_to(request, searches) or _can_only(request)):
        return decoder
    id_ = "srvtoolu_" + sha256(sent.body).hexdigest()[:24]
    use = {"type": "server_tool_use", "id": id_, "name": searches[0].name, "input": {}}
    content = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    result = {"type": "web_search_tool_result", "tool_use_id": id_, "content": content}
    return Searchless(decoder, [WholeBlock(msgspec.json.encode(use)), WholeBlock(msgspec.json.encode(result))])


def _has_to(request: Request, searches: list[Tool]) -> bool:
    choice = request.tool_choice
    return choice is not None and choice.kind == "tool" and choice.name in {tool.name for tool in searches}


def _can_only(request: Request) -> bool:
    return all(kind(tool) == "server" for tool in request.tools)


class Searchless:
    """Puts blocks before the first event of an answer, unless that is its failure."""

    def __init__(self, decoder: Decoder, blocks: list[WholeBlock]) -> None:
        self._decoder = decoder
        self._blocks = blocks

    def feed(self, chunk: bytes) -> list[Event]:
        return self._begun(self._decoder.feed(chunk))

    def close(self) -> list[Event]:
        return self._begun(self._decoder.close())

    def _begun(self, events: list[Event]) -> list[Event]:
        if not events or isinstance(events[0], Failed):
            return events
        blocks, self._blocks = self._blocks, []
        return [*blocks, *events]
