"""Patterns that look around, which OpenAI's family refuses in any schema: `regex lookaround is not supported`.

Zod writes one for each e-mail address. It goes into the description, where the model still reads it.
"""

import re
from typing import Any

import msgspec

from translation.schema_shape import inside
from translation.unreadable import UNREADABLE

LOOKAROUND = re.compile(r"(?<!\\)(?:\\\\)*+\(\?<?[=!]")
WORDED = "{}: a pattern that looks around, which is refused, went into the description"  # what the turn records


def without_lookaround(schema: bytes) -> bytes:
    """The same object where there is none."""
    if b"(?" not in schema:
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
    if isinstance(pattern, str) and LOOKAROUND.search(pattern):
        del out["pattern"]
        out["description"] = f"{out.get('description', '')} (pattern: {pattern})".lstrip()
    return out
