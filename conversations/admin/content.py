"""Content on a page: made harmless, bounded, and only for those who may read it.

Django escapes what templates print; what is left to do here is what escaping does not do: control characters, terminal
codes, marks that turn the direction of text around, and values of many megabytes.
"""

import msgspec
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from msgspec import Struct

from conversations import wording
from conversations.wording import harmless
from translation.unreadable import UNREADABLE

PERMISSION = "conversations.view_content"
SHOWN = 20_000  # characters of one value on a page
FOLDED = 400  # longer values are folded
TAIL = 1_000  # of a cut value's end
LARGE = 10 * (SHOWN + TAIL)  # bytes that are not worth decoding whole


class Shown(Struct, frozen=True):
    """A value as a page shows it."""

    text: str
    size: int  # of the whole value, bytes
    cut: int = 0  # characters left out between text and tail
    tail: str = ""
    label: str = ""

    @property
    def folded(self) -> bool:
        return len(self.text) > FOLDED or self.text.count("\n") > 12

    @property
    def words(self) -> str:
        return wording.size(self.size)

    @property
    def left_out(self) -> str:
        return wording.size(self.cut)

    @property
    def first_line(self) -> str:
        """Of JSON with its indents that is a bracket, which says nothing: then it is what follows."""
        beginning = self.text[:200]
        line = beginning.partition("\n")[0]
        return line if len(line) > 1 else " ".join(beginning.split())


def reads_content(request: HttpRequest) -> bool:
    return request.user.has_perm(PERMISSION)


def shown(value: str | bytes, label: str = "") -> Shown:
    """A value cut to what a page can hold. Bytes are decoded as far as they can be, and only what is shown of them."""
    if isinstance(value, bytes) and len(value) > LARGE:
        head, tail = (part.decode("utf-8", "ignore") for part in (value[:SHOWN], value[-TAIL:]))
        return Shown(harmless(head), len(value), len(value) - SHOWN - TAIL, harmless(tail), label)
    size = len(value) if isinstance(value, bytes) else len(value.encode("utf-8", "surrogatepass"))
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    # Carriage returns at line ends are no news; alone they are.
    text = text.replace("\r\n", "\n")
    if len(text) <= SHOWN + TAIL:
        return Shown(harmless(text), size, label=label)
    cut = len(text) - SHOWN - TAIL
    return Shown(harmless(text[:SHOWN]), size, cut, harmless(text[-TAIL:]), label)


def pretty(raw: bytes) -> bytes:
    """JSON with its lines and indents; anything else as it is."""
    try:
        return msgspec.json.format(raw, indent=2)
    except UNREADABLE:
        return raw


def unescaped(raw: bytes) -> bytes:
    """The same for people: many upstreams write every letter beyond ASCII as an escape."""
    if b"\\u" not in raw:
        return pretty(raw)
    try:
        return pretty(msgspec.json.encode(msgspec.json.decode(raw)))
    except UNREADABLE:
        return pretty(raw)


def json_view(raw: bytes, label: str) -> SafeString:
    if not raw:
        return SafeString(wording.NONE)
    return render_to_string("admin/conversations/value.html", {"value": shown(unescaped(raw), label), "open": True})
