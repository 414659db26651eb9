"""The output items of one Responses answer as they come: which event belongs to which of them.

By the book each has an id and an index. Servers change the id between events, leave either out, or give one index to
every item; an item that is done, or of another kind, is not the one that an event means.
"""

from collections.abc import Sequence

from translation.arguments import Arguments, is_object
from translation.providers.openai_responses_wire import Frame, OutputItem


class Item:
    """An output item that has begun."""

    __slots__ = (
        "arguments", "call", "call_id", "cited", "done", "final", "gap", "id", "kind", "length", "part", "pieces",
        "source", "whole",
    )  # fmt: skip

    def __init__(self, item_id: str, kind: str) -> None:
        self.id = item_id
        self.kind = kind
        self.call = -1  # the call's number once it has a name
        self.call_id = ""
        self.arguments = Arguments()
        self.final = ""  # the arguments as the upstream says they are
        self.length = 0  # of the text or reasoning shown
        self.pieces: list[str] = []  # of the text or reasoning as they came
        self.part = 0  # how many of them are of earlier parts
        self.whole = 0  # of that, what was told by the events that say it once more
        self.gap = False  # another part of its reasoning has begun
        self.cited = False  # its sources came as they were found
        self.source = ""  # a summary and the reasoning itself may both come: the first one is shown
        self.done = False

    def thought(self, text: str) -> str:
        """A piece of its reasoning as it is shown: parts are apart from each other."""
        shown, self.gap = ("\n\n" if self.gap else "") + text, False
        self.length += len(shown)
        self.pieces.append(text)
        return shown

    def lacking(self, text: str, start: int = 0) -> str:
        """What a text, told once more as a whole, has beyond the pieces from there on."""
        shown = "".join(self.pieces[start:])
        return text[len(shown) :] if shown and text.startswith(shown) else ""

    @property
    def told(self) -> bool:
        """Whether anything came of it, beside that it begins."""
        return self.done or self.length > 0 or self.call >= 0 or bool(self.call_id)

    @property
    def is_cut(self) -> bool:
        """Whether its arguments end in the middle: if the token limit did that is known at the response's end."""
        text = (self.final or self.arguments.text).strip()
        return text.startswith("{") and not is_object(text)

    def close(self) -> tuple[str, str]:
        """Its arguments and, if they had to be mended, how. What came in pieces counts, if it is whole."""
        if self.final and not (self.arguments.text and self.arguments.complete):
            self.arguments = Arguments()
            self.arguments.feed(self.final)
        return self.arguments.close()


class Items:
    def __init__(self) -> None:
        self.begun: list[Item] = []
        self._known: dict[int | str, Item] = {}  # by id and by index; "" where an event tells neither
        self._announced: dict[tuple[str, str], Item] = {}  # by kind the last that was said to begin, and each call

    def unended(self, item: OutputItem) -> Item | None:
        """What was told of an item of a response's output without a word that it is done."""
        open_ = [each for each in self.begun if each.kind == item.type and each.told and not each.done]
        if item.type == "function_call":
            return next((each for each in open_ if each.call >= 0 and each.call_id == (item.call_id or item.id)), None)
        return next((each for each in open_ if each.id == item.id), open_[0] if open_ else None)

    def told_all(self, output: Sequence[OutputItem]) -> bool:
        """Whether each item of a response's output came before it and was done, as it should be."""
        for item in output:
            found = self._known.get(item.id) if item.id else None
            if found is None or not found.done or found.kind != item.type:
                return False
        return True

    def untold(self, output: Sequence[OutputItem]) -> set[int]:
        """The places in a response's output of what did not come before it."""
        return {place for kind in {item.type for item in output} for place in self._untold(kind, output)}

    def _untold(self, kind: str, output: Sequence[OutputItem]) -> list[int]:
        """All of a kind, or its last calls or texts: ids may differ from event to event, their number does not."""
        places = [place for place, item in enumerate(output) if item.type == kind]
        told = [item for item in self.begun if item.kind == kind and item.told]
        if not told:
            return places
        unsaid = sum(output[place].length for place in places) - sum(item.length for item in told)
        if kind != "function_call" and (kind != "message" or unsaid <= 0):
            return []
        names = {name for item in told for name in (item.id, item.call_id) if name}
        strange = [place for place in places if names.isdisjoint((output[place].id, output[place].call_id))]
        lacking = len(places) - len(told)
        return strange[-lacking:] if lacking > 0 else []

    def announced(self, frame: Frame, told: OutputItem) -> Item:
        """The item that is said to begin; another call may have the same name or place."""
        item_id, call_id = told.id or "", told.call_id or told.id or ""
        item = self._named(frame, item_id, told.type) or self._only(frame, item_id, told.type)
        if item is None or (item.call >= 0 and item.call_id != call_id):
            item = self.begin(frame, item_id, told.type)
        self._announced[told.type, ""] = self._announced[told.type, call_id] = item
        return item

    def find(self, frame: Frame, item_id: str, kind: str, call_id: str = "") -> Item:
        """The item that an event belongs to; a new one where none is known."""
        found = self._known.get(item_id) if item_id else None
        if found is not None and found.kind == kind and not found.done:
            return found  # as nearly always
        return self.known(frame, item_id, kind, call_id) or self.begin(frame, item_id, kind)

    def known(self, frame: Frame, item_id: str, kind: str, call_id: str = "") -> Item | None:
        return (
            self._named(frame, item_id, kind) or self._unnamed(frame, kind, call_id) or self._only(frame, item_id, kind)
        )

    def _named(self, frame: Frame, item_id: str, kind: str) -> Item | None:
        if item_id or frame.output_index is None:
            found = self._known.get(item_id)
            if found is not None and found.kind == kind and not found.done:
                return found
        if frame.output_index is not None:
            found = self._known.get(frame.output_index)
            if found is not None and found.kind == kind and not found.done:
                return found
        return None

    def silent(self, frame: Frame, kind: str) -> Item | None:
        """The item that an event says once more, if nothing of it came in pieces; one that is done has been said. Who
        tells in pieces tells all in pieces: servers name an item in some events only, or otherwise in each."""
        told = [item for item in self.begun if item.kind == kind]
        names = [name for name in (frame.item_id, frame.output_index) if name is not None]
        meant = [self._known.get(name) for name in names] if names else told[-1:]
        if any(item.length > item.whole for item in told) or any(item.done for item in meant if item in told):
            return None
        return self.find(frame, frame.item_id or "", kind)

    def _only(self, frame: Frame, item_id: str, kind: str) -> Item | None:
        """The one open item of this kind, where the event does not say which it means, or the item has no name."""
        if frame.output_index is not None:
            return None
        found = [item for item in self.begun if item.kind == kind and not item.done]
        if len(found) != 1 or (item_id and found[0].id):
            return None
        self._known[item_id] = found[0]
        return found[0]

    def _unnamed(self, frame: Frame, kind: str, call_id: str) -> Item | None:
        """What a server means that makes up an id for each event and counts nothing: that call, or what began last."""
        if frame.output_index is not None:
            return None
        item = self._announced.get((kind, call_id))
        return None if item is None or item.done else item

    def begin(self, frame: Frame, item_id: str, kind: str) -> Item:
        item = Item(item_id, kind)
        self.begun.append(item)
        if item_id or frame.output_index is None:
            self._known[item_id] = item
        if frame.output_index is not None:
            self._known[frame.output_index] = item
        return item
