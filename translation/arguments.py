"""A tool call's arguments while they stream in: what may be shown live, and whether the whole is one JSON object."""

import json
import re
from itertools import pairwise

import msgspec

from translation.errors import UpstreamProtocolError
from translation.unicode import json_string
from translation.unreadable import UNREADABLE

FENCE = re.compile(r"\A```\w*+\s*+(.*)```\Z", re.DOTALL)
# A string that has no end goes on to the end of the text: looked for from each of its quotes, it would take minutes.
STRING = r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
STRINGS = re.compile(STRING, re.DOTALL)
TRAILING = re.compile(rf"({STRING})|,(?=\s*+[}}\]])", re.DOTALL)  # a comma before a bracket, outside of strings
BRACKETS = re.compile(rf"{STRING}|([{{}}\[\]])", re.DOTALL)  # outside of strings
CLOSING = {"{": "}", "[": "]"}
_decode, _encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
PLACEHOLDERS = ("", "{}", "null", '""', "[]")  # some servers send one of these first, and the arguments after it


class Arguments:
    """Collects fragments. `feed` returns what may be shown now; `close` the complete, valid JSON object."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._came: list[str] = []  # the fragments as they came
        self._held = ""  # may yet turn out to be a placeholder
        self._live: bool | None = None  # None: not known yet; False: no object, so nothing can be shown before `close`

    def feed(self, fragment: str) -> str:
        self._came.append(fragment)
        if self._live is None:
            if fragment.isspace():
                self._held += fragment if self._held else ""
                return ""  # it decides nothing, however often it comes
            fragment = self._decide(self._held + fragment)
        if fragment:
            self._parts.append(fragment)
        return fragment if self._live else ""

    def _decide(self, text: str) -> str:
        text = after_placeholder(text)
        if may_be_placeholder(text):
            self._held = text
            return ""
        self._held, self._live = "", text.startswith("{")
        return text

    @property
    def text(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def close(self) -> tuple[str, str]:
        """The arguments and, if they had to be mended, how. Raises when there is no object in them."""
        text = (self._held + self.text).strip()
        if text in PLACEHOLDERS:
            return "{}", ""
        if is_object(text):
            return text, ""
        grown = self._grown()
        return (grown, "arguments came anew with each fragment") if is_object(grown) else mend(grown or text)

    def _grown(self) -> str:
        """The last fragment, where each tells again what came before it: no object begins with two brackets."""
        came = [fragment for fragment in self._came if fragment.strip()]
        grew = len(came) > 1 and all(later.startswith(earlier) for earlier, later in pairwise(came))
        return came[-1].strip() if grew else ""

    @property
    def over(self) -> bool:
        """Whether an object has come whole: nothing can follow it."""
        return bool(self._parts) and self._closes and is_object(self.text.strip())

    @property
    def _closes(self) -> bool:
        """Whether it may be whole: reading it anew with each fragment would take minutes."""
        return not self._parts or self._parts[-1].rstrip()[-1:] in ("}", "")

    @property
    def complete(self) -> bool:
        """Whether what came so far is already one JSON object, or nothing at all."""
        if not self._closes:
            return False
        text = (self._held + self.text).strip()
        return text in PLACEHOLDERS or is_object(text) or is_object(self._grown())


def may_be_placeholder(text: str) -> bool:
    """Whether it is one so far."""
    return any(placeholder.startswith(text.rstrip()) for placeholder in PLACEHOLDERS)


def after_placeholder(text: str) -> str:
    """`{}{"a":1}` and `null{"a":1}` mean the second."""
    text = text.lstrip()
    for placeholder in PLACEHOLDERS[1:]:
        rest = text.removeprefix(placeholder).lstrip()
        if rest != text and rest.startswith("{"):
            return rest
    return text


def respelled(raw: bytes) -> bytes:
    """Arguments as clients write JSON that they have read: without blanks and escapes that need not be.

    A history is the same bytes then, whether the client tells it or the store.
    """
    try:
        return _encode(_decode(raw))
    except msgspec.DecodeError:
        return raw  # a number that no float holds


def is_object(text: str) -> bool:
    return text.startswith("{") and isinstance(_decoded(text), dict)


def mend(text: str) -> tuple[str, str]:
    """Arguments that are not an object as they stand; raises when there is nothing to mend.

    What is right in them stays as it was written: numbers have more digits than a float.
    """
    value = _decoded(text)
    if isinstance(value, str) and is_object(value.strip()):
        return value.strip(), "arguments were encoded twice"
    for spelled in (_spelled(text), _spelled(TRAILING.sub(r"\1", FENCE.sub(r"\1", text)).strip())):
        if is_object(spelled):
            return spelled, "arguments held characters that JSON does not allow"
    closed = _closed(text)
    if is_object(closed) and _decoded(closed):
        return closed, "arguments were cut short and closed"
    raise UpstreamProtocolError(f"the upstream sent tool arguments that are not a JSON object: {text[:200]!r}")


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except UNREADABLE:
        return None


def _spelled(text: str) -> str:
    """Models write raw line ends into strings, and halves of surrogate pairs."""
    return STRINGS.sub(_string, text)


def _string(found: re.Match[str]) -> str:
    try:
        return json_string(json.loads(found[0], strict=False)).decode()
    except ValueError:
        return found[0]


def _closed(text: str) -> str:
    """Without what follows the object, or with the brackets that it lacks. What ends inside a value, or before one, is
    not closed: no call may run without a part of what was meant."""
    missing: list[str] = []
    for bracket in BRACKETS.finditer(text):
        if bracket[1] in CLOSING:
            missing.append(CLOSING[bracket[1]])
        elif bracket[1] and missing:
            missing.pop()
            if not missing:
                return text[: bracket.end()]
    return text + "".join(reversed(missing))
