"""Answers of the Responses API as a stream of typed events."""

from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from translation.errors import TruncatedStream, UpstreamProtocolError
from translation.events import Event, Failed
from translation.providers.openai_responses_answer import ALL, HANDLERS, KNOWN, SILENT, ResponsesAnswer
from translation.providers.openai_responses_errors import in_band
from translation.providers.openai_responses_wire import FRAME, Frame, Response, is_error, odd_frame
from translation.refusals import cried, read
from translation.sse import SSEDecoder, apart, is_idle
from translation.unicode import check_utf8
from translation.unreadable import UNREADABLE
from translation.values import Tool

ERRORS = ("error", "response.error")


class ResponsesStream(ResponsesAnswer):
    def __init__(self, names: Mapping[str, str], tools: tuple[Tool, ...] = ()) -> None:
        super().__init__(names, tools)
        self._sse = SSEDecoder()

    def feed(self, chunk: bytes) -> list[Event]:
        return [] if self._ended else self._guard(lambda: self._sse.feed(chunk))

    def close(self) -> list[Event]:
        if self._ended:
            return []
        return self._guard(self._sse.close, Failed(TruncatedStream("the upstream closed before response.completed")))

    def _guard(self, read: Callable[[], list[tuple[str, bytes]]], unfinished: Failed | None = None) -> list[Event]:
        out: list[Event] = []
        try:
            for name, data in read():
                if self._ended:
                    break
                if name == "error":
                    self._end(Failed(in_band(cried(data))), out)
                else:
                    self._frame(name, data, out)
        except UpstreamProtocolError as error:
            self._end(Failed(error), out)
        except UNREADABLE as error:
            self._end(Failed(UpstreamProtocolError(f"the upstream sent what is not its protocol: {error}")), out)
        if unfinished is not None and not self._ended:
            self._end(unfinished, out)
        return out

    def _frame(self, name: str, data: bytes, out: list[Event]) -> None:
        if not data.startswith(b"{"):
            if is_idle(name, data):
                return
            if data.strip() == b"[DONE]":
                self._done_marker(out)
                return
        check_utf8(data)
        try:
            frame = FRAME.decode(data)
        except msgspec.DecodeError:
            if len(parts := apart(data)) > 1:
                self._apart(name, parts, out)
                return
            frame = odd_frame(data, self._halves, KNOWN)
        if not frame.type and name in KNOWN:
            frame = replace(frame, type=name)  # some gateways say it outside of the data only
        handler = HANDLERS.get(frame.type)
        if handler is not None:
            handler(self, frame, out)
        else:
            self._last(frame, data, out)

    def _done_marker(self, out: list[Event]) -> None:
        if not self._items.begun:
            raise UpstreamProtocolError("the upstream's answer holds no output")
        self._finish(Response(), "completed", out)

    def _last(self, frame: Frame, data: bytes, out: list[Event]) -> None:
        """What ends the answer, if it does."""
        if frame.type in ALL:
            # Some gateways send the response itself where the event should hold it.
            self._completed(frame.type, data if bytes(frame.response) in (b"", b"null") else frame.response, out)
        elif frame.type in ERRORS or is_error(frame.error):
            self._end(Failed(in_band(read(data) or SILENT)), out)
        elif not frame.type and (complaint := read(data)):
            self._end(Failed(in_band(complaint)), out)

    def _apart(self, name: str, parts: list[bytes], out: list[Event]) -> None:
        for data in parts:
            if not self._ended:
                self._frame(name, data, out)
