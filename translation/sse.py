"""Server-sent events, read from bytes as they come and written as frames.

Lines end in CR, LF or CRLF and nowhere else (U+2028 is data); a chunk may end inside a line or a UTF-8 character.
"""

import json
import re

from translation.errors import UpstreamProtocolError

BETWEEN = re.compile(r"\s*+(?:data:)?+\s*+")
_scan = json.JSONDecoder().raw_decode

MAX_EVENT = 16 * 1024 * 1024  # one event larger than this is not an answer


class SSEDecoder:
    """`feed` returns (event name, data) pairs; the name is "" when there is no `event:` line."""

    def __init__(self) -> None:
        self._buffer = b""  # an unfinished line
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0
        self._started = False  # a byte order mark may only come first

    def feed(self, chunk: bytes) -> list[tuple[str, bytes]]:
        if self._started and not (self._buffer or self._data or self._name):
            events = whole_events(chunk)
            if events is not None:
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
        return self._events(lines)

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
                self._data.append(b"")
                self._size += 1
                self._bound(self._size)
        return events

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


def whole_events(chunk: bytes) -> list[tuple[str, bytes]] | None:
    """The usual read, at a third of the cost: whole events of one data line, perhaps with a name. None: look closer."""
    if not chunk.endswith(b"\n\n") or b"\r" in chunk or len(chunk) > MAX_EVENT:
        return None
    if chunk.startswith(b"data: ") and chunk.find(b"\n") == len(chunk) - 2:
        return [("", chunk[6:-2])]
    events: list[tuple[str, bytes]] = []
    for lines in chunk[:-2].split(b"\n\n"):
        first, _, second = lines.partition(b"\n")
        if first.startswith(b"data: ") and not second:
            events.append(("", first[6:]))
        elif first.startswith(b"event: ") and second.startswith(b"data: ") and b"\n" not in second:
            events.append((first[7:].strip().decode("utf-8", "replace"), second[6:]))
        else:
            return None
    return events


def frame(name: str, data: bytes) -> bytes:
    """One event as the API writes it: always with its name."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)
