"""Reasoning that a server leaves in the text of an answer, between tags at its beginning, or in gpt-oss's channels."""

from translation.channels import BEGINNINGS, Channels, Found
from translation.events import TextDelta, ThinkingDelta

OPENING = "<think>"
CLOSING = "</think>"
TAGS = (OPENING, CLOSING, *BEGINNINGS)
FENCE = "```"


def opened(text: str) -> str:
    """A whole answer, with the tag that opens its reasoning where the prompt held that: only the closing one is in the
    text then, once and in a line of its own. Elsewhere, or between fences, an answer speaks of it."""
    thought, tag, rest = text.partition(CLOSING)
    alone = thought.endswith("\n") and rest.startswith("\n") and bool(thought.strip()) and bool(rest.strip())
    if not tag or not alone or OPENING in text or CLOSING in rest or thought.count(FENCE) % 2:
        return text
    return OPENING + text


class ThinkText:
    """Feed it an answer's text. Only what begins with the tag is reasoning; a tag later on is text."""

    def __init__(self) -> None:
        self._held = ""  # may yet turn out to be a tag, or white space around one
        self._place = "before"  # then `inside`, `behind` (white space after the tag), `text`
        self._channels: Channels | None = None

    def feed(self, text: str) -> list[Found]:
        if self._place == "text":
            return [TextDelta(text)]
        if self._channels is not None:
            return self._channels.feed(text)
        self._held += text
        out: list[Found] = []
        if self._place == "before":
            self._begin(out)
        if self._place == "inside":
            self._think(out)
        if self._place == "behind":
            self._leave(out)
        return out

    def close(self) -> list[Found]:
        if self._channels is not None:
            return self._channels.close()
        held, self._held = self._held, ""
        if not held or self._place == "behind":
            return []
        inside, self._place = self._place == "inside", "text"
        return [ThinkingDelta(held) if inside else TextDelta(held)]

    def _begin(self, out: list[Found]) -> None:
        text = self._held.lstrip()
        if text.startswith(OPENING):
            self._held, self._place = text[len(OPENING) :], "inside"
        elif text.startswith(CLOSING):  # of reasoning that came in a field of its own
            self._held, self._place = text[len(CLOSING) :], "behind"
        elif text.startswith(BEGINNINGS):
            self._channels = Channels()
            self._held, self._place = "", "channels"
            out += self._channels.feed(text)
        elif not any(tag.startswith(text) for tag in TAGS):
            out.append(TextDelta(self._held))
            self._held, self._place = "", "text"

    def _think(self, out: list[Found]) -> None:
        thought, tag, rest = self._held.partition(CLOSING)
        if tag:
            self._held, self._place = rest, "behind"
        else:
            cut = next((n for n in range(len(CLOSING) - 1, 0, -1) if thought.endswith(CLOSING[:n])), 0)
            thought, self._held = (thought[:-cut], thought[-cut:]) if cut else (thought, "")
        if thought:
            out.append(ThinkingDelta(thought))

    def _leave(self, out: list[Found]) -> None:
        text = self._held.lstrip()
        if text:
            out.append(TextDelta(text))
            self._held, self._place = "", "text"
