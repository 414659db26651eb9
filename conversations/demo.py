"""The built-in demo model: an OpenAI-compatible upstream on a loopback port of this process, over real HTTP.

Deterministic. Offered tools and not yet given results, it calls the first one (the first two in parallel when two are
offered) with arguments valid against their schemas; given results, it answers with them. It streams and reports usage.
"""

import asyncio
from base64 import b64encode
from hashlib import sha256
from struct import pack
from typing import Any, cast

import httptools
import msgspec

from translation.unreadable import UNREADABLE

MODEL = "demo"
# Claude Code offers tools that start other conversations with this very model, or change files: the demo rather reads.
RANKS = dict.fromkeys(("Read", "Glob", "Grep", "LS"), 0) | dict.fromkeys(
    (
        "Agent",
        "Task",
        "Workflow",
        "Skill",
        "ScheduleWakeup",
        "ListAgents",
        "ReportFindings",
        "ToolSearch",
        "Edit",
        "Write",
    ),
    2,
)
Json = dict[str, Any]


class DemoServer:
    """Started with the process; `url` is what the `demo` upstream points at."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self.url = ""

    async def start(self) -> None:
        self._server = await asyncio.get_running_loop().create_server(_Exchange, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()


class _Exchange(asyncio.Protocol):
    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""
        self._path = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is one without saying so

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.close()

    def on_url(self, url: bytes) -> None:
        self._path = url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        assert self._transport is not None
        body, self._body = self._body, b""
        try:
            request = msgspec.json.decode(body)
            content, kind = embed(request) if self._path.endswith(b"/embeddings") else answer(request)
        except (*UNREADABLE, KeyError, TypeError, AttributeError) as error:
            content, kind = _json({"error": {"message": f"demo: {error}", "type": "invalid_request_error"}}), b""
            self._transport.write(b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ")
        else:
            self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: " % kind)
        self._transport.write(b"%d\r\n\r\n%b" % (len(content), content))


def answer(request: Json) -> tuple[bytes, bytes]:
    """The body and its content type."""
    text, calls = reply(request)
    usage = _usage(request, text, calls)
    if not request.get("stream"):
        message: Json = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return _json(
            {"id": "demo", "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": usage}
        ), b"application/json"
    chunks = [_chunk({"role": "assistant", "content": ""})]
    chunks += [_chunk({"content": word}) for word in _words(text)]
    for index, call in enumerate(calls):
        arguments = call["function"]["arguments"]
        head = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        chunks.append(_chunk({"tool_calls": [head]}))
        for piece in (arguments[: len(arguments) // 2], arguments[len(arguments) // 2 :]):
            chunks.append(_chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    chunks.append(_chunk({}, "tool_calls" if calls else "stop"))
    chunks.append({**_chunk({}), "choices": [], "usage": usage})
    return b"".join(b"data: %b\n\n" % _json(chunk) for chunk in chunks) + b"data: [DONE]\n\n", b"text/event-stream"


def embed(request: Json) -> tuple[bytes, bytes]:
    """A direction for each text that depends on nothing but the text."""
    given = request["input"]
    texts = given if isinstance(given, list) and given and not isinstance(given[0], int) else [given]
    data = []
    for index, text in enumerate(texts):
        numbers = [byte / 128 - 1 for byte in sha256(str(text).encode()).digest()]
        coded = b64encode(pack(f"<{len(numbers)}f", *numbers)).decode()
        vector = coded if request.get("encoding_format") == "base64" else numbers
        data.append({"object": "embedding", "index": index, "embedding": vector})
    tokens = max(len(_json(texts)) // 4, 1)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return _json({"object": "list", "model": MODEL, "data": data, "usage": usage}), b"application/json"


def reply(request: Json) -> tuple[str, list[Json]]:
    """What the demo model says to a conversation."""
    messages: list[Json] = request["messages"]
    results = _results(messages)
    if results:
        said = "; ".join(f"{name} returned: {content}" for name, content in results)
        return f"This is the demo model of Toolbridge. {said}", []
    tools = [tool["function"] for tool in request.get("tools") or [] if tool.get("type") == "function"]
    forced = request.get("tool_choice")
    if forced == "none":
        tools = []
    if isinstance(forced, dict):
        tools = [tool for tool in tools if tool["name"] == forced["function"]["name"]]
    tools.sort(key=lambda tool: RANKS.get(tool["name"], 1))
    harmless = [tool for tool in tools if RANKS.get(tool["name"], 1) < 2]
    tools = harmless or tools
    if tools:
        count = 1 if request.get("parallel_tool_calls") is False else 2
        return "", [_call(number, tool) for number, tool in enumerate(tools[:count])]
    return f"This is the demo model of Toolbridge. You said: {_text(messages[-1].get('content'))}", []


def _results(messages: list[Json]) -> list[tuple[str, str]]:
    """The tool results since the last assistant message, with the names of their tools."""
    names: dict[str, str] = {}
    results: list[tuple[str, str]] = []
    for message in messages:
        if message["role"] == "assistant":
            results = []
            for call in message.get("tool_calls") or []:
                names[call["id"]] = call["function"]["name"]
        elif message["role"] == "tool":
            results.append((names.get(message["tool_call_id"], "a tool"), _text(message["content"])))
    return results


def _call(number: int, tool: Json) -> Json:
    arguments = _json(example(tool.get("parameters") or {}, tool.get("parameters") or {})).decode()
    return {"id": f"call_{number}", "type": "function", "function": {"name": tool["name"], "arguments": arguments}}


def example(schema: Any, root: Json, depth: int = 0) -> Any:  # noqa: C901, PLR0911, PLR0912 - one line per keyword
    """A value that is valid against a JSON Schema of the kind that tools have."""
    if not isinstance(schema, dict) or depth > 12:
        return {} if depth == 0 else "demo"
    if "$ref" in schema:
        return example(_resolve(schema["$ref"], root), root, depth + 1)
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    if schema.get("enum"):
        return schema["enum"][0]
    for keyword in ("anyOf", "oneOf", "allOf"):
        if schema.get(keyword):
            return example(schema[keyword][0], root, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema or depth == 0 else "string")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "object":
            wanted = schema.get("required") or []
            properties = schema.get("properties") or {}
            return {name: example(properties.get(name, {"type": "string"}), root, depth + 1) for name in wanted}
        case "array":
            return [example(schema.get("items", {}), root, depth + 1) for _ in range(schema.get("minItems", 0))]
        case "integer" | "number":
            least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1 if "exclusiveMinimum" in schema else 1)
            return min(least, schema["maximum"]) if "maximum" in schema else least
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "demo".ljust(schema.get("minLength", 0), "o")[: schema.get("maxLength", 1000)]


def _resolve(ref: object, root: Json) -> Any:
    found: Any = root
    for part in str(ref).removeprefix("#/").split("/"):
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return found


def _text(content: Any) -> str:
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content if isinstance(part, dict))
    return str(content or "")


def _words(text: str) -> list[str]:
    return [word if number == 0 else f" {word}" for number, word in enumerate(text.split(" "))] if text else []


def _usage(request: Json, text: str, calls: list[Json]) -> Json:
    prompt = max(len(_json(request.get("messages"))) // 4, 1)
    completion = max((len(text) + sum(len(call["function"]["arguments"]) for call in calls)) // 4, 1)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _chunk(delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "demo", "object": "chat.completion.chunk", "model": MODEL, "choices": [choice]}


def _json(value: object) -> bytes:
    return msgspec.json.encode(value)
