"""A client of the script: the official SDK, with one of the ways in which clients tell what was said before."""

from typing import Any

from anthropic import Anthropic
from anthropic.types import Message

from tests.e2e.dialects.script import TOOLS, Chain, Json, result_of
from tests.servers.script import Recorded

# whole: everything as it came; stripped: without thinking; newest: only what is new, found by the tool ids;
# append: only what is new, by header; thread: only what is new, after `thread.previous_message_id`.
ECHOES = ("whole", "stripped", "newest", "append", "thread")
THREADS = "message-threads-2026-08-12"


class Conversation:
    def __init__(self, client: Anthropic, chain: Chain, *, stream: bool, echo: str = "whole") -> None:
        self._client = client
        self._chain = chain
        self._stream = stream
        self._echo = echo
        self._history: list[Any] = []
        self._new: list[Any] = [{"role": "user", "content": f"{chain.mark} Go."}]
        self._last: Message | None = None
        self.thinking: Json | None = {"type": "enabled", "budget_tokens": 2000}
        self.session = ""  # Claude Code's

    def turn(self, route: str) -> Message:
        """Ask, and make what the answer calls for the next turn's news."""
        message = self._asked(route)
        content = [block.model_dump(exclude_none=True) for block in message.content]
        if self._echo == "stripped":
            content = [block for block in content if "thinking" not in block["type"]]
        self._history += [*self._new, {"role": "assistant", "content": content}]
        number = sum(each["role"] == "assistant" for each in self._history) - 1
        calls = [block for block in message.content if block.type == "tool_use"]
        results = [
            {
                "type": "tool_result",
                "tool_use_id": call.id,
                "content": result_of(number, index).text,
                **({"is_error": True} if result_of(number, index).is_error else {}),
            }
            for index, call in enumerate(calls)
        ]
        # Clients answer in the order in which their tools were done, not in the order of the calls.
        self._new = [{"role": "user", "content": results[::-1] or "Go on."}]
        self._last = message
        return message

    def _asked(self, route: str) -> Message:
        fields: Json = {"model": route, "max_tokens": 4096, "tools": TOOLS, "messages": self._messages()}
        if self.thinking is not None:
            fields["thinking"] = self.thinking
        headers = self._headers()
        if self._echo == "thread":
            fields["extra_body"] = {"thread": self._thread()}
            if self._last is not None:
                del fields["tools"]
        if not self._stream:
            return self._client.messages.create(**fields, extra_headers=headers)
        with self._client.messages.stream(**fields, extra_headers=headers) as stream:
            return stream.get_final_message()

    def _messages(self) -> list[Any]:
        if self._last is None or self._echo in ("append", "thread"):
            return self._new
        lone = self._echo == "newest" and isinstance(self._new[0]["content"], list)
        return self._new if lone else [*self._history, *self._new]

    def _headers(self) -> dict[str, str]:
        if self._echo == "append":
            return {"X-Conversation-ID": self._chain.name, "X-Conversation-Mode": "append"}
        if self.session:
            return {"X-Claude-Code-Session-Id": self.session}
        return {"anthropic-beta": THREADS} if self._echo == "thread" else {}

    def _thread(self) -> Json:
        if self._last is None:
            return {"type": "create"}
        return {"type": "continue", "previous_message_id": self._last.id}


def bodies(requests: list[Recorded]) -> list[Json]:
    return [request.json() for request in requests]
