"""Regular expressions in a schema that providers refuse, and with them the whole request.

`regex lookaround is not supported` is OpenAI's, `'^[\\p{L}]+$' is not a 'regex'` OpenAI's, Azure's and DeepSeek's: each
checks with an engine of its own. Claude Code's `Artifact` has such a pattern, Zod writes one for e-mail addresses. They
go into the description, where the model still reads them.
"""

import re
from typing import Any

import msgspec

from translation.schema_shape import inside
from translation.unreadable import UNREADABLE

LONGEST, DEEPEST = 2_000, 50  # characters of a pattern that is looked into, and groups in each other
ESCAPE = r"\\(?:[dDwWsSfnrtv]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[^0-9A-Za-z])"
SET = rf"\[(?!\^?\])(?:[^\[\]\\]|{ESCAPE})+\]"
REPEATED = r"(?:[*+?]|\{[0-9]{1,4}(?:,[0-9]{0,4})?\})\??"
# No engine is asked: to compile what a client makes up may take a second for each ten kilobytes. There is one way to
# read each character, so that nothing is tried twice.
READABLE = re.compile(rf"(?:[\^$|]|\\[bB]|\((?:\?:)?|(?:[^\\\[\](){{}}*+?^$|]|{ESCAPE}|{SET}|\))(?:{REPEATED})?)*")
BRACKET = re.compile(r"[()]")
PIECES = re.compile(rf"\\.|({SET})", re.DOTALL)  # of what is readable: all that may hold brackets without a meaning
ESCAPED = re.compile(r"\\.", re.DOTALL)
OF_SETS = re.compile(r"--|&&|~~|\|\|")  # what newer engines do with two sets in one
RANGE = re.compile(rf"({ESCAPE}|[^\\])-({ESCAPE}|[^\\])")
COUNTED = re.compile(r"\{([0-9]+),([0-9]+)\}")
WORDED = "{}: a pattern that providers refuse went into the description"  # what the turn records


def is_portable(pattern: str) -> bool:
    """Whether every engine reads it, and in the same way."""
    if len(pattern) > LONGEST or READABLE.fullmatch(pattern) is None or any(map(_is_odd, PIECES.findall(pattern))):
        return False
    bare = PIECES.sub("", pattern)
    return _is_balanced(bare) and all(int(least) <= int(most) for least, most in COUNTED.findall(bare))


def _is_odd(found: str) -> bool:
    inner = found[1:-1].removeprefix("^")
    if OF_SETS.search(ESCAPED.sub("", inner)):
        return True
    return any(not 0 <= _code(first) <= _code(last) for first, last in RANGE.findall(inner))


def _code(end: str) -> int:
    """Of a character at the end of a range; -1 for what is none, or has a name."""
    if len(end) > 2:
        return int.from_bytes(bytes.fromhex(end[2:]))
    return -1 if end[0] == "\\" and end[1].isalpha() else ord(end[-1])


def _is_balanced(bare: str) -> bool:
    depth = 0
    for bracket in BRACKET.findall(bare):
        depth += 1 if bracket == "(" else -1
        if not 0 <= depth <= DEEPEST:
            return False
    return depth == 0


def with_portable_patterns(schema: bytes) -> bytes:
    """The same object where all of them are."""
    if b'"pattern"' not in schema:
        return schema
    try:
        root = msgspec.json.decode(schema)
        wanted = _worded(root)
    except UNREADABLE:  # nested too deeply, or a number that no computer holds
        return schema
    return schema if wanted == root else msgspec.json.encode(wanted)


def _worded(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    out = {keyword: inside(keyword, value, _worded) for keyword, value in node.items()}
    pattern = out.get("pattern")
    if isinstance(pattern, str) and not is_portable(pattern):
        del out["pattern"]
        out["description"] = f"{out.get('description', '')} (pattern: {pattern})".lstrip()
    return out
