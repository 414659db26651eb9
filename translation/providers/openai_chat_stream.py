"""A chat answer as events: a stream of chunks, or one JSON object, whichever the upstream sent."""

from msgspec import field

from translation.adapter import Target, UpstreamRequest
from translation.errors import BridgeError, UpstreamFailed, UpstreamProtocolError
from translation.events import Event
from translation.providers.openai_chat_answer import ChatAnswer
from translation.providers.openai_chat_calls import Calls
from translation.providers.openai_chat_wire import decode_chunk, decode_whole, plain_text
from translation.refusals import cried, in_band
from translation.sse import MAX_EVENT, SSEDecoder, apart, is_idle
from translation.think_text import ThinkText
from translation.unreadable import UNREADABLE
from translation.values import NAME, Request

NO_TOOLS: frozenset[str] = frozenset()


def chat_decoder(request: Request, target: Target, sent: UpstreamRequest) -> "ChatDecoder":
    names, profile = dict(sent.names), target.profile
    own = {*map(NAME, request.tools)}.difference(names.values()) if request.tools else NO_TOOLS
    return ChatDecoder(
        Calls(names, own.union(names)),
        ThinkText() if profile.thinks_in_text else None,
        request.stop_sequences,
        profile.replay_reasoning != "never",
        profile.reasoning_field,
    )


class ChatDecoder(ChatAnswer, eq=False):
    _sse: SSEDecoder = field(default_factory=SSEDecoder)
    _head: bytes | None = b""  # what came before it is clear whether this is a stream; None when it is clear
    _body: list[bytes] | None = None  # of an answer that is one JSON object
    _streams: bool = False  # it is known to be none
    _size: int = 0

    def feed(self, chunk: bytes) -> list[Event]:
        out: list[Event] = []
        if self._over:
            return out
        try:
            if not self._streams:
                chunk = self._begin(chunk)
            if chunk:
                self._frames(self._sse.feed(chunk), out)
        except BridgeError as error:
            self._fail(error, out)
        except UNREADABLE as error:
            self._fail(UpstreamProtocolError(f"not a chat answer: {error}"), out)
        return out

    def close(self) -> list[Event]:
        out: list[Event] = []
        if self._over:
            return out
        try:
            if self._body is not None:
                self._json(b"".join(self._body).strip(), out)
            else:
                self._frames(self._sse.close(), out)
                self._end(out, done=False)
        except BridgeError as error:
            self._fail(error, out)
        except UNREADABLE as error:
            self._fail(UpstreamProtocolError(f"not a chat answer: {error}"), out)
        return out

    # ------------------------------------------------------------ bytes

    def _begin(self, chunk: bytes) -> bytes:
        """What of it is a stream's."""
        if self._head is not None:
            chunk = self._sniff(self._head + chunk)
        if self._body is None:
            self._streams = self._head is None
            return chunk
        self._collect(chunk, self._body)
        return b""

    def _sniff(self, head: bytes) -> bytes:
        """Servers send a stream, JSON or a gateway's page under any content type: the first character tells."""
        head = head.removeprefix(b"\xef\xbb\xbf")
        first = head.lstrip()[:1]
        if not first or head in (b"\xef", b"\xef\xbb"):
            self._head = head
            return b""
        self._head = None
        if first == b"<":
            raise UpstreamFailed("the upstream answered with an HTML page")
        if first in (b"{", b"["):
            self._body = []
        return head

    def _collect(self, chunk: bytes, body: list[bytes]) -> None:
        self._size += len(chunk)
        if self._size > MAX_EVENT:
            raise UpstreamProtocolError(f"the upstream sent an answer of more than {MAX_EVENT} bytes")
        body.append(chunk)

    def _json(self, body: bytes, out: list[Event]) -> None:
        """One answer, or the chunks of a stream as servers write them that know lines only."""
        try:
            whole = decode_whole(body)
        except UpstreamProtocolError:
            if len(lines := apart(body)) < 2:
                raise
            self._frames([("", line.strip()) for line in lines], out)
            self._end(out, done=False)
        else:
            self._chunk(whole, out)
            lone = any(choice.delta and not choice.message for choice in whole.choices or ())  # the first of many
            self._end(out, done=not lone)

    def _frames(self, frames: list[tuple[str, bytes]], out: list[Event]) -> None:
        for name, data in frames:
            if self._over:
                return
            if name == "error":
                raise in_band(cried(data))
            if not data.startswith(b"{"):
                if data.strip() == b"[DONE]":
                    self._end(out, done=True)
                    continue
                if is_idle(name, data):
                    continue
            try:
                chunk = decode_chunk(data)
            except UpstreamProtocolError:
                if len(parts := apart(data)) > 1:
                    self._frames([("", part) for part in parts], out)
                    continue
                chunk = decode_chunk(self._halves.joined(data))
            if self._answered and self._reason is None and (text := plain_text(chunk, self._model)):
                self._say(text, out)
            else:
                self._chunk(chunk, out)
