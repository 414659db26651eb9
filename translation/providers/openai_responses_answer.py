"""What the events of a Responses answer mean, however they came."""

from collections.abc import Callable, Mapping

from msgspec import Raw
from msgspec.structs import replace

from translation.arguments import PLACEHOLDERS
from translation.errors import UpstreamFailed, UpstreamProtocolError
from translation.events import (
    Event,
    Failed,
    Finished,
    Reason,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ToolArguments,
    ToolDropped,
    ToolEnded,
    ToolStarted,
    WholeBlock,
)
from translation.names import LEGAL, meant
from translation.providers.openai_responses_errors import POLICIES, in_band
from translation.providers.openai_responses_items import Item, Items
from translation.providers.openai_responses_search import citations, search_blocks
from translation.providers.openai_responses_state import PHASES, State, TextState, pack, replayable
from translation.providers.openai_responses_wire import (
    INCOMPLETE,
    Cut,
    Frame,
    OutputItem,
    Response,
    exclusive,
    item_of,
    response_of,
    written,
)
from translation.refusals import Complaint, read
from translation.unicode import Halves
from translation.values import Tool

ENDED = ("completed", "incomplete", "failed", "cancelled")  # else the event tells: `in_progress`, `requires_action`
ALL = {f"response.{status}": status for status in ENDED} | {"response.done": "completed"}
NAMELESS = "the upstream sent a function_call without a name"
FILTERED = Cut(reason="content_filter")
SILENT = Complaint("the upstream's response failed without a reason")


class ResponsesAnswer:
    """`names` maps the upstream's names of tools to the client's; `tools` are those that were offered."""

    def __init__(self, names: Mapping[str, str], tools: tuple[Tool, ...] = ()) -> None:
        self._halves = Halves()
        self._names = names
        self._tools = tools
        self._items = Items()
        self._calls = 0
        self._searches = 0
        self._response_id = ""
        self._reasoning: list[Raw] = []  # waits for the item that it belongs to
        self._texts: list[TextState] = []  # since the last call
        self._speaker: Item | None = None  # the last message that said something
        self._refusal: list[str] = []
        self._notes: list[str] = []
        self._seen: set[object] = set()  # items that go back: a request that holds one twice is refused
        self._ended = False

    # ------------------------------------------------------------ deltas

    def _text(self, frame: Frame, out: list[Event]) -> None:
        if frame.delta:
            self._say(self._items.find(frame, frame.item_id or "", "message"), frame.delta, out)

    def _say(self, item: Item, text: str, out: list[Event]) -> None:
        if not text:
            return
        if self._speaker is not item:
            if self._speaker is not None and self._speaker.done:
                out.append(TextEnded())
            self._speaker = item
        item.length += len(text)
        item.pieces.append(text)
        out.append(TextDelta(text))

    def _annotation(self, frame: Frame, out: list[Event]) -> None:
        self._items.find(frame, frame.item_id or "", "message").cited = True
        out.extend(citations([frame.annotation]))

    def _refused(self, frame: Frame, out: list[Event]) -> None:
        self._items.find(frame, frame.item_id or "", "message").length += 1
        self._refusal.append(frame.delta or "")

    def _summary(self, frame: Frame, out: list[Event]) -> None:
        self._think(frame, "summary", frame.delta or "", out)

    def _thought(self, frame: Frame, out: list[Event]) -> None:
        self._think(frame, "text", frame.delta or "", out)

    def _once_more(self, frame: Frame, out: list[Event]) -> None:
        """The whole of what came in pieces; of some servers it is all that comes."""
        kind, delta = WHOLES[frame.type]
        item, text = self._items.silent(frame, kind), frame.text or frame.refusal
        if text and item is not None:
            item.gap = item.length > 0
            delta(self, replace(frame, delta=text), out)
            item.whole = item.length
            return
        item = self._items.known(frame, frame.item_id or "", kind)
        if item is not None:
            rest = item.lacking(frame.text or "", item.part)
            if rest:
                delta(self, replace(frame, delta=rest), out)
            item.part = len(item.pieces)

    def _summary_part(self, frame: Frame, out: list[Event]) -> None:
        item = self._items.find(frame, frame.item_id or "", "reasoning")
        item.gap, item.part = item.length > 0, len(item.pieces)

    def _think(self, frame: Frame, source: str, text: str, out: list[Event]) -> None:
        item = self._items.find(frame, frame.item_id or "", "reasoning")
        item.source = item.source or source
        if text and item.source == source:
            out.append(ThinkingDelta(item.thought(text)))

    def _fragment(self, frame: Frame, out: list[Event]) -> None:
        item = self._items.find(frame, frame.item_id or "", "function_call")
        shown = item.arguments.feed(frame.delta or "")
        if shown and item.call >= 0:
            out.append(ToolArguments(item.call, shown))

    def _arguments(self, frame: Frame, out: list[Event]) -> None:
        self._items.find(frame, frame.item_id or "", "function_call").final = written(frame.arguments)

    # ------------------------------------------------------------ items

    def _created(self, frame: Frame, out: list[Event]) -> None:
        self._response_id = response_of(frame.response or b"{}").id or ""

    def _added(self, frame: Frame, out: list[Event]) -> None:
        item = item_of(frame.item)
        opened = self._items.announced(frame, item)
        if item.type != "function_call" or not item.name:
            return
        if opened.call >= 0:
            return  # told twice
        if (given := written(item.arguments)) not in PLACEHOLDERS:
            opened.final = opened.final or given  # by the book there are none yet; of some servers nothing else comes
        self._start(opened, item, out)

    def _start(self, opened: Item, item: OutputItem, out: list[Event]) -> None:
        if not item.name:
            raise UpstreamProtocolError(NAMELESS)
        opened.call, opened.id, opened.call_id = self._calls, item.id or opened.id, item.call_id or item.id or ""
        self._calls += 1
        name = item.name if LEGAL.fullmatch(item.name) else self._meant(item.name)
        out.append(ToolStarted(opened.call, self._names.get(name, name), opened.call_id, name))

    def _meant(self, name: str) -> str:
        """Servers of gpt-oss leave pieces of its format in names."""
        own = {tool.name for tool in self._tools}
        found = "" if name in own else meant(name, (own - set(self._names.values())) | self._names.keys())
        if found:
            self._notes.append(f"{found}: the upstream called it {name!r}")
        return found or name

    def _done(self, frame: Frame, out: list[Event]) -> None:
        item = item_of(frame.item)
        opened = self._items.find(frame, item.id or "", item.type, item.call_id or "")
        opened.done = True
        self._item(opened, item, frame.item, out)

    def _item(self, opened: Item, item: OutputItem, raw: Raw, out: list[Event]) -> None:
        match item.type:
            case "message":
                self._message(opened, item, out)
            case "reasoning":
                self._reasoned(opened, item, raw, out)
            case "function_call":
                if opened.call < 0:
                    self._start(opened, item, out)
                opened.final = written(item.arguments) or opened.final
                if item.status == "incomplete" or not opened.is_cut:
                    self._end_call(opened, item.status or "completed", out)
            case "web_search_call":
                searches, blocks = search_blocks(raw, self._response_id, len(self._items.begun))
                self._searches += searches
                out.extend(WholeBlock(block) for block in blocks)
                if self._reasoning:  # which is refused without what it led to
                    self._keep(item, raw)
            case other:
                self._notes.append(f"the upstream's output item {other!r} has no counterpart and was left out")

    def _message(self, opened: Item, item: OutputItem, out: list[Event]) -> None:
        parts = item.content or ()
        length = item.length
        if not opened.length:
            self._refusal += [part.refusal for part in parts if part.refusal]
            self._say(opened, item.text, out)
        else:
            self._say(opened, opened.lacking(item.text), out)
        if not opened.cited:
            out.extend(event for part in parts for event in citations(part.annotations or ()))
        if length:
            id_ = item.id if item.id and self._new(item.id) else ""
            phase = item.phase if item.phase in PHASES else ""
            self._texts.append(TextState(length, id_, phase, tuple(self._reasoning)))
            self._reasoning = []

    def _reasoned(self, opened: Item, item: OutputItem, raw: Raw, out: list[Event]) -> None:
        texts = [part.text for part in (item.summary or item.content or ()) if part.text]
        told = "\n\n".join(texts)
        rest = opened.lacking(told) if opened.length else told
        out.extend([ThinkingDelta(rest)] if rest else [])
        self._keep(item, raw)

    def _keep(self, item: OutputItem, raw: Raw) -> None:
        kept = replayable(raw)
        if kept is not None and self._new(item.id or bytes(raw)):
            self._reasoning.append(kept)

    def _new(self, item: object) -> bool:
        known = item in self._seen
        self._seen.add(item)
        return not known

    def _end_call(self, opened: Item, status: str, out: list[Event]) -> None:
        call, opened.call = opened.call, -1
        if status == "incomplete":
            out.append(ToolDropped(call))
            return
        arguments, mended = opened.close()
        if mended:
            self._notes.append(mended)
        state = State(opened.id if self._new(opened.id) else "", tuple(self._reasoning), tuple(self._texts))
        self._reasoning, self._texts = [], []
        out.append(ToolEnded(call, arguments, pack(state)))

    # ------------------------------------------------------------ the end

    def _completed(self, kind: str, told: Raw | bytes, out: list[Event]) -> None:
        response = response_of(told)
        self._conclude(response, response.status if response.status in ENDED else ALL[kind], out)

    def _rest(self, response: Response, status: str, out: list[Event]) -> None:
        """Some gateways tell all of it at the end, or all of one kind, or the last of a kind, or only what is done."""
        raws = response.output or ()
        output = list(map(item_of, raws))
        if self._items.told_all(output):
            return
        untold = self._items.untold(output)
        for index, (item, raw) in enumerate(zip(output, raws, strict=True)):
            opened = self._items.unended(item)
            if index in untold:
                opened = self._items.begin(Frame(output_index=index), item.id or "", item.type)
            elif item.type == "function_call" and status != "completed":
                continue  # the token limit may have cut it off
            if opened is not None:
                opened.done = True
                self._item(opened, item, raw, out)

    def _conclude(self, response: Response, status: str, out: list[Event]) -> None:
        self._rest(response, status, out)
        if status == "failed" or response.failed:
            complaint = read(b'{"error":%b}' % bytes(response.error)) or SILENT
            if complaint.code in POLICIES:
                self._refusal.append(complaint.message)
                self._finish(replace(response, incomplete_details=FILTERED), "incomplete", out)
            else:
                self._end(Failed(in_band(complaint)), out)
        elif status in ("completed", "incomplete"):
            self._finish(response, status, out)
        else:
            self._end(Failed(UpstreamFailed(f"the upstream ended the response as {status!r}")), out)

    def _finish(self, response: Response, status: str, out: list[Event]) -> None:
        if self._halves.open and self._calls:
            raise UpstreamProtocolError("a character of a tool call is not whole")
        reason: Reason = "refusal" if self._refusal else "tool_use" if self._calls else "stop"
        if status == "incomplete":
            cut = (response.incomplete_details or Cut()).reason or ""
            if cut not in INCOMPLETE:
                raise UpstreamProtocolError(f"unknown incomplete_details.reason {cut!r}")
            reason = INCOMPLETE[cut]
        for opened in self._items.begun:
            if opened.call >= 0:
                self._end_call(opened, status, out)
            elif opened.kind == "function_call" and status == "completed" and not self._calls:
                raise UpstreamProtocolError(NAMELESS)
        usage, state = exclusive(response.usage, self._searches), pack(State(texts=tuple(self._texts)))
        explanation, notes = "".join(self._refusal), tuple(self._notes)
        self._end(Finished(reason, usage, "", explanation, state, response.model or "", notes), out)

    def _end(self, event: Finished | Failed, out: list[Event]) -> None:
        self._ended = True
        out.append(event)


Handler = Callable[[ResponsesAnswer, Frame, list[Event]], None]
WHOLES: dict[str, tuple[str, Handler]] = {
    "response.output_text.done": ("message", ResponsesAnswer._text),
    "response.refusal.done": ("message", ResponsesAnswer._refused),
    "response.reasoning_summary_text.done": ("reasoning", ResponsesAnswer._summary),
    "response.reasoning_text.done": ("reasoning", ResponsesAnswer._thought),
}
HANDLERS: dict[str, Handler] = {
    "response.output_text.delta": ResponsesAnswer._text,
    "response.function_call_arguments.delta": ResponsesAnswer._fragment,
    "response.reasoning_summary_text.delta": ResponsesAnswer._summary,
    "response.reasoning_text.delta": ResponsesAnswer._thought,
    "response.reasoning_summary_part.added": ResponsesAnswer._summary_part,
    "response.output_text.annotation.added": ResponsesAnswer._annotation,
    "response.refusal.delta": ResponsesAnswer._refused,
    "response.function_call_arguments.done": ResponsesAnswer._arguments,
    "response.created": ResponsesAnswer._created,
    "response.output_item.added": ResponsesAnswer._added,
    "response.output_item.done": ResponsesAnswer._done,
    **dict.fromkeys(WHOLES, ResponsesAnswer._once_more),
}
KNOWN = {*HANDLERS, *ALL}
