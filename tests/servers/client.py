"""A client of the Messages API that hides nothing: statuses, headers, and every server-sent event as it came."""

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx

MODEL = "claude-sonnet-4-5"
# A bridge under test speaks plain HTTP: reading the certificate authorities would be most of what a client costs.
NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
TOOL = {
    "name": "get_weather",
    "description": "The weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CLOCK = {"name": "get_time", "input_schema": {"type": "object", "properties": {"zone": {"type": "string"}}}}


class Event(NamedTuple):
    name: str
    data: dict[str, Any]


class Client:
    def __init__(self, url: str, api_key: str) -> None:
        self.api_key = api_key
        # Many threads may share it: httpx closes connections above its limits that another thread has just got. The
        # server closes those that have been idle for 75 seconds.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=20)
        self.http = httpx.Client(
            base_url=url, headers={"x-api-key": api_key}, timeout=30, verify=NO_AUTHORITIES, limits=limits
        )

    def close(self) -> None:
        self.http.close()

    def ask(self, *messages: object, headers: Mapping[str, str] | None = None, **fields: Any) -> httpx.Response:
        return self.http.post("/v1/messages", json=body(*messages, **fields), headers=dict(headers or {}))

    def events(self, *messages: object, headers: Mapping[str, str] | None = None, **fields: Any) -> list[Event]:
        """All events of a stream that is expected to begin."""
        with self.stream(*messages, headers=headers, **fields) as (response, events):
            assert response.status_code == 200, response.read()
            return list(events)

    @contextmanager
    def stream(
        self, *messages: object, headers: Mapping[str, str] | None = None, **fields: Any
    ) -> Iterator[tuple[httpx.Response, Iterator[Event]]]:
        asked = body(*messages, stream=True, **fields)
        with self.http.stream("POST", "/v1/messages", json=asked, headers=dict(headers or {})) as response:
            yield response, read_events(response)

    def conversations(self) -> list[dict[str, Any]]:
        return self.get("/v1/conversations?limit=1000")["data"]  # type: ignore[no-any-return]

    def mappings(self, conversation: str) -> list[dict[str, Any]]:
        return self.get(f"/v1/conversations/{conversation}/tool-mappings?limit=1000")["data"]  # type: ignore[no-any-return]

    def get(self, path: str) -> Any:
        response = self.http.get(path)
        assert response.status_code == 200, response.text
        return response.json()


def body(*messages: object, **fields: Any) -> dict[str, Any]:
    """Strings are what the user says."""
    said = [{"role": "user", "content": message} if isinstance(message, str) else message for message in messages]
    return {"model": MODEL, "max_tokens": 100, "messages": said, **fields}


def result(tool_use_id: str, content: object = "sunny", **more: Any) -> dict[str, Any]:
    """A user message that answers one call."""
    block = {"type": "tool_result", "tool_use_id": tool_use_id, "content": content, **more}
    return {"role": "user", "content": [block]}


def read_events(response: httpx.Response) -> Iterator[Event]:
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield Event(name, json.loads(line.removeprefix("data: ")))
        elif line.startswith(":"):
            yield Event("comment", {"text": line[1:].strip()})


def folded(events: list[Event]) -> list[dict[str, Any]]:
    """The content blocks that a stream describes; a stream that breaks the grammar fails here."""
    blocks: list[dict[str, Any]] = []
    opened: int | None = None
    arguments = ""
    for name, data in events:
        match name:
            case "content_block_start":
                assert opened is None, "two blocks are open"
                assert data["index"] == len(blocks), "the indexes have a hole"
                opened, arguments = data["index"], ""
                blocks.append(dict(data["content_block"]))
            case "content_block_delta":
                assert data["index"] == opened, "a delta for a block that is not open"
                delta = data["delta"]
                match delta["type"]:
                    case "text_delta":
                        blocks[-1]["text"] += delta["text"]
                    case "thinking_delta":
                        blocks[-1]["thinking"] += delta["thinking"]
                    case "signature_delta":
                        blocks[-1]["signature"] = delta["signature"]
                    case "input_json_delta":
                        arguments += delta["partial_json"]
            case "content_block_stop":
                assert data["index"] == opened, "a stop for a block that is not open"
                opened = None
                if blocks[-1]["type"] == "tool_use":
                    blocks[-1]["input"] = json.loads(arguments or "{}")
    terminators = [name for name, _ in events if name in ("message_stop", "error")]
    assert len(terminators) == 1, terminators
    assert events[-1].name == terminators[0]
    assert opened is None or terminators == ["error"]
    return blocks


def names(events: list[Event]) -> list[str]:
    return [event.name for event in events]


def until(events: Iterator[Event], name: str) -> list[Event]:
    """What comes up to the first event of this name; whoever asks may read on."""
    seen: list[Event] = []
    for event in events:
        seen.append(event)
        if event.name == name:
            return seen
    raise AssertionError(f"no {name} in {names(seen)}")
