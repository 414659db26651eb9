"""What stands in a text between a pair of tags: calls in one of the ways that models write them.

In `<tool_call>` Hermes and Qwen write JSON, Granite a list of it, Qwen3-Coder `<function=...>` with parameters, GLM the
name and pairs of keys and values. DeepSeek, Kimi and MiniMax have tags of their own, around all calls of an answer.
"""

import re
from itertools import starmap

import msgspec
from msgspec import Raw, Struct

from translation.arguments import Arguments
from translation.errors import UpstreamProtocolError
from translation.invocations import Invocation, Parameter
from translation.markup import Markup
from translation.markup_tags import M3, NAMESPACE
from translation.offered import OfferedTools
from translation.sse import apart
from translation.unreadable import UNREADABLE

FUNCTION = "<function="
FUNCTIONS = re.compile(r"<function=([^>\n]++)>(.*)</function>", re.DOTALL)
# A value may talk of the tag that ends it: it ends where another one begins, or nothing follows.
PARAMETER = re.compile(r"\s*+<parameter=([^>\n]++)>\n?(.*?)\n?</parameter>(?=\s*+(?:<parameter=|\Z))", re.DOTALL)
NAMED = re.compile(r"([^\s<{]++)\s*+(.*)", re.DOTALL)
PAIR = re.compile(r"\s*+<arg_key>([^<]*+)</arg_key>\s*+<arg_value>(.*?)</arg_value>(?=\s*+(?:<arg_key>|\Z))", re.DOTALL)


WRAPPED, WRAP = "<tool_call>", "</tool_call>"
TAGS = {
    WRAPPED: WRAP,
    FUNCTION: "</function>",  # Qwen3-Coder often leaves the tag around it out, or its opening half
    "<｜DSML｜tool_calls>": "</｜DSML｜tool_calls>",  # DeepSeek V4
    "<｜DSML｜function_calls>": "</｜DSML｜function_calls>",  # V3.2
    "<｜tool▁calls▁begin｜>": "<｜tool▁calls▁end｜>",  # V3 and V3.1
    "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",  # Kimi
    "<minimax:tool_call>": "</minimax:tool_call>",  # MiniMax M2 behind OpenRouter
    "<function_calls>": "</function_calls>",  # V3.2, where a server takes the token out of its tags
    f"{NAMESPACE}<tool_call>": f"{NAMESPACE}</tool_call>",  # MiniMax M3
}
DSML, INVOKE, V3, KIMI = "<｜DSML｜invoke name=", "<invoke name=", "<｜tool▁call▁begin｜>", "<|tool_call_begin|>"
NESTED = f"{NAMESPACE}<invoke name="
# How a call begins, where it does so with a token.
FIRST = dict(zip(TAGS, ("", "", DSML, DSML, V3, KIMI, INVOKE, INVOKE, NESTED), strict=True))
LITERAL = [' string="true"']  # DeepSeek tells of each value whether it is a string


def _elements(name: str, attributes: str) -> re.Pattern[str]:
    """As above: an end is one where the next of its kind begins, or nothing follows."""
    return re.compile(rf"\s*+<{name} {attributes}>(.*?)</{name}>(?=\s*+(?:<{name} |\Z))", re.DOTALL)


NAME, ABOUT = r'name="([^"\n]++)"', r"([^>\n]*+)"
INVOKED = {  # calls, and the parameters in them
    DSML: (_elements("｜DSML｜invoke", NAME), _elements("｜DSML｜parameter", NAME + ABOUT)),
    INVOKE: (_elements("invoke", NAME), _elements("parameter", NAME + ABOUT)),
}
TOKENED = {
    V3: re.compile(
        r"\s*+<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?([^\s<]++)(?:<｜tool▁sep｜>|\n)(.*?)<｜tool▁call▁end｜>"
        r"(?=\s*+(?:<｜tool▁call▁begin｜>|\Z))",
        re.DOTALL,
    ),
    KIMI: re.compile(
        r"\s*+<\|tool_call_begin\|>\s*+(?:functions\.)?([^\s<:]++)[^<]*+<\|tool_call_argument_begin\|>(.*?)<\|tool_call_end\|>"
        r"(?=\s*+(?:<\|tool_call_begin\|>|\Z))",
        re.DOTALL,
    ),
}


class Written(Struct, frozen=True):
    """A call as it was written, of a tool that was offered or not."""

    name: str
    arguments: str


class _Json(Struct):
    name: str
    arguments: Raw = Raw(b"")
    parameters: Raw = Raw(b"")


_JSON = msgspec.json.Decoder(_Json)
_LIST = msgspec.json.Decoder(list[Raw])


def may_begin(tag: str, text: str, names: frozenset[str]) -> bool:
    """Whether what follows the tag may be the beginning of a call."""
    said, first = text.lstrip(), FIRST[tag]
    if first:
        return said.startswith(first) or first.startswith(said)
    if not said or said.startswith(("{", "[", FUNCTION)) or FUNCTION.startswith(said):
        return True
    return any(said.startswith(name) or name.startswith(said) for name in names)


def read(tag: str, text: str, tools: OfferedTools) -> list[Written]:
    """None of them where one is no call, or not a whole one."""
    first, said = FIRST[tag], text.strip()
    if tag == FUNCTION:
        found = [_call(f"{tag}{said}</function>", tools)]
    elif not first:
        found = _calls(said, tools)
    elif first == NESTED:
        found = _nested(tag + text, tools)
    elif first in INVOKED:
        invoke, parameter = INVOKED[first]
        found = [_typed(call[0], call[1], tools, parameter) for call in _pairs(said, invoke) or ()]
    else:
        found = [_given(call[0], call[1]) for call in _pairs(said, TOKENED[first]) or ()]
    calls = [call for call in found if call is not None]
    return calls if len(calls) == len(found) else []


def _nested(text: str, tools: OfferedTools) -> list[Written | None]:
    markup = Markup(M3, tools.names)
    found = [*markup.feed(text), *markup.close()]
    return [
        Written(each.name, tools.schema(each.name).typed(each.parameters)) if isinstance(each, Invocation) else None
        for each in found
    ]


def _calls(said: str, tools: OfferedTools) -> list[Written | None]:
    """One, or several in JSON: in a list, or one after the other."""
    if said.startswith("["):
        return [_json(raw) for raw in _listed(said)] or [None]
    if said.startswith("{"):
        return [_json(part) for part in apart(said.encode())]
    return [_call(said, tools)]


def _listed(said: str) -> list[Raw]:
    try:
        return _LIST.decode(said)
    except UNREADABLE:
        return []


def _call(said: str, tools: OfferedTools) -> Written | None:
    found, pattern = FUNCTIONS.fullmatch(said), PARAMETER
    if found is None:
        found, pattern = NAMED.fullmatch(said), PAIR
    return None if found is None else _typed(found[1], found[2], tools, pattern)


def _typed(name: str, said: str, tools: OfferedTools, pattern: re.Pattern[str]) -> Written | None:
    values = _pairs(said, pattern)
    if values is None:
        return None
    return Written(name, tools.schema(name).typed(starmap(_parameter, values)))


def _parameter(key: str, *told: str) -> Parameter:
    *about, value = told
    return Parameter(key.strip(), value, literal=about == LITERAL)


def _json(said: bytes | Raw) -> Written | None:
    try:
        call = _JSON.decode(said)
        return _given(call.name, _text(bytes(call.arguments) or bytes(call.parameters)))
    except UNREADABLE:
        return None


def _given(name: str, said: str) -> Written | None:
    arguments = Arguments()
    arguments.feed(said.strip())
    try:
        return Written(name, arguments.close()[0])
    except UpstreamProtocolError:
        return None


def _text(raw: bytes) -> str:
    """Arguments are an object, or (some models) the text of one."""
    return msgspec.json.decode(raw, type=str) if raw.startswith(b'"') else raw.decode()


def _pairs(said: str, pattern: re.Pattern[str]) -> list[tuple[str, ...]] | None:
    """Names and what belongs to them; None where something else stands between."""
    found: list[tuple[str, ...]] = []
    place = 0
    while (match := pattern.match(said, place)) is not None:
        found.append(match.groups())
        place = match.end()
    return found if not said[place:].strip() else None
