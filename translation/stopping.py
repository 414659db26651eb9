"""Stop sequences that an upstream is not told, since it takes none or fewer: the answer ends at them all the same."""

from collections.abc import Iterable

from translation.adapter import Around, Decoder
from translation.events import Event, Finished, TextDelta, ToolStarted


def stopping(decoder: Decoder, sequences: Iterable[str]) -> Decoder:
    """The decoder itself, or one whose answer ends at the first of these."""
    watched = tuple(filter(None, sequences))
    return Stopping(decoder, watched) if watched else decoder


class Stopping(Around):
    """Text is held back as long as it may be the beginning of a sequence. What follows a call is not looked at."""

    def __init__(self, decoder: Decoder, sequences: tuple[str, ...]) -> None:
        super().__init__(decoder)
        self._sequences = sequences
        self._held = ""
        self._called = self._over = False

    def _passed(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if self._over:
                break
            if type(event) is TextDelta and not self._called:
                self._text(self._held + event.text, events[-1], out)
                continue
            out += [TextDelta(self._held)] if self._held else []
            self._held = ""
            self._called = self._called or type(event) is ToolStarted
            out.append(event)
        return out

    def _text(self, text: str, last: Event, out: list[Event]) -> None:
        hit = min(((text.find(each) + len(each), each) for each in self._sequences if each in text), default=None)
        if hit is None:
            end = len(text) - max(begun(text, each) for each in self._sequences)
            self._held = text[end:]
        else:
            end = hit[0] - len(hit[1])
            self._over = True
        if end:
            out.append(TextDelta(text[:end]))
        if hit is not None:
            told = last if isinstance(last, Finished) else Finished("stop")  # a whole answer has its figures
            out.append(Finished("stop_sequence", told.usage, hit[1], model=told.model, notes=told.notes))


def begun(text: str, sequence: str) -> int:
    """How much of the text's end is a beginning of the sequence."""
    most = min(len(sequence) - 1, len(text))
    return next((size for size in range(most, 0, -1) if text.endswith(sequence[:size])), 0)
