"""A tool call's arguments while they stream in: what may be shown live, and whether the whole is one JSON object."""

import jiter
import msgspec

from translation.errors import UpstreamProtocolError

PLACEHOLDERS = ("", "{}", "null", '""')  # some servers send one of these first, and the arguments after it


class Arguments:
    """Collects fragments. `feed` returns what may be shown now; `close` the complete, valid JSON object."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._held = ""  # a placeholder that may yet be followed by the real arguments
        self._live = False

    def feed(self, fragment: str) -> str:
        if not fragment:
            return ""
        if self._live:
            self._parts.append(fragment)
            return fragment
        joined = self._held + fragment
        text = joined.strip()
        if text in PLACEHOLDERS:
            self._held = joined
            return ""
        self._held, self._live = "", True
        text = _after_placeholder(joined).lstrip()
        self._parts.append(text)
        return text

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def close(self) -> tuple[str, str]:
        """The arguments and, if they had to be mended, how. Raises when there is no object in them."""
        text = self.text.strip()
        if text in PLACEHOLDERS:
            return "{}", ""
        if is_object(text):
            return text, ""
        return mend(text)

    @property
    def complete(self) -> bool:
        """Whether what came so far is already one JSON object, or nothing at all."""
        text = self.text.strip()
        return text in PLACEHOLDERS or is_object(text)


def _after_placeholder(text: str) -> str:
    """`{}{"a":1}` and `null{"a":1}` mean the second; `{}` inside a longer object does not get here."""
    for placeholder in ("{}", "null", '""'):
        rest = text.lstrip()[len(placeholder) :]
        if text.lstrip().startswith(placeholder) and rest.lstrip().startswith("{"):
            return rest
    return text


def is_object(text: str) -> bool:
    if not text.startswith("{"):
        return False
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def mend(text: str) -> tuple[str, str]:
    """Arguments that are not an object as they stand: encoded twice, or cut before the closing braces."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        value = None
    if isinstance(value, str) and is_object(value.strip()):
        return value.strip(), "arguments were encoded twice"
    try:
        value = jiter.from_json(text.encode("utf-8", "surrogatepass"), partial_mode=True, allow_inf_nan=False)
    except ValueError:
        value = None
    if isinstance(value, dict) and value:
        return msgspec.json.encode(value).decode(), "arguments were cut short and closed"
    raise UpstreamProtocolError(f"the upstream sent tool arguments that are not a JSON object: {text[:200]!r}")
