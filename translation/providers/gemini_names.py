"""Gemini's fields by the names that Python gives them: gateways that write its objects with those are read, too."""

import re

import msgspec
from msgspec import Raw

NAMES = (
    "bool_value", "json_path", "number_value", "partial_args", "string_value", "will_continue",  # of a call in pieces
    "block_reason", "block_reason_message", "cached_content_token_count", "candidates_token_count",
    "code_execution_result", "executable_code", "finish_message", "finish_reason", "function_call",
    "grounding_chunk_indices", "grounding_chunks", "grounding_metadata", "grounding_supports", "inline_data",
    "mime_type", "model_version", "prompt_feedback", "prompt_token_count", "response_id", "retry_delay",
    "thought_signature", "thoughts_token_count", "tool_call", "tool_response", "tool_use_prompt_token_count",
    "usage_metadata", "web_search_queries",
)  # fmt: skip
SNAKE = re.compile(rb'"(?:%b)"\s*:' % "|".join(NAMES).encode())
ARGUMENTS = "args"  # of a call, whose names are the tool's

_CAMEL = {name: re.sub("_([a-z])", lambda letter: letter[1].upper(), name) for name in NAMES}
_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode


def camel(data: bytes) -> bytes:
    """JSON with Google's own names; the same bytes where it has them."""
    return _renamed(data) if SNAKE.search(data) else data


def _renamed(data: bytes) -> bytes:
    match data.lstrip()[:1]:
        case b"{":
            given = _fields(data).items()
            return msgspec.json.encode(
                {
                    _CAMEL.get(name, name): value if name == ARGUMENTS else Raw(_renamed(bytes(value)))
                    for name, value in given
                }
            )
        case b"[":
            return msgspec.json.encode([Raw(_renamed(bytes(item))) for item in _items(data)])
        case _:
            return data
