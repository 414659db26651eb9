"""Calls that a server tells twice, in the text and beside it: each comes once."""

from typing import Any, Literal

import msgspec

DEPTH = 32  # of nested values; below that, they are compared as they came

Side = Literal["written", "parsed"]
OTHER: dict[Side, Side] = {"written": "parsed", "parsed": "written"}


class Twins:
    """The calls of one answer that have no twin yet, by where they stood."""

    def __init__(self) -> None:
        self._single: dict[Side, list[tuple[str, object]]] = {"written": [], "parsed": []}

    def expects(self, side: Side, name: str) -> bool:
        """Whether the other side has called this tool and no twin of that call has come."""
        return any(known == name for known, _ in self._single[OTHER[side]])

    def has(self, side: Side, name: str, arguments: str) -> bool:
        """Whether the other side has told this call already; if not, it is kept for its twin."""
        call = name, _gist(msgspec.json.decode(arguments))
        if call in self._single[OTHER[side]]:
            self._single[OTHER[side]].remove(call)
            return True
        self._single[side].append(call)
        return False


def _gist(value: Any, depth: int = 0) -> object:
    """What two readers of the same markup agree upon: not on types, nor on white space around a value."""
    match value:
        case dict() if depth < DEPTH:
            return {name: _gist(inner, depth + 1) for name, inner in value.items()}
        case list() if depth < DEPTH:
            return [_gist(inner, depth + 1) for inner in value]
        case str():
            return value.strip()
        case _:
            return msgspec.json.encode(value).decode()
