"""Server-sent events, read from bytes as they come and written as frames.

Lines end in CR, LF or CRLF and nowhere else (U+2028 is data); a chunk may end inside a line or a UTF-8 character.
"""

import json
import re

from msgspec import Struct

from translation.errors import UpstreamProtocolError

BETWEEN = re.compile(r"\s*+(?:data:)?+\s*+")
_scan = json.JSONDecoder().raw_decode

NOTHING = (b'""', b"null", b"[]")
PINGS = {b"ping", b"heartbeat", b"keepalive", b"keep-alive"}
MAX_EVENT = 16 * 1024 * 1024  # one event larger than this is not an answer


class SSEDecoder(Struct, eq=False):
    """`feed` returns (event name, data) pairs; the name is "" when there is no `event:` line."""

    _buffer: bytes = b""  # an unfinished line
    _name: str = ""
    _data: list[bytes] = []
    _size: int = 0
    _started: bool = False  # a byte order mark may only come first
    _between: bool = False  # two events: nothing is left of what came before

    def feed(self, chunk: bytes) -> list[tuple[str, bytes]]:
        if self._between and (events := whole_events(chunk)) is not None:
            return events
        buffer = self._buffer + chunk if self._buffer else chunk
        if not self._started:
            if buffer.startswith(b"\xef\xbb\xbf"):
                buffer = buffer[3:]
            elif b"\xef\xbb\xbf".startswith(buffer):
                self._buffer = buffer
                return []
            self._started = True
        if b"\r" in buffer:
            # A lone trailing CR may be the first half of CRLF; wait for the next chunk.
            held = b"\r" if buffer.endswith(b"\r") else b""
            lines = buffer[: len(buffer) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            self._buffer = lines.pop() + held
        else:
            lines = buffer.split(b"\n")
            self._buffer = lines.pop()
        self._bound(len(self._buffer))
        events = self._events(lines)
        self._between = not (self._buffer or self._data or self._name)
        return events

    def close(self) -> list[tuple[str, bytes]]:
        """The stream ended: a last event without its blank line still counts."""
        line, self._buffer = self._buffer.rstrip(b"\r"), b""
        return self._events([line, b""])

    def _events(self, lines: list[bytes]) -> list[tuple[str, bytes]]:
        events: list[tuple[str, bytes]] = []
        for line in lines:
            if line.startswith(b"data:"):
                value = line[6:] if line[5:6] == b" " else line[5:]
                self._data.append(value)
                self._size += len(value) + 1
                self._bound(self._size)
            elif not line:
                if len(self._data) == 1:
                    events.append((self._name, self._data[0]))
                elif self._data:
                    events += [(self._name, data) for data in _told(self._data)]
                self._name, self._data, self._size = "", [], 0
            elif line.startswith(b"event:"):
                self._name = line[6:].strip().decode("utf-8", "replace")
            elif line == b"data":
                self._keep(b"")
            elif line.startswith(b"error:"):  # llama.cpp's own field until September 2025 (its pull request 16109)
                self._name = "error"
                self._keep(line[6:].strip())
        return events

    def _keep(self, value: bytes) -> None:
        self._data.append(value)
        self._size += len(value) + 1
        self._bound(self._size)

    def _bound(self, size: int) -> None:
        if size > MAX_EVENT:
            raise UpstreamProtocolError(f"the upstream sent one event of more than {MAX_EVENT} bytes")


def _told(lines: list[bytes]) -> list[bytes]:
    """One event, or the several that stand together where a server leaves out the blank lines between them."""
    if all(_is_whole(line.strip()) for line in lines):
        return [line for line in lines if line.strip()]
    return [b"\n".join(lines)]


def _is_whole(line: bytes) -> bool:
    return not line or line == b"[DONE]" or (line.startswith(b"{") and line.endswith(b"}"))


def apart(data: bytes) -> list[bytes]:
    """The objects of one line, where a server leaves out the line ends between them as well."""
    text, start, found = data.decode("utf-8", "surrogateescape"), 0, []
    while text.startswith("{", start):
        try:
            _, end = _scan(text, start)
        except (ValueError, RecursionError):
            break
        found.append(text[start:end])
        between = BETWEEN.match(text, end)
        start = between.end() if between else end
    found += [text[start:]] if text[start:] else []
    return [part.encode("utf-8", "surrogateescape") for part in found]


def is_idle(name: str, data: bytes) -> bool:
    """Whether an event only keeps the connection alive: without data, or with what others put into a comment."""
    said = data.strip()
    if said[:1] == b"{":
        return False
    return said[:1] in (b"", b":") or said in NOTHING or not {said.lower(), name.lower().encode()}.isdisjoint(PINGS)


def whole_events(chunk: bytes) -> list[tuple[str, bytes]] | None:
    """The usual read, at a third of the cost: whole events of one data line, all named or none. None: look closer.
    A line end that is half of one matters only inside of an event."""
    lines = chunk.splitlines()
    if not lines or lines[-1] or len(chunk) > MAX_EVENT:
        return None
    if len(lines) == 2:
        data = lines[0]
        return [("", data[6:])] if data.startswith(b"data: ") else None
    if lines[0].startswith(b"data: "):
        events = [("", data[6:]) for data in lines[::2] if data.startswith(b"data: ")]
        return events if 2 * len(events) == len(lines) and not any(lines[1::2]) else None
    if len(lines) == 3 and lines[0].startswith(b"event: ") and lines[1].startswith(b"data: "):
        return [(lines[0][7:].strip().decode("utf-8", "replace"), lines[1][6:])]
    events = [
        (name[7:].strip().decode("utf-8", "replace"), data[6:])
        for name, data in zip(lines[::3], lines[1::3], strict=False)
        if name.startswith(b"event: ") and data.startswith(b"data: ")
    ]
    return events if 3 * len(events) == len(lines) and not any(lines[2::3]) else None


def frame(name: str, data: bytes) -> bytes:
    """One event as the API writes it: always with its name."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)
