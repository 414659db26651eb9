"""The token that ends a model's turn, where a server leaves it at the end of the text.

An answer may speak of such tokens. What is left out stands at the very end, right behind a word, a sentence or a
bracket, in a text that told of no such token before: a mention has a space, a quote or a backtick before it.
"""

import re

from msgspec.structs import replace

from translation.adapter import Around
from translation.events import Event, Finished, TextDelta

TOKENS = (
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<end_of_turn>", "</s>",
    "<｜end▁of▁sentence｜>",
)  # fmt: skip
BEGINNINGS = ("<|", "<｜", "</s>", "<s>", "<end_of_turn>", "<start_of_turn>")  # of whatever has to do with them
ONE = "|".join(map(re.escape, TOKENS))
RUN = re.compile(rf"(?:(?:{ONE})\s*)+")
MOST = 100  # characters that are held back
BEHIND = ".!?…。！？)]}>"  # and letters and digits: words in scripts without spaces may run into a mention
WHOLE = ("stop", "tool_use")  # reasons that cut nothing off
NOTE = "{}, which the server left at the end of the text, was left out"


class EndTokens(Around):
    _held = ""  # may be such tokens, and nothing else
    _last = ""  # character that was said
    _speaks = False  # of them

    def _passed(self, events: list[Event]) -> list[Event]:
        if self._speaks:
            return events
        out: list[Event] = []
        for event in events:
            if type(event) is TextDelta:
                self._text(event.text, out)
            elif isinstance(event, Finished):
                out += self._end(event)
            else:
                self._say(self._held, out)
                self._held = ""
                out.append(event)
        return out

    def _text(self, text: str, out: list[Event]) -> None:
        if self._speaks or not (self._held or "<" in text):
            self._say(text, out)
            return
        text = self._held + text
        place = self._place(text)
        self._held = text[place:]
        self._say(text[:place], out)

    def _place(self, text: str) -> int:
        """Where what is held back begins."""
        place = text.find("<")
        while place >= 0:
            rest = text[place : place + MOST + 1]
            if any(beginning.startswith(rest) for beginning in BEGINNINGS):
                return place
            if rest.startswith(BEGINNINGS):
                self._speaks = len(rest) > MOST or not _may_be(rest)
                return len(text) if self._speaks else place
            place = text.find("<", place + 1)
        return len(text)

    def _say(self, text: str, out: list[Event]) -> None:
        if text:
            self._last = text[-1]
            out.append(TextDelta(text))

    def _end(self, finished: Finished) -> list[Event]:
        told = self._last in BEHIND or (self._last.isascii() and self._last.isalnum())
        if self._last and told and finished.reason in WHOLE and RUN.fullmatch(self._held):
            return [replace(finished, notes=(*finished.notes, NOTE.format(self._held.strip())))]
        return [TextDelta(self._held), finished] if self._held else [finished]


def _may_be(text: str) -> bool:
    """Whether it is nothing but such tokens, of which the last may not be whole."""
    found = RUN.match(text)
    rest = text[found.end() :] if found else text
    return any(token.startswith(rest) for token in TOKENS)
