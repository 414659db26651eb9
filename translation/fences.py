"""Structured output that was asked for in words: models like to put it into a fence of Markdown, in which no client can
read it."""

import re

from msgspec.structs import replace

from translation.adapter import Around, Decoder, UpstreamRequest
from translation.events import Event, Finished, TextDelta

IN_WORDS = ("structured-output", "schema-in-words")  # notes of a request
TICKS = "```"
OPENING = re.compile(r"\s*+```\w*+\s*+(?=[^\s`])")
MAY_OPEN = re.compile(r"\s*+(?:`{0,2}|```\w*+\s*+)\Z")
NOTE = "the structured answer came in a fence, which was left out"


def unfenced(decoder: Decoder, sent: UpstreamRequest) -> Decoder:
    """The decoder itself where the upstream was told the schema."""
    return Unfenced(decoder) if any(note.rule in IN_WORDS for note in sent.notes) else decoder


class Unfenced(Around):
    """Leaves out the fence around a text; of any other text it holds back nothing but what may be a fence."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__(decoder)
        self._held = ""
        self._inside: bool | None = None  # None: the text has not begun
        self._removed = False

    def _passed(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if isinstance(event, TextDelta):
                out += self._text(self._held + event.text)
                continue
            out += self._end()
            if isinstance(event, Finished) and self._removed:
                event = replace(event, notes=(*event.notes, NOTE))  # noqa: PLW2901 - the same, and what was done to it
            out.append(event)
        return out

    def _text(self, text: str) -> list[Event]:
        self._held = ""
        if self._inside is None:
            if MAY_OPEN.match(text):
                self._held = text
                return []
            opening = OPENING.match(text)
            self._inside = opening is not None
            text = text[opening.end() :] if opening else text
        if self._inside:
            kept = len(_before_the_end(text))
            text, self._held = text[:kept], text[kept:]
        return [TextDelta(text)] if text else []

    def _end(self) -> list[Event]:
        """Of a text, if there is one."""
        held, inside = self._held, self._inside
        self._held, self._inside = "", None
        self._removed = self._removed or bool(inside)
        return [TextDelta(held)] if held and not (inside and held.strip() in ("", TICKS)) else []


def _before_the_end(text: str) -> str:
    """Without what may be the end of the fence."""
    text = text.rstrip()
    for _ in TICKS:
        text = text.removesuffix("`")
    return text.rstrip()
