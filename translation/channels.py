"""gpt-oss's own format (harmony), where a server leaves it in the text of an answer: messages, each in a channel.

    <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...<|return|>

What is in `analysis` is reasoning, what has a function for its recipient (`to=functions.f`) a call, all else is text.
"""

import re

from msgspec import Struct

from translation.events import TextDelta, ThinkingDelta

BEGINNINGS = ("<|channel|>", "<|start|>")
MESSAGE = "<|message|>"
HEAD = 256  # characters; no head is longer
CHANNEL = re.compile(r"<\|channel\|>\s*+(\w++)")
RECIPIENT = re.compile(r"to=functions\.([^\s<]++)")
START = "<|start|>assistant"
ENDS = ("<|end|>", "<|return|>", "<|call|>", START)
END = re.compile("|".join(map(re.escape, ENDS)))
LONGEST = max(map(len, ENDS))


class Fragment(Struct, frozen=True):
    """A piece of a call's arguments, or of none where its name comes."""

    text: str
    name: str = ""


Found = TextDelta | ThinkingDelta | Fragment


class Channels:
    """Feed it a text that begins like that, cut anywhere."""

    def __init__(self) -> None:
        self._held = ""
        self._kind: type[Found] | None = None  # of the open message; None between two
        self._known = False  # a whole head has come
        self._told: set[type[Found]] = set()  # messages of the same kind are apart from each other

    def feed(self, text: str) -> list[Found]:
        self._held += text
        out: list[Found] = []
        while self._head(out) if self._kind is None else self._body(out):
            pass
        return out

    def close(self) -> list[Found]:
        """A head without a message says nothing, unless it never was one."""
        held, self._held = self._held, ""
        over = self._known if self._kind is None else END.fullmatch(held.strip())
        return [(self._kind or TextDelta)(held)] if held and not over else []

    def _head(self, out: list[Found]) -> bool:
        head, message, rest = self._held.partition(MESSAGE)
        channel, called = CHANNEL.search(head), RECIPIENT.search(head)
        if message and channel is not None and len(head) <= HEAD:
            self._known, self._held = True, rest
            self._begin(channel[1], called[1] if called else "", out)
            return True
        if message or len(head) > HEAD + len(MESSAGE):
            self._kind, self._held = TextDelta, self._held[1:]
            out.append(TextDelta("<"))
            return True
        return False

    def _begin(self, channel: str, called: str, out: list[Found]) -> None:
        if called:
            self._kind = Fragment
            out.append(Fragment("", called))
            return
        self._kind = ThinkingDelta if channel == "analysis" else TextDelta
        out += [self._kind("\n\n")] if self._kind in self._told else []
        self._told.add(self._kind)

    def _body(self, out: list[Found]) -> bool:
        """True when more of what is held may be read."""
        end = END.search(self._held)
        place = len(self._held) - _begun(self._held) if end is None else end.start()
        self._say(place, out)
        if end is None:
            return False
        token, rest = end[0], self._held[len(end[0]) :].lstrip()
        if token == START:
            self._kind = None
        elif rest.startswith(BEGINNINGS):
            self._kind, self._held = None, rest
        elif any(beginning.startswith(rest) for beginning in BEGINNINGS):
            return False
        else:
            self._say(len(token), out)  # it speaks of the format
        return True

    def _say(self, end: int, out: list[Found]) -> None:
        assert self._kind is not None
        if end:
            out.append(self._kind(self._held[:end]))
            self._held = self._held[end:]


def _begun(text: str) -> int:
    """How much of the text's end is a beginning of a token."""
    start = text.rfind("<", max(0, len(text) - LONGEST))
    return len(text) - start if start >= 0 and any(token.startswith(text[start:]) for token in ENDS) else 0
