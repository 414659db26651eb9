"""Answers of the Responses API as a stream of typed events."""

from collections.abc import Callable, Mapping

from msgspec import Raw
from msgspec.structs import replace

from translation.arguments import Arguments
from translation.errors import TruncatedStream, UpstreamFailed, UpstreamProtocolError
from translation.events import (
    Event,
    Failed,
    Finished,
    Reason,
    TextDelta,
    ThinkingDelta,
    ToolArguments,
    ToolDropped,
    ToolEnded,
    ToolStarted,
    WholeBlock,
)
from translation.providers.openai_responses_errors import in_band, told
from translation.providers.openai_responses_search import citations, search_blocks
from translation.providers.openai_responses_state import PHASES, State, TextState, pack, replayable
from translation.providers.openai_responses_wire import (
    FRAME,
    ITEM,
    RESPONSE,
    Details,
    Frame,
    OutputItem,
    Response,
    exclusive,
)
from translation.refusals import Complaint, read
from translation.sse import SSEDecoder
from translation.unicode import check_utf8
from translation.unreadable import UNREADABLE

SILENT = Complaint("the upstream's response failed without a reason")
INCOMPLETE: dict[str, Reason] = {"max_output_tokens": "length", "max_tokens": "length", "content_filter": "refusal"}


class _Open:
    """An output item that has begun."""

    __slots__ = ("arguments", "call", "cited", "final", "id", "length", "source")

    def __init__(self, item_id: str) -> None:
        self.id = item_id
        self.call = -1  # the call's number once it has a name
        self.arguments = Arguments()
        self.final = ""  # the arguments as the upstream says they are
        self.length = 0  # of the text or reasoning shown
        self.cited = False  # its sources came as they were found
        self.source = ""  # a summary and the reasoning itself may both come: the first one is shown


class ResponsesStream:
    """`names` maps the upstream's names of tools to the client's."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._sse = SSEDecoder()
        self._names = names
        self._items: dict[int | str, _Open] = {}
        self._calls = 0
        self._searches = 0
        self._response_id = ""
        self._reasoning: list[Raw] = []  # waits for the item that it belongs to
        self._texts: list[TextState] = []  # since the last call
        self._refusal: list[str] = []
        self._notes: list[str] = []
        self._seen: set[object] = set()  # items that go back: a request that holds one twice is refused
        self._ended = False

    def feed(self, chunk: bytes) -> list[Event]:
        return [] if self._ended else self._guard(lambda: self._sse.feed(chunk))

    def close(self) -> list[Event]:
        if self._ended:
            return []
        return self._guard(self._sse.close, Failed(TruncatedStream("the upstream closed before response.completed")))

    def _guard(self, read: Callable[[], list[tuple[str, bytes]]], unfinished: Failed | None = None) -> list[Event]:
        out: list[Event] = []
        try:
            for _, data in read():
                if not self._ended:
                    self._frame(data, out)
        except UpstreamProtocolError as error:
            self._end(Failed(error), out)
        except UNREADABLE as error:
            self._end(Failed(UpstreamProtocolError(f"the upstream sent what is not its protocol: {error}")), out)
        if unfinished is not None and not self._ended:
            self._end(unfinished, out)
        return out

    def _frame(self, data: bytes, out: list[Event]) -> None:
        if data.strip() == b"[DONE]":
            self._finish(Response(), "", out)
            return
        check_utf8(data)
        frame = FRAME.decode(data)
        if frame.type == "error":
            self._error(data, out)
            return
        handler = HANDLERS.get(frame.type)
        if handler is not None:
            handler(self, frame, out)
        elif bytes(frame.error) not in (b"", b"null"):
            self._error(data, out)

    def _open(self, frame: Frame, item_id: str) -> _Open:
        # Some servers change the item's id between events, others leave the index out.
        key = frame.output_index if frame.output_index is not None else item_id
        found = self._items.get(key)
        if found is None:
            found = self._items[key] = _Open(item_id)
        return found

    # ------------------------------------------------------------ deltas

    def _text(self, frame: Frame, out: list[Event]) -> None:
        if frame.delta:
            self._open(frame, frame.item_id or "").length += len(frame.delta)
            out.append(TextDelta(frame.delta))

    def _annotation(self, frame: Frame, out: list[Event]) -> None:
        self._open(frame, frame.item_id or "").cited = True
        out.extend(citations([frame.annotation]))

    def _refused(self, frame: Frame, out: list[Event]) -> None:
        self._open(frame, frame.item_id or "").length += 1
        self._refusal.append(frame.delta or "")

    def _summary(self, frame: Frame, out: list[Event]) -> None:
        self._think(frame, "summary", frame.delta or "", out)

    def _thought(self, frame: Frame, out: list[Event]) -> None:
        self._think(frame, "text", frame.delta or "", out)

    def _summary_part(self, frame: Frame, out: list[Event]) -> None:
        if frame.summary_index > 0:
            self._think(frame, "summary", "\n\n", out)

    def _think(self, frame: Frame, source: str, text: str, out: list[Event]) -> None:
        item = self._open(frame, frame.item_id or "")
        item.source = item.source or source
        if text and item.source == source:
            item.length += len(text)
            out.append(ThinkingDelta(text))

    def _fragment(self, frame: Frame, out: list[Event]) -> None:
        item = self._open(frame, frame.item_id or "")
        shown = item.arguments.feed(frame.delta or "")
        if shown and item.call >= 0:
            out.append(ToolArguments(item.call, shown))

    def _arguments(self, frame: Frame, out: list[Event]) -> None:
        self._open(frame, frame.item_id or "").final = frame.arguments or ""

    # ------------------------------------------------------------ items

    def _created(self, frame: Frame, out: list[Event]) -> None:
        self._response_id = RESPONSE.decode(frame.response).id

    def _added(self, frame: Frame, out: list[Event]) -> None:
        item = ITEM.decode(frame.item)
        opened = self._open(frame, item.id or "")
        if item.type == "function_call" and item.name:
            self._start(opened, item, out)

    def _start(self, opened: _Open, item: OutputItem, out: list[Event]) -> None:
        if not item.name:
            raise UpstreamProtocolError("the upstream sent a function_call without a name")
        opened.call, opened.id = self._calls, item.id or opened.id
        self._calls += 1
        upstream_id = item.call_id or item.id or ""
        out.append(ToolStarted(opened.call, self._names.get(item.name, item.name), upstream_id, item.name))

    def _done(self, frame: Frame, out: list[Event]) -> None:
        item = ITEM.decode(frame.item)
        self._item(self._open(frame, item.id or ""), item, frame.item, out)

    def _item(self, opened: _Open, item: OutputItem, raw: Raw, out: list[Event]) -> None:
        match item.type:
            case "message":
                self._message(opened, item, out)
            case "reasoning":
                self._reasoned(opened, item, raw, out)
            case "function_call":
                if opened.call < 0:
                    self._start(opened, item, out)
                opened.final = item.arguments or opened.final
                self._end_call(opened, item.status or "completed", out)
            case "web_search_call":
                searches, blocks = search_blocks(raw, self._response_id, len(self._items))
                self._searches += searches
                out.extend(WholeBlock(block) for block in blocks)
            case other:
                self._notes.append(f"the upstream's output item {other!r} has no counterpart and was left out")

    def _message(self, opened: _Open, item: OutputItem, out: list[Event]) -> None:
        parts = item.content or ()
        if not opened.length:
            self._refusal += [part.refusal for part in parts if part.refusal]
            out.extend(TextDelta(part.text) for part in parts if part.text)
        if not opened.cited:
            out.extend(event for part in parts for event in citations(part.annotations or ()))
        length = sum(len(part.text) for part in parts if part.text)
        if length:
            id_ = item.id if item.id and self._new(item.id) else ""
            phase = item.phase if item.phase in PHASES else ""
            self._texts.append(TextState(length, id_, phase, tuple(self._reasoning)))
            self._reasoning = []

    def _reasoned(self, opened: _Open, item: OutputItem, raw: Raw, out: list[Event]) -> None:
        if not opened.length:
            texts = [part.text for part in (item.summary or item.content or ()) if part.text]
            out.extend([ThinkingDelta("\n\n".join(texts))] if texts else [])
        kept = replayable(raw)
        if kept is not None and self._new(item.id or bytes(raw)):
            self._reasoning.append(kept)

    def _new(self, item: object) -> bool:
        known = item in self._seen
        self._seen.add(item)
        return not known

    def _end_call(self, opened: _Open, status: str, out: list[Event]) -> None:
        call, opened.call = opened.call, -1
        if status == "incomplete":
            out.append(ToolDropped(call))
            return
        if opened.final and not (opened.arguments.text and opened.arguments.complete):
            opened.arguments = Arguments()
            opened.arguments.feed(opened.final)
        arguments, mended = opened.arguments.close()
        if mended:
            self._notes.append(mended)
        state = State(opened.id if self._new(opened.id) else "", tuple(self._reasoning), tuple(self._texts))
        self._reasoning, self._texts = [], []
        out.append(ToolEnded(call, arguments, pack(state)))

    # ------------------------------------------------------------ the end

    def _completed(self, frame: Frame, out: list[Event]) -> None:
        response = RESPONSE.decode(frame.response)
        if not self._items:  # some gateways tell it all at the end
            self._whole(response, out)
        self._conclude(response, out)

    def _whole(self, response: Response, out: list[Event]) -> None:
        for index, raw in enumerate(response.output):
            self._done(Frame(output_index=index, item=raw), out)

    def _conclude(self, response: Response, out: list[Event]) -> None:
        status = response.status or "completed"
        if status == "failed" or response.error is not None:
            self._end(Failed(told(response.error) if response.error else in_band(SILENT)), out)
        elif status == "incomplete":
            self._finish(response, (response.incomplete_details or Details()).reason or "", out)
        elif status == "completed":
            self._finish(response, "", out)
        else:
            self._end(Failed(UpstreamFailed(f"the upstream ended the response as {status!r}")), out)

    def _finish(self, response: Response, cut: str, out: list[Event]) -> None:
        reason: Reason = "refusal" if self._refusal else "tool_use" if self._calls else "stop"
        if response.status == "incomplete":
            if cut not in INCOMPLETE:
                raise UpstreamProtocolError(f"unknown incomplete_details.reason {cut!r}")
            reason = INCOMPLETE[cut]
        for opened in self._items.values():
            if opened.call >= 0:
                self._end_call(opened, response.status or "completed", out)
        finished = Finished(
            reason,
            exclusive(response.usage, self._searches),
            explanation="".join(self._refusal),
            state=pack(State(texts=tuple(self._texts))),
            model=response.model or "",
            notes=tuple(self._notes),
        )
        self._end(finished, out)

    def _error(self, data: bytes, out: list[Event]) -> None:
        complaint = read(data) or SILENT
        named = complaint if complaint.type != "error" else replace(complaint, type="")  # that is the event's own type
        self._end(Failed(in_band(named)), out)

    def _end(self, event: Finished | Failed, out: list[Event]) -> None:
        self._ended = True
        out.append(event)


HANDLERS: dict[str, Callable[[ResponsesStream, Frame, list[Event]], None]] = {
    "response.output_text.delta": ResponsesStream._text,
    "response.function_call_arguments.delta": ResponsesStream._fragment,
    "response.reasoning_summary_text.delta": ResponsesStream._summary,
    "response.reasoning_text.delta": ResponsesStream._thought,
    "response.reasoning_summary_part.added": ResponsesStream._summary_part,
    "response.output_text.annotation.added": ResponsesStream._annotation,
    "response.refusal.delta": ResponsesStream._refused,
    "response.function_call_arguments.done": ResponsesStream._arguments,
    "response.created": ResponsesStream._created,
    "response.output_item.added": ResponsesStream._added,
    "response.output_item.done": ResponsesStream._done,
    "response.completed": ResponsesStream._completed,
    "response.incomplete": ResponsesStream._completed,
    "response.failed": ResponsesStream._completed,
    "response.cancelled": ResponsesStream._completed,
}
