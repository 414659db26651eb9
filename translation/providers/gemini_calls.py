"""A function call of Gemini's that comes in pieces (Vertex' `streamFunctionCallArguments`, which gateways ask for).

The first piece has the name, those that follow have values and their places (`$.edits[0].text`), the last has nothing.
"""

import re
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Raw

from translation.errors import UpstreamProtocolError
from translation.providers.gemini_wire import Call, Value

STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,9})\]|\[(['\"])((?:[^\\]|\\.)*?)\3\]", re.DOTALL)
ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Pieces:
    """`feed` returns a call and its signature once it is whole."""

    def __init__(self) -> None:
        self.begun = Call()  # the open one, if it has a name
        self._signature = ""
        self._args: dict[str, Any] = {}

    def feed(self, call: Call, signature: str) -> tuple[Call, str] | None:
        if not self.begun.name:
            if not call.name or not (call.will_continue or call.partial_args):
                return call, signature
            self.begun, self._signature, self._args = call, "", {}
        elif call.name not in ("", self.begun.name):
            raise UpstreamProtocolError("the upstream began a function call inside of another one")
        self._signature = signature or self._signature
        for value in call.partial_args:
            _put(self._args, value)
        if call.will_continue:
            return None
        begun, self.begun = self.begun, Call()
        return Call(begun.name, Raw(msgspec.json.encode(self._args)), begun.id or call.id), self._signature


def _put(args: dict[str, Any], value: Value) -> None:
    """Texts come in pieces, too; one without a text adds nothing to them."""
    steps = _steps(value.json_path)
    place: Any = args
    for step, following in pairwise(steps):
        place = _at(place, step, [] if isinstance(following, int) else {})
    known, told = _at(place, steps[-1], None), value.told
    place[steps[-1]] = known + (told if isinstance(told, str) else "") if isinstance(known, str) else told


def _steps(path: str) -> list[str | int]:
    """A value in the wrong place would be another call, so what of a path is not understood is an error."""
    found = [*STEP.finditer(path)]
    if not found or path != "$" + "".join([step[0] for step in found]):
        raise UpstreamProtocolError(f"the upstream sent a piece of arguments for {path[:100]!r}")
    return [int(step[2]) if step[2] else step[1] or ESCAPED.sub(r"\1", step[4]) for step in found]


def _at(place: Any, step: str | int, empty: Any) -> Any:
    """What is there; `empty` is put where nothing is."""
    if isinstance(place, dict) and isinstance(step, str):
        place.setdefault(step, empty)
    elif isinstance(place, list) and isinstance(step, int) and step <= len(place):
        place += [empty] * (step == len(place))
    else:
        raise UpstreamProtocolError("the upstream sent pieces of arguments that do not fit together")
    return place[step]
