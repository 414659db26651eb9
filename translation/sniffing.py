"""Whether an answer is a stream or one JSON value: gateways send either under any content type."""

from collections.abc import Callable

from translation.adapter import Decoder
from translation.events import Event

STREAMS = (b"data", b"even")
BOM = b"\xef\xbb\xbf"


class Sniffed:
    """Waits for the first character, which tells; then the decoder that was made for it."""

    def __init__(self, stream: Callable[[], Decoder], whole: Callable[[], Decoder]) -> None:
        self._stream = stream
        self._whole = whole
        self._head = b""
        self._decoder: Decoder | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        if self._decoder is not None:
            return self._decoder.feed(chunk)
        if not self._head and chunk[:4] in STREAMS:
            self._decoder = self._stream()
            return self._decoder.feed(chunk)
        self._head += chunk
        text = self._head.lstrip()
        if BOM.startswith(text[:3]):
            text = text[3:].lstrip()
        if not text:
            return []
        self._decoder = self._whole() if text[:1] in (b"{", b"[") else self._stream()
        return self._decoder.feed(text)

    def close(self) -> list[Event]:
        if self._decoder is None:
            self._decoder = self._stream()
        return self._decoder.close()
