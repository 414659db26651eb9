"""A schema for the whole answer as OpenAI's family takes it.

`schema must be a JSON Schema of 'type: "object"'`: an answer that is a list, or one of several things, which Anthropic
allows, has to be asked for in words there.
"""

import msgspec

from translation.function_schema import with_items
from translation.schema_patterns import WORDED, with_portable_patterns
from translation.schema_shape import NONE, Flattener, Node
from translation.values import Note, Request

NEVER_AT_ROOT = ("anyOf", "oneOf", "enum", "not")
ADVICE = "Answer with one JSON {} that matches this JSON Schema, and nothing else:\n{}"

ANY_OBJECT = "Answer with one JSON object, and nothing else."  # what a chat client's `json_object` means


def object_schema(schema: bytes) -> bytes:
    """As the client wrote it, or with what its root refers to in its place; b"" when it is not an object's."""
    root: Node = msgspec.json.decode(schema)
    flat, _ = Flattener(root, len(schema), lambda place, what: None).flat(root, NONE, None)
    kind = flat.get("type", "object" if "properties" in flat else "")
    if kind != "object" or any(keyword in flat for keyword in NEVER_AT_ROOT):
        return b""
    wanted = flat | {"type": kind}
    return schema if wanted == root else msgspec.json.encode(wanted)


def told_schema(schema: bytes) -> tuple[bytes, list[Note]]:
    """What of an object's schema can be sent, and what the turn records of it."""
    portable = with_portable_patterns(schema)
    what = WORDED.format("output_config.format")
    return with_items(portable), [] if portable is schema else [Note("degradation", "schema-lowered", what)]


def advice(schema: bytes) -> str:
    """The same in words."""
    return ADVICE.format("object" if object_schema(schema) else "value", schema.decode())


def wants_any_object(request: Request) -> bool:
    """Whether a chat client asks for JSON without saying of what shape."""
    return b'"response_format"' in request.extras
