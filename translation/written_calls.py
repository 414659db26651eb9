"""What stands between `<tool_call>` and `</tool_call>` in a text: a call in one of the ways that models write one.

Hermes and Qwen write JSON, Qwen3-Coder `<function=...>` with parameters, GLM the name and pairs of keys and values.
"""

import re

import msgspec
from msgspec import Raw, Struct

from translation.arguments import Arguments
from translation.errors import UpstreamProtocolError
from translation.invocations import Parameter
from translation.offered import OfferedTools
from translation.unreadable import UNREADABLE

FUNCTION = "<function="
FUNCTIONS = re.compile(r"<function=([^>\n]++)>(.*)</function>", re.DOTALL)
# A value may talk of the tag that ends it: it ends where another one begins, or nothing follows.
PARAMETER = re.compile(r"\s*+<parameter=([^>\n]++)>\n?(.*?)\n?</parameter>(?=\s*+(?:<parameter=|\Z))", re.DOTALL)
NAMED = re.compile(r"([^\s<{]++)\s*+(.*)", re.DOTALL)
PAIR = re.compile(r"\s*+<arg_key>(.*?)</arg_key>\s*+<arg_value>(.*?)</arg_value>(?=\s*+(?:<arg_key>|\Z))", re.DOTALL)


class Written(Struct, frozen=True):
    """A call as it was written, of a tool that was offered or not."""

    name: str
    arguments: str


class _Json(Struct):
    name: str
    arguments: Raw = Raw(b"")
    parameters: Raw = Raw(b"")


_JSON = msgspec.json.Decoder(_Json)


def may_begin(text: str, names: frozenset[str]) -> bool:
    """Whether this may be the beginning of a call."""
    said = text.lstrip()
    if not said or said.startswith(("{", FUNCTION)) or FUNCTION.startswith(said):
        return True
    return any(said.startswith(name) or name.startswith(said) for name in names)


def read(text: str, tools: OfferedTools) -> Written | None:
    """None where it is no call, or not a whole one."""
    said = text.strip()
    if said.startswith("{"):
        return _json(said)
    found, pattern = FUNCTIONS.fullmatch(said), PARAMETER
    if found is None:
        found, pattern = NAMED.fullmatch(said), PAIR
    parameters = _parameters(found[2], pattern) if found is not None else None
    return None if found is None or parameters is None else Written(found[1], tools.schema(found[1]).typed(parameters))


def _json(said: str) -> Written | None:
    try:
        call = _JSON.decode(said)
        arguments = Arguments()
        arguments.feed(_text(bytes(call.arguments) or bytes(call.parameters)))
        whole, _ = arguments.close()
    except (*UNREADABLE, UpstreamProtocolError):
        return None
    return Written(call.name, whole)


def _text(raw: bytes) -> str:
    """Arguments are an object, or (some models) the text of one."""
    return msgspec.json.decode(raw, type=str) if raw.startswith(b'"') else raw.decode()


def _parameters(said: str, pattern: re.Pattern[str]) -> list[Parameter] | None:
    found: list[Parameter] = []
    place = 0
    while (match := pattern.match(said, place)) is not None:
        found.append(Parameter(match[1].strip(), match[2]))
        place = match.end()
    return found if not said[place:].strip() else None
