"""Fields of a request that only Anthropic has, toward every other upstream: refused where an answer that ignores them
would be a wrong one, else recorded on the turn. What does not matter to an answer (`cache_control`) is not mentioned.

docs/fields.md has the whole table; the dialects themselves deal with what they have a word for.
"""

from collections.abc import Iterator
from itertools import chain
from operator import attrgetter, itemgetter

import msgspec
from msgspec import Struct

from translation import plain
from translation.client.paths import decode
from translation.errors import InvalidRequest
from translation.providers.profile import Profile
from translation.unicode import fingerprint
from translation.values import CALLERS, Field, Note, Request, ThinkingConfig, Tool

# What the field says when it asks for nothing.
USUAL: dict[str, tuple[bytes, ...]] = {
    "service_tier": (b'"auto"',),
    "speed": (b'"standard"',),
    "inference_geo": (b'"global"', b'"not_available"'),
    "fallbacks": (b"[]",),
    "safeguards": (b"[]",),
}
SILENT = ("cache_control",)  # nearly every provider caches by itself
REFUSED = {
    "inference_geo": "says nothing about where it runs, so the region cannot be promised",
    "compaction": "cannot make a signed summary of a conversation",
}
OURS = ("clear_thinking_",)  # an edit of the context that other models see nothing of
DISPLAYS = ("", "summarized", "omitted")

_TEXT, _OPTIONS = attrgetter("text"), attrgetter("options")
_BEGINNING = itemgetter(slice(100_000))  # of a text: enough to tell it from others


class _Edit(Struct):
    type: str = ""


class _Management(Struct):
    edits: list[_Edit] = []


def unheard(request: Request, profile: Profile) -> tuple[Note, ...]:
    """What this upstream is not told. Raises for a field that it would be wrong to go on without."""
    lost = [*_fields(request, profile)] if request.others else []
    if request.thinking is not None:
        lost += _thinking(request.thinking)
    if any(map(CALLERS, request.tools)):
        lost += _tools(request.tools)
    if any(map(_OPTIONS, request.messages)):
        lost += [f"messages: {name} of a message" for name in _message_options(request)]
    if not lost:
        return ()
    return tuple(Note("degradation", "field-ignored", f"{what} is not told to {profile.title}") for what in lost)


def standard_only(request: Request) -> bool:
    return any(field.name == "service_tier" and field.value == b'"standard_only"' for field in request.others)


def answer_tokens(request: Request, most: int, notes: list[Note], least: int = 1) -> int:
    """`max_tokens` as others take it. `most` is 0 when it is not known; a 0 of the client's warms Anthropic's cache."""
    if not most or request.max_tokens <= most:
        return max(request.max_tokens, least)
    what = f"max_tokens: {request.max_tokens} became {most}, the most that the model answers"
    notes.append(Note("degradation", "max-tokens-limited", what))
    return most


def taken_temperature(given: float, profile: Profile, notes: list[Note]) -> float:
    """As warm as the provider takes it: chat clients have OpenAI's scale, which goes to 2."""
    hottest = profile.hottest
    if not hottest or given <= hottest:
        return given
    what = f"temperature: {given} became {hottest}, the most that {profile.title} takes"
    notes.append(Note("degradation", "temperature-limited", what))
    return hottest


def cache_key(request: Request) -> str:
    """What stays the same in every turn of a conversation, and differs between conversations."""
    said = (request.user_id, *map(_TEXT, request.system), plain.join(request.messages[0].blocks))
    return fingerprint("\n".join(map(_BEGINNING, said)))


def _fields(request: Request, profile: Profile) -> Iterator[str]:
    for field in request.others:
        if field.name in SILENT or field.value in USUAL.get(field.name, ()):
            continue
        if field.name in REFUSED:
            raise InvalidRequest(f"{field.name}: {profile.title} {REFUSED[field.name]}")
        if field.name == "context_management":
            yield from _edits(field)
        elif field.name != "service_tier" or not (profile.service_tier and standard_only(request)):
            yield field.name[:100]


def _edits(field: Field) -> Iterator[str]:
    try:
        edits = msgspec.json.decode(field.value, type=_Management).edits
    except msgspec.ValidationError:
        yield field.name
        return
    yield from (f"context_management: {edit.type[:100]}" for edit in edits if not edit.type.startswith(OURS))


def _thinking(thinking: ThinkingConfig) -> Iterator[str]:
    if thinking.display not in DISPLAYS:
        yield f"thinking.display: {thinking.display[:100]}"
    if thinking.kind == "between_tools":
        yield "thinking.type: between_tools"


def _tools(tools: tuple[Tool, ...]) -> Iterator[str]:
    for tool in tools:
        if tool.callers and "direct" not in tool.callers:
            yield f"tools: allowed_callers of {tool.name}, which the model may call itself,"


def _message_options(request: Request) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(map(_OPTIONS, request.messages))))


# ---------------------------------------------------------------- the provider's own web search


class Search(Struct, frozen=True):
    """How a client wants to search."""

    max_uses: int | None = None
    allowed_domains: tuple[str, ...] | None = None
    blocked_domains: tuple[str, ...] | None = None
    user_location: dict[str, str | None] | None = None


_SEARCH = msgspec.json.Decoder(Search)


def search(tool: Tool, profile: Profile) -> tuple[Search, tuple[Note, ...]]:
    """What of it the provider's search can be told, and what it cannot."""
    given = decode(_SEARCH, tool.raw or b"{}", f"tools.{tool.name}")
    lost = [name for name in Search.__struct_fields__ if getattr(given, name) and name not in profile.search_options]
    notes = tuple(Note("degradation", "search-limited", f"tools: {profile.title} takes no {name}") for name in lost)
    return msgspec.structs.replace(given, **dict.fromkeys(lost)), notes
