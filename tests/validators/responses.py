"""OpenAI Responses (and xAI's): input items, their pairing, their ids."""

from collections.abc import Iterator

from tests.validators.shapes import NAME, Json, blank, decode, duplicates, is_object, schema_object, unknown, words

TOP = words(
    "model input instructions tools tool_choice parallel_tool_calls stream max_output_tokens temperature top_p "
    "user metadata text reasoning include store truncation prompt_cache_key safety_identifier service_tier "
    "previous_response_id stream_options max_tool_calls prompt_cache_retention prompt_cache_options"
)
ITEMS = {
    "message": frozenset({"type", "role", "content", "id", "status", "phase"}),
    "function_call": frozenset({"type", "call_id", "name", "arguments", "id", "status"}),
    "function_call_output": frozenset({"type", "call_id", "output", "id", "status"}),
    "reasoning": frozenset({"type", "id", "summary", "content", "encrypted_content", "status"}),
    "web_search_call": frozenset({"type", "id", "status", "action"}),
}
PREFIXES = {"function_call": "fc", "reasoning": "rs", "message": "msg", "web_search_call": "ws"}
PARTS = {
    "user": {"input_text", "input_image", "input_file"},
    "system": {"input_text"},
    "developer": {"input_text"},
    "assistant": {"output_text", "refusal"},
}


def validate(body: bytes) -> list[str]:
    request = decode(body)
    items = request.get("input", [])
    return [
        *unknown(request, TOP, "body"),
        *_tools(request),
        *(each for index, item in enumerate(items) for each in _item(item, index)),
        *_pairing(items),
        *_order(items),
        *_reasoning(items, stored=request.get("store") is not False),
        *(f"Duplicate item found with id {id_}" for id_ in duplicates([i["id"] for i in items if i.get("id")])),
    ]


def _tools(request: Json) -> Iterator[str]:
    tools = [tool for tool in request.get("tools", []) if tool.get("type") == "function"]
    names = [tool.get("name", "") for tool in tools]
    for index, tool in enumerate(tools):
        yield from unknown(tool, frozenset({"type", "name", "description", "parameters", "strict"}), f"tools[{index}]")
        if not NAME.fullmatch(names[index]):
            yield f"Invalid 'tools[{index}].name': {names[index]!r}"
        yield from schema_object(tool.get("parameters"), f"tools[{index}]")
    yield from (f"tools: {name!r} is declared twice" for name in duplicates(names))
    choice = request.get("tool_choice")
    if choice is not None and not request.get("tools"):
        yield "Tool choice must not be specified without tools"
    if isinstance(choice, dict) and choice.get("type") == "function" and choice.get("name") not in names:
        yield f"Tool choice 'function' not found in 'tools' parameter: {choice.get('name')}"


def _item(item: Json, index: int) -> Iterator[str]:
    path = f"input[{index}]"
    kind = item.get("type", "message")
    if kind not in ITEMS:
        yield f"Invalid value: {kind!r} at {path}.type"
        return
    yield from unknown(item, ITEMS[kind], path)
    if item.get("id") and not item["id"].startswith(PREFIXES.get(kind, "")):
        yield f"Invalid '{path}.id': {item['id']!r}. Expected an ID that begins with {PREFIXES[kind]!r}"
    if kind == "message":
        yield from _content(item, path)
    if kind in ("function_call", "function_call_output") and not 0 < len(item.get("call_id", "")) <= 64:
        yield f"Invalid '{path}.call_id': string too long or empty: {item.get('call_id')!r}"
    if kind == "function_call":
        if not NAME.fullmatch(item.get("name", "")):
            yield f"Invalid '{path}.name': {item.get('name')!r}"
        if not is_object(item.get("arguments")):
            yield f"{path}.arguments: not a JSON object"
    if kind == "function_call_output":
        output = item.get("output")
        parts = output if isinstance(output, list) else [{"type": "input_text", "text": output}]
        yield from _parts(parts, path, PARTS["user"])


def _content(item: Json, path: str) -> Iterator[str]:
    role, content = item.get("role"), item.get("content")
    if role not in PARTS:
        yield f"Invalid value: {role!r} at {path}.role"
    elif isinstance(content, list):
        yield from _parts(content, path, PARTS[role])
    elif blank(content):
        yield f"{path}.content: empty"


def _parts(parts: list[Json], path: str, allowed: set[str]) -> Iterator[str]:
    if not parts:
        yield f"{path}.content: empty array"
    for index, part in enumerate(parts):
        if part.get("type") not in allowed:
            yield f"Invalid value: {part.get('type')!r} at {path}.content[{index}].type"
        if part.get("type", "").endswith("_text") and blank(part.get("text")):
            yield f"{path}.content[{index}]: empty text"


def _pairing(items: list[Json]) -> Iterator[str]:
    calls = [item.get("call_id", "") for item in items if item.get("type") == "function_call"]
    yield from (f"call_id {id_!r} names two calls" for id_ in duplicates(calls))
    open_: list[str] = []
    for index, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "function_call":
            open_.append(item.get("call_id", ""))
        elif kind == "function_call_output":
            if item.get("call_id") not in open_:
                yield f"No tool call found for function call output with call_id {item.get('call_id')}."
            else:
                open_.remove(item["call_id"])
        elif kind == "message" and item.get("role") != "assistant" and open_:
            yield f"input[{index}]: No tool output found for function call {open_[0]}."
            open_.clear()
    if open_:
        yield f"No tool output found for function call {open_[0]}."


def _order(items: list[Json]) -> Iterator[str]:
    """The first item is the user's, and no answer follows an answer without calls in between being answered."""
    if not items:
        yield "input: empty"
    elif items[0].get("role") == "assistant" or items[0].get("type") in ("function_call", "reasoning"):
        yield f"the first item is {items[0].get('type')} of {items[0].get('role')}"


def _reasoning(items: list[Json], *, stored: bool) -> Iterator[str]:
    for index, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        if not isinstance(item.get("summary"), list):
            yield f"Missing required parameter: 'input[{index}].summary'."
        if not stored and not item.get("encrypted_content"):
            yield f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false."
        following = items[index + 1] if index + 1 < len(items) else {}
        made = following.get("type") in ("function_call", "reasoning", "web_search_call")
        if not made and following.get("role") != "assistant":
            yield f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
