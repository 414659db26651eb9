"""Answers of the Responses API as one whole `response` object."""

from collections.abc import Mapping

import msgspec

from translation.errors import UpstreamProtocolError
from translation.events import Event, Failed
from translation.providers.openai_responses_errors import in_band
from translation.providers.openai_responses_stream import ResponsesStream
from translation.providers.openai_responses_wire import response_of
from translation.refusals import read
from translation.sse import MAX_EVENT
from translation.unicode import check_utf8, without_halves
from translation.values import Tool


class ResponsesWhole(ResponsesStream):
    """The same items as in a stream, all of them done."""

    def __init__(self, names: Mapping[str, str], tools: tuple[Tool, ...] = ()) -> None:
        super().__init__(names, tools)
        self._body: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[Event]:
        out: list[Event] = []
        self._size += len(chunk)
        if self._size <= MAX_EVENT:
            self._body.append(chunk)
        elif not self._ended:
            what = f"the upstream sent an answer of more than {MAX_EVENT} bytes"
            self._end(Failed(UpstreamProtocolError(what)), out)
        return out

    def close(self) -> list[Event]:
        return [] if self._ended else self._guard(lambda: [("", b"".join(self._body))])

    def _frame(self, name: str, data: bytes, out: list[Event]) -> None:
        check_utf8(data)
        try:
            response = response_of(data)
        except msgspec.DecodeError:
            response = response_of(without_halves(data))
        if not response.output and (
            response.status is None or (response.status, response.output) == ("completed", None)
        ):
            complaint = read(data)
            if complaint is None:
                raise UpstreamProtocolError("the upstream's answer holds no output")
            self._end(Failed(in_band(complaint)), out)
            return
        self._response_id = response.id or ""
        status = "completed" if response.status == "requires_action" else response.status
        self._conclude(response, status or "completed", out)
