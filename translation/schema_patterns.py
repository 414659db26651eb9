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

LONGEST = 2_000  # characters of a pattern that is looked into
EXTENDED = re.compile(r"(?<!\\)(?:\\\\)*+\(\?(?!:)")  # looks around, names a group, sets a flag
PIECES = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*+", re.DOTALL)  # an escape, or a set to its end
ESCAPED = re.compile(r"\\.", re.DOTALL)
OF_SETS = re.compile(r"\[|--|&&|~~|\|\|")  # a set in a set, or what newer engines do with two of them
WORDED = "{}: a pattern that providers refuse went into the description"  # what the turn records


def is_portable(pattern: str) -> bool:
    """Whether every engine reads it, and in the same way."""
    if len(pattern) > LONGEST or EXTENDED.search(pattern) or any(map(_is_odd, PIECES.findall(pattern))):
        return False
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _is_odd(piece: str) -> bool:
    return piece.startswith("[") and OF_SETS.search(ESCAPED.sub("", piece[1:])) is not None


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
