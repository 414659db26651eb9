"""Where in the client's own request something stands that a dialect refuses, or cannot tell as it is: dialects count a
history that was completed from the store and repaired, in which messages were merged and blocks moved.
"""

import re
from typing import TypeAlias

from msgspec.structs import replace

from translation.errors import InvalidRequest
from translation.values import Block, Message, Note

_PLACE = re.compile(r"messages\.(\d+)\.content\.(\d+)")
_MESSAGE = re.compile(r"messages\.\d+")
Place: TypeAlias = tuple[int, int]  # of a message, and of a block in it


def told(error: InvalidRequest, sent: tuple[Message, ...], asked: tuple[Message, ...]) -> InvalidRequest:
    """The error about `sent` in the words of `asked`, as far as the block that it names is there, too."""
    found = _PLACE.match(error.message)
    if found is None:
        return error
    for block in _at(sent, int(found[1]), int(found[2])):
        for index in range(len(asked) - 1, -1, -1):
            for position, own in enumerate(asked[index].blocks):
                if own is block:
                    return InvalidRequest(f"messages.{index}.content.{position}{error.message[found.end() :]}")
    return error


def noted(notes: tuple[Note, ...], sent: tuple[Message, ...], asked: tuple[Message, ...]) -> tuple[Note, ...]:
    """The notes about `sent`, each with the place in `asked` that it is about."""
    if sent is asked or all(note.message < 0 for note in notes):
        return notes
    places = _places(sent, asked)
    return tuple(_moved(note, places) if note.message >= 0 else note for note in notes)


def _places(sent: tuple[Message, ...], asked: tuple[Message, ...]) -> list[list[Place | None]]:
    """Where each block of `sent` stands in `asked`. Equal messages may be one value, so both are read from their ends:
    of those that were left out the older ones are meant."""
    known: dict[int, list[Place]] = {}
    for index, message in enumerate(asked):
        for position, block in enumerate(message.blocks):
            known.setdefault(id(block), []).append((index, position))
    found: list[list[Place | None]] = []
    for message in reversed(sent):
        given = [known.get(id(block)) for block in reversed(message.blocks)]
        found.append([own.pop() if own else None for own in given][::-1])
    return found[::-1]


def _moved(note: Note, places: list[list[Place | None]]) -> Note:
    named = _PLACE.match(note.what)
    own = places[int(named[1])][int(named[2])] if named else None
    if named and own:
        what = f"messages.{own[0]}.content.{own[1]}{note.what[named.end() :]}"
        return replace(note, what=what, message=own[0])
    index = _newest(places, note.message)
    return replace(note, what=_MESSAGE.sub(f"messages.{index}", note.what, count=1), message=index)


def _newest(places: list[list[Place | None]], number: int) -> int:
    """The newest of the client's messages that this one is made of; the bridge's own belongs to the one before."""
    made_of = (max((own[0] for own in places[each] if own), default=-1) for each in range(number, -1, -1))
    return next((index for index in made_of if index >= 0), 0)


def _at(messages: tuple[Message, ...], index: int, position: int) -> tuple[Block, ...]:
    return messages[index].blocks[position : position + 1] if index < len(messages) else ()
