"""The tags of MiniMax's two markup dialects, and the scanner that finds them in text cut anywhere.

M2 writes `<invoke name="X"><parameter name="p">v</parameter></invoke>` between `<minimax:tool_call>` tags. M3 puts a
token of its own before each tag and names parameters by the tag: `]<]minimax[>[<p>v]<]minimax[>[</p>`.
"""

import re
from collections.abc import Iterable

from msgspec import Struct

NAMESPACE = "]<]minimax[>["  # M3: one token of the model, so it cannot be part of a value
WINDOW = 320  # no tag is longer: what has not become one by then is text
# No `~` in an attribute: a template marker can never be a part of a tag. No `<` or `>`: a tag ends at its first `>`.
ATTRIBUTE = r"[^<>~]{1,200}"
ROLES = ("system", "developer", "user", "assistant", "ai", "tool", "root")


class Tag(Struct, frozen=True):
    kind: str  # think, unthink, wrap, unwrap, invoke, uninvoke, param, unparam or marker
    raw: str
    name: str = ""  # of the tool or the parameter


class Grammar(Struct, frozen=True):
    tag: re.Pattern[str]
    partial: re.Pattern[str]  # at the end of a text: what may yet become a tag, or a longer one
    namespaced: bool  # M3


class Scanner:
    """`feed` returns plain text and tags in order, and keeps back what may be the start of a tag."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._tail = ""

    def feed(self, text: str) -> list[str | Tag]:
        if not self._tail and SPECIAL.search(text) is None:
            return [text] if text else []
        return self._scan(self._tail + text, final=False)

    def close(self) -> list[str | Tag]:
        return self._scan(self._tail, final=True)

    @property
    def held(self) -> str:
        return self._tail

    def _scan(self, text: str, *, final: bool) -> list[str | Tag]:
        out: list[str | Tag] = []
        position = 0
        partial = self._grammar.partial
        held = len(text)
        for match in self._grammar.tag.finditer(text):
            if not final and partial.match(text, match.start()):
                held = match.start()
                break
            if match.start() > position:
                out.append(text[position : match.start()])
            out.append(_tag(match))
            position = match.end()
        else:
            growing = None if final else partial.search(text, max(position, len(text) - WINDOW))
            if growing is not None:
                held = growing.start()
        if held > position:
            out.append(text[position:held])
        self._tail = text[held:]
        return out


def _tag(match: re.Match[str]) -> Tag:
    kind = KINDS.get(match.lastgroup or "", match.lastgroup or "")
    name = ""
    if kind == "invoke":
        name = _attribute(match["tool"])
    elif kind == "param":
        name = _attribute(match["parameter"])
    elif kind == "unparam" and match["ending"]:
        name = match["ending"].strip()
    return Tag(kind, match[0], name)


def _attribute(text: str) -> str:
    """`"X"`, `'X'`, `X`, `"X" type="string"` and `"X` are all X."""
    text = text.strip()
    quote = text[:1]
    if quote in ('"', "'"):
        return text[1:].partition(quote)[0]
    return text.split(maxsplit=1)[0].rstrip("\"'") if text else ""


# ---------------------------------------------------------------- grammars

# Each alternative begins with a plain character, outside of any group: so the engine skips the text between tags.
SPECIAL = re.compile(r"[<\[\]]")
MARKERS = rf"\](?P<role>~b\](?:(?:{'|'.join(ROLES)})(?!\w))?\n?)|\](?P<begin>~!b\[)|\[(?P<end>e~\[)"
KINDS = {"role": "marker", "begin": "marker", "end": "marker", "bare_wrap": "wrap", "bare_unwrap": "unwrap"}


def _prefixes(literal: str, rest: str = "") -> str:
    """A pattern for each beginning of the literal, and for the whole of it with the rest: `a(?:b(?:c(?:rest)?)?)?`."""
    pattern = f"(?:{rest})?" if rest else ""
    for character in reversed(literal[1:]):
        pattern = f"(?:{re.escape(character)}{pattern})?"
    return re.escape(literal[0]) + pattern


def _growing(closed: Iterable[str], open_ended: Iterable[str]) -> re.Pattern[str]:
    """`closed`: tags that are complete with their last character."""
    markers = ("]~!b[", "[e~[")
    beginnings = [_prefixes(tag[:-1]) for tag in (*closed, *markers)]
    role = _prefixes("]~b]", "|".join(map(_prefixes, ROLES)))
    return re.compile(rf"(?:{'|'.join((*beginnings, role, *open_ended))})\Z")


NAMED = _prefixes("name", rf"\s{{0,8}}(?:=(?:{ATTRIBUTE})?)?")

M2 = Grammar(
    tag=re.compile(
        r"<(?P<think>think>)|<(?P<unthink>/think>)|<(?P<wrap>minimax:tool_call>)|<(?P<unwrap>/minimax:tool_call>)"
        rf"|<(?P<invoke>invoke\s{{1,8}}name\s{{0,8}}=(?P<tool>{ATTRIBUTE})>)|<(?P<uninvoke>/invoke>)"
        rf"|<(?P<param>parameter\s{{1,8}}name\s{{0,8}}=(?P<parameter>{ATTRIBUTE})>)|<(?P<unparam>/parameter(?P<ending>)>)"
        rf"|{MARKERS}"
    ),
    partial=_growing(
        ("<think>", "</think>", "<minimax:tool_call>", "</minimax:tool_call>", "</invoke>", "</parameter>"),
        (_prefixes(tag, rf"\s{{1,8}}(?:{NAMED})?") for tag in ("<invoke", "<parameter")),
    ),
    namespaced=False,
)

_NS = re.escape(NAMESPACE[1:]) + r"\s{0,8}"

M3 = Grammar(
    tag=re.compile(
        r"<(?P<think>(?:mm:)?think>)|<(?P<unthink>/(?:mm:)?think>)"
        r"|<(?P<bare_wrap>tool_call>)|<(?P<bare_unwrap>/tool_call>)"
        rf"|\](?P<wrap>{_NS}<tool_call>)|\](?P<unwrap>{_NS}</tool_call>)"
        rf"|\](?P<invoke>{_NS}<invoke\s{{1,8}}name\s{{0,8}}=(?P<tool>{ATTRIBUTE})>)|\](?P<uninvoke>{_NS}</invoke>)"
        rf"|\](?P<unparam>{_NS}</(?P<ending>{ATTRIBUTE})>)|\](?P<param>{_NS}<(?P<parameter>{ATTRIBUTE})>)"
        rf"|\](?P<marker>{re.escape(NAMESPACE[1:])})|{MARKERS}"
    ),
    partial=_growing(
        ("<mm:think>", "</mm:think>", "<think>", "</think>", "<tool_call>", "</tool_call>"),
        (_prefixes(NAMESPACE, rf"\s{{0,8}}(?:<(?:{ATTRIBUTE})?)?"),),
    ),
    namespaced=True,
)
