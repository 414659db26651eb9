"""The scripted upstream of the demo: every provider's dialect, one server. A story tells it what to say next."""

import json
import random
import re
import threading
from collections import deque
from typing import Any, NamedTuple
from zlib import crc32

from tests.e2e.dialects import anthropic, chat, gemini, responses
from tests.e2e.dialects.providers import BY_MODEL
from tests.e2e.dialects.script import Call, Chain, Speech, Step
from tests.servers.script import Abort, Answer, Pause, Raw, Recorded, json_answer
from tests.servers.script import Step as Wire
from tests.servers.upstream import UNSCRIPTED, ScriptedUpstream

IN_PATH = re.compile(r"/models/(?P<model>[^:]+):(?P<stream>stream)?")
WRITES = 12  # pieces of an answer on the wire
LONG = 30.0  # seconds of silence: the client leaves before


class Line(NamedTuple):
    """What the model says next, or how it fails."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thought: str = ""
    status: int = 200
    message: str = ""  # of an error
    cut: bool = False  # the connection breaks in the middle
    hang: bool = False  # it says the first half, and nothing more


class Spoken(Speech):
    """An answer as the dialects of the tests render it."""

    line: Line

    @property
    def step(self) -> Step:
        return Step(self.line.text, self.line.calls)

    @property
    def thought(self) -> str:
        return self.line.thought or "Nothing is left to look up."


class Cast(ScriptedUpstream):
    """Finds the story of a request by its opening, which every request of it holds."""

    def __init__(self, pace: float = 1.0) -> None:
        super().__init__()
        self._pace = pace
        self._lines: dict[str, deque[Line]] = {}
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def expect(self, opening: str, *lines: Line) -> None:
        with self._lock:
            self._lines.setdefault(opening, deque()).extend(lines)

    def _answer_for(self, request: Recorded) -> Answer | Raw:
        if request.path.startswith("/tools/"):
            return self._tool(request)
        body = request.body.decode("utf-8", "replace")
        with self._lock:
            # A sub-agent's opening begins with that of its main loop.
            opening = max((key for key in self._lines if key in body), key=len, default="")
            if not opening or not self._lines[opening]:
                return UNSCRIPTED
            line = self._lines[opening].popleft()
            number = self._counts[opening] = self._counts.get(opening, -1) + 1
        in_path = IN_PATH.search(request.path)
        asked = json.loads(body)
        provider = BY_MODEL[in_path["model"] if in_path else asked["model"]]
        stream = bool(in_path["stream"]) if in_path else asked.get("stream", False)
        if line.status != 200:
            return _failure(line)
        spoken = Spoken(provider.name, Chain(f"{crc32(opening.encode()) % 10**6:06d}", "own"), number, stream)
        spoken.line = line
        answer = provider.dialect.answer(spoken)
        return self._paced(_counted(answer, provider.model, len(body), number, line), line)

    def _tool(self, request: Recorded) -> Answer:
        """Hosted tools: what they are asked, they answer."""
        asked = json.loads(request.body or b"{}")
        if request.path.endswith("/stock"):
            return json_answer({"sku": asked.get("sku"), "in_stock": len(str(asked)) % 40, "warehouse": "Rotterdam"})
        return json_answer({"error": "the carrier's API is down for maintenance"}, 503)

    def _paced(self, answer: Answer, line: Line) -> Answer:
        """As a model speaks: a while before the first token, then piece by piece."""
        chance = random.Random(line.text or str(line.calls))  # noqa: S311 - not for secrets
        pieces = [step for step in answer.steps if isinstance(step, bytes)]
        size = -(-len(pieces) // WRITES)
        joined = [b"".join(pieces[start : start + size]) for start in range(0, len(pieces), size)]
        if line.cut or line.hang:
            joined = joined[: max(1, len(joined) // 2)]
        steps: list[Wire] = [Pause(self._pace * chance.uniform(0.03, 0.3))]
        for piece in joined:
            steps += [piece, Pause(self._pace * chance.uniform(0.001, 0.02))]
        steps += [Abort()] if line.cut else [Pause(LONG)] if line.hang else []
        return Answer(tuple(steps), answer.status, answer.headers)


def _failure(line: Line) -> Answer:
    headers = {"retry-after": "20"} if line.status == 429 else {}
    error = {"type": "invalid_request_error" if line.status == 400 else "server_error", "message": line.message}
    return json_answer({"type": "error", "error": error}, line.status, headers)


def _counted(answer: Answer, model: str, size: int, number: int, line: Line) -> Answer:
    """The dialects of the tests always report the same figures; here they follow from what was said."""
    read, written = size // 4, (len(line.text) + len(line.thought) + len(json.dumps(line.calls))) // 4 + 1
    cached, thought = (read * 8 // 10 if number else 0), len(line.thought) // 4
    changes = [(b'"model": "m"', f'"model": "{model}"'.encode()), (b'"modelVersion": "m"', b'"modelVersion": "3"')]
    changes += [
        (json.dumps(before).encode(), json.dumps(after).encode())
        for before, after in (
            (chat.USAGE, _chat_usage(read, written, cached, thought)),
            (responses.USAGE, _responses_usage(read, written, cached, thought)),
            (gemini.USAGE, _gemini_usage(read, written, cached, thought)),
            (anthropic.USAGE, _anthropic_usage(read, written, cached, thought)),
        )
    ]
    return Answer(tuple(_changed(step, changes) for step in answer.steps), answer.status, answer.headers)


def _changed(step: Wire, changes: list[tuple[bytes, bytes]]) -> Wire:
    if isinstance(step, bytes):
        for before, after in changes:
            step = step.replace(before, after)
    return step


def _chat_usage(read: int, written: int, cached: int, thought: int) -> dict[str, Any]:
    details = {"prompt_tokens_details": {"cached_tokens": cached}}
    more = {"completion_tokens_details": {"reasoning_tokens": thought}}
    total = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return {**total, **details, **more}


def _responses_usage(read: int, written: int, cached: int, thought: int) -> dict[str, Any]:
    return {
        "input_tokens": read, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": thought}, "total_tokens": read + written,
    }  # fmt: skip


def _gemini_usage(read: int, written: int, cached: int, thought: int) -> dict[str, Any]:
    return {
        "promptTokenCount": read, "cachedContentTokenCount": cached, "candidatesTokenCount": written - thought,
        "thoughtsTokenCount": thought, "totalTokenCount": read + written,
    }  # fmt: skip


def _anthropic_usage(read: int, written: int, cached: int, thought: int) -> dict[str, Any]:
    return {
        "input_tokens": read - cached, "cache_creation_input_tokens": 0, "cache_read_input_tokens": cached,
        "output_tokens": written, "output_tokens_details": {"thinking_tokens": thought},
    }  # fmt: skip
