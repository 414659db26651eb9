"""What a client of the Messages API may get: a legal stream with one terminator, a whole message, or an error."""

import json
import re
from typing import Any

ERRORS = {
    "invalid_request_error", "authentication_error", "billing_error", "permission_error", "not_found_error",
    "request_too_large", "rate_limit_error", "api_error", "timeout_error", "overloaded_error", "conflict_error",
}  # fmt: skip
STOP_REASONS = {
    "end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded",
}  # fmt: skip
# How a fault of ours would look: none of these is ever an answer.
OURS = re.compile(rb'Traceback \(most recent|File \\?"/[^"]+", line \d+|internal error|<struct |object at 0x')
DELTAS = {
    "text": {"text_delta": "text", "citations_delta": "citation"},
    "thinking": {"thinking_delta": "thinking", "signature_delta": "signature"},
    "tool_use": {"input_json_delta": "partial_json"},
    "server_tool_use": {"input_json_delta": "partial_json"},
    "mcp_tool_use": {"input_json_delta": "partial_json"},
}
Json = dict[str, Any]


def check_error(body: bytes) -> str:
    """An error in the API's shape; returns its type."""
    told = _loaded(body)
    assert told["type"] == "error", body[:500]
    assert told["error"]["type"] in ERRORS, body[:500]
    assert isinstance(told["error"]["message"], str) and told["error"]["message"], body[:500]
    assert re.fullmatch(r"req_\w{8,}", told["request_id"]), body[:500]
    assert not OURS.search(body), body[:2000]
    return str(told["error"]["type"])


def check_message(body: bytes, *, relayed: bool = False) -> Json:
    """A whole message. One that an upstream wrote itself is only as good as that, but it is one."""
    message: Json = _loaded(body)
    assert not OURS.search(body), body[:2000]
    assert message["type"] == "message", body[:500]
    assert isinstance(message["content"], list), body[:500]
    for block in message["content"]:
        assert isinstance(block, dict) and isinstance(block["type"], str), body[:500]
        if block["type"] == "tool_use" and not relayed:
            assert block["id"] and block["name"] and isinstance(block["input"], dict), body[:500]
    assert relayed or message["stop_reason"] in STOP_REASONS, body[:500]
    return message


def check_stream(body: bytes, *, relayed: bool = False) -> list[Json] | None:
    """The blocks of a stream with legal grammar; None if it ended in an error."""
    state = _Stream(relayed=relayed)
    assert body.endswith(b"\n\n"), body[-200:]
    assert not OURS.search(body), body[-2000:]
    for frame in body[:-2].split(b"\n\n"):
        if not frame.startswith(b":"):
            state.frame(frame)
    assert state.over, f"no terminator: {body[-500:]!r}"
    return None if state.over == "error" else state.blocks


class _Stream:
    def __init__(self, *, relayed: bool) -> None:
        self.blocks: list[Json] = []
        self.over = ""
        self._relayed = relayed
        self._started = False
        self._open = False
        self._arguments: list[str] = []
        self._reason: str | None = None

    def frame(self, frame: bytes) -> None:
        assert not self.over, f"after the terminator: {frame[:200]!r}"
        head, _, data = frame.partition(b"\ndata: ")
        name = head.removeprefix(b"event: ").decode()
        said = _loaded(data.replace(b"\ndata: ", b"\n"))
        assert said.get("type", name) == name or self._relayed, frame[:200]
        if name == "error":
            check_error(data)
            self.over = "error"
        elif (read := getattr(self, f"_{name}", None)) is not None:
            read(said)
        else:
            assert name == "ping" or self._relayed, frame[:200]

    def _message_start(self, said: Json) -> None:
        assert not self._started, "two message_start"
        self._started = True
        assert self._relayed or said["message"]["content"] == []

    def _content_block_start(self, said: Json) -> None:
        assert self._started and not self._open and self._reason is None, f"a block at the wrong place: {said}"
        assert said["index"] == len(self.blocks), f"the indexes have a hole: {said}"
        assert isinstance(said["content_block"]["type"], str)
        self.blocks.append(said["content_block"])
        self._open, self._arguments = True, []

    def _content_block_delta(self, said: Json) -> None:
        assert self._open and said["index"] == len(self.blocks) - 1, f"a delta outside of its block: {said}"
        block, delta = self.blocks[-1], said["delta"]
        field = DELTAS.get(block["type"], {}).get(delta["type"])
        if self._relayed:
            return
        assert field is not None, f"{delta['type']} in a block of {block['type']}"
        if field == "partial_json":
            self._arguments.append(delta[field])
        elif field != "citation":
            block[field] += delta[field]

    def _content_block_stop(self, said: Json) -> None:
        assert self._open and said["index"] == len(self.blocks) - 1, f"a stop outside of its block: {said}"
        self._open = False
        block = self.blocks[-1]
        if block["type"] == "tool_use" and not self._relayed:
            assert block["id"] and block["name"], block
            block["arguments"] = "".join(self._arguments)

    def _message_delta(self, said: Json) -> None:
        assert self._started and not self._open, "message_delta at the wrong place"
        self._reason = said["delta"].get("stop_reason") or self._reason
        assert self._relayed or self._reason in STOP_REASONS, said
        for block in self.blocks:
            # Only a call that the token limit cut off may be shown in part; clients do not run it.
            if "arguments" in block and self._reason == "tool_use":
                assert isinstance(_loaded(block["arguments"].encode() or b"{}"), dict), block

    def _message_stop(self, said: Json) -> None:
        assert self._reason is not None, "message_stop without a stop_reason"
        self.over = "message_stop"


def _loaded(data: bytes) -> Any:
    def refused(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(data.decode(), parse_constant=refused)
