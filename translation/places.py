"""Where a block that a dialect refuses stands in the client's own request: dialects count a history that was completed
from the store and repaired, in which messages were merged and blocks moved.
"""

import re

from translation.errors import InvalidRequest
from translation.values import Block, Message

_PLACE = re.compile(r"messages\.(\d+)\.content\.(\d+)")


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


def _at(messages: tuple[Message, ...], index: int, position: int) -> tuple[Block, ...]:
    return messages[index].blocks[position : position + 1] if index < len(messages) else ()
