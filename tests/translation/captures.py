"""Captured upstream answers: the test language of the decoders.

A case is a directory `tests/captures/<provider>/<case>/` with
    upstream.sse or upstream.json    the upstream's bytes
    request.json                     the client's request (Messages API)
    expected.json                    the events, as `describe` writes them
`check` runs a case whole and byte by byte, `check_cut` at given points. Adjacent deltas are joined before they are
compared, since a decoder may emit text as early as it likes. `RECORD_CAPTURES=1` rewrites expected.json: read the
difference.
"""

import os
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import msgspec
from hypothesis import strategies as st

from translation.adapter import Adapter, Target
from translation.events import Event, Failed, Frame, TextDelta, ThinkingDelta, ToolArguments
from translation.providers.profile import Profile
from translation.providers.profiles import PROFILES
from translation.values import Message, Request, Text, ThinkingConfig, Tool, ToolChoice

CAPTURES = Path(__file__).parent.parent / "captures"
CONTENT_TYPES = {".sse": "text/event-stream", ".json": "application/json"}


class Case(msgspec.Struct, frozen=True):
    provider: str
    name: str
    upstream: bytes
    content_type: str
    request: Request
    folder: Path

    @property
    def id(self) -> str:
        return f"{self.provider}/{self.name}"

    @property
    def profile(self) -> Profile:
        return PROFILES[self.provider]

    @property
    def target(self) -> Target:
        return Target(upstream=self.provider, model=self.request.model, profile=self.profile)


def cases(*providers: str) -> list[Case]:
    """Every case of these providers, for `pytest.mark.parametrize(..., ids=lambda case: case.id)`."""
    return [load(folder) for provider in providers for folder in sorted((CAPTURES / provider).iterdir())]


def load(folder: Path) -> Case:
    upstream = next(path for path in sorted(folder.iterdir()) if path.stem == "upstream")
    return Case(
        provider=folder.parent.name,
        name=folder.name,
        upstream=upstream.read_bytes(),
        content_type=CONTENT_TYPES[upstream.suffix],
        request=parse((folder / "request.json").read_bytes()),
        folder=folder,
    )


def check(adapter: Adapter, case: Case, target: Target | None = None) -> None:
    """The case gives its expected events, whole and byte by byte."""
    whole = describe(decode(adapter, case, [case.upstream], target))
    path = case.folder / "expected.json"
    if os.environ.get("RECORD_CAPTURES"):
        path.write_bytes(msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n")
    assert whole == msgspec.json.decode(path.read_bytes())
    assert describe(decode(adapter, case, [bytes([byte]) for byte in case.upstream], target)) == whole


def check_cut(adapter: Adapter, case: Case, points: Iterable[int], target: Target | None = None) -> None:
    """The case gives the same events, cut at these points."""
    expected = msgspec.json.decode((case.folder / "expected.json").read_bytes())
    assert describe(decode(adapter, case, cut(case.upstream, points), target)) == expected


def points(case: Case) -> st.SearchStrategy[list[int]]:
    """Random places to cut a case at."""
    return st.lists(st.integers(0, len(case.upstream)), max_size=12)


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted({min(place, len(data)) for place in places}), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def decode(adapter: Adapter, case: Case, chunks: Iterable[bytes], target: Target | None = None) -> list[Event]:
    target = target or case.target
    sent = adapter.build(case.request, target)
    decoder = adapter.decoder(case.request, target, sent, case.content_type)
    events: list[Event] = []
    for chunk in chunks:
        events += decoder.feed(chunk)
    return events + decoder.close()


def describe(events: Iterable[Event]) -> list[dict[str, object]]:
    """Events as plain JSON: adjacent deltas joined, defaults left out, state readable; relayed frames not shown."""
    return [_described(event) for event in joined(event for event in events if not isinstance(event, Frame))]


def joined(events: Iterable[Event]) -> list[Event]:
    out: list[Event] = []
    for event in events:
        last = out[-1] if out else None
        match event, last:
            case TextDelta(), TextDelta():
                out[-1] = TextDelta(last.text + event.text)
            case ThinkingDelta(), ThinkingDelta():
                out[-1] = ThinkingDelta(last.text + event.text)
            case ToolArguments(), ToolArguments() if event.call == last.call:
                out[-1] = ToolArguments(event.call, last.fragment + event.fragment)
            case _:
                out.append(event)
    return out


def _described(event: Event) -> dict[str, object]:
    kind = type(event).__name__
    if isinstance(event, Failed):
        return {"type": kind, "error": type(event.error).__name__, "message": event.error.message}
    return {"type": kind, **_fields(event)}


def _fields(value: msgspec.Struct) -> dict[str, object]:
    out: dict[str, object] = {}
    for field in msgspec.structs.fields(value):
        item = getattr(value, field.name)
        if item == field.default:
            continue
        if isinstance(item, msgspec.Struct):
            item = _fields(item)
        elif isinstance(item, bytes):
            item = msgspec.json.decode(item)
        out[field.name] = list(item) if isinstance(item, tuple) else item
    return out


# ---------------------------------------------------------------- request.json


class _Tool(msgspec.Struct):
    name: str
    description: str = ""
    input_schema: msgspec.Raw = msgspec.Raw(b"")
    type: str = "custom"
    eager_input_streaming: bool = False


class _Message(msgspec.Struct):
    role: str
    content: str


class _Body(msgspec.Struct):
    """The part of a request that a decoder may look at. Captures hold plain text messages only."""

    model: str
    messages: list[_Message]
    max_tokens: int = 1024
    stream: bool = True
    system: str = ""
    tools: list[_Tool] = []
    tool_choice: ToolChoice | None = None
    thinking: ThinkingConfig | None = None
    stop_sequences: tuple[str, ...] = ()
    output_schema: msgspec.Raw = msgspec.Raw(b"")


def parse(body: bytes) -> Request:
    given = msgspec.json.decode(body, type=_Body)
    return Request(
        model=given.model,
        messages=tuple(
            Message("assistant" if m.role == "assistant" else "user", (Text(m.content),)) for m in given.messages
        ),
        max_tokens=given.max_tokens,
        stream=given.stream,
        system=(Text(given.system),) if given.system else (),
        tools=tuple(
            Tool(tool.name, tool.description, bytes(tool.input_schema), tool.type, eager=tool.eager_input_streaming)
            for tool in given.tools
        ),
        tool_choice=given.tool_choice,
        thinking=given.thinking,
        stop_sequences=given.stop_sequences,
        output_schema=bytes(given.output_schema),
    )
