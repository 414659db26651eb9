"""Conversations as clients hold them, made from a seed, with what the store knows about them."""

from random import Random
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from translation.chain import chain
from translation.client.stored import parse_message
from translation.providers import gemini_state
from translation.providers import openai_responses_state as responses_state
from translation.state import Snapshot
from translation.values import Link, Message, Origin

Json = dict[str, Any]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
NAMES = (
    "Read",
    "Bash",
    "Edit",
    "mcp__a_server_with_a_long_name__and_a_tool_whose_name_goes_beyond_64_characters",
    "Fetch",
)
MODELS = {
    "openai": "gpt-5.5",
    "openai-responses": "gpt-5.5",
    "gemini": "gemini-3-pro",
    "anthropic": "claude-opus-5",
    "minimax": "MiniMax-M2",
    "deepseek": "deepseek-v4",
    "elsewhere": "unknown",
}
UPSTREAMS = tuple(MODELS)
TOOLS = [
    {
        "name": name,
        "description": f"The {name} tool",
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "limit": {"type": ["integer", "null"], "exclusiveMinimum": 0}},
            "required": ["path"],
            "additionalProperties": False,
        },
        **({"defer_loading": True} if name == "Fetch" else {}),
    }
    for name in NAMES
]


class Conversation(Struct, frozen=True):
    messages: list[Json]
    snapshot: Snapshot

    @property
    def stored(self) -> tuple[Message, ...]:
        return tuple(map(canonical, self.messages))

    def until(self, tool_use_id: str) -> tuple[Message, ...]:
        """What is stored up to and including the answer with this call."""
        for index, message in enumerate(self.messages):
            if any(block.get("id") == tool_use_id for block in blocks_of(message)):
                return self.stored[: index + 1]
        raise LookupError(tool_use_id)


def conversation(rng: Random, *, images: bool = True, system: bool = True, turns: int = 6) -> Conversation:
    """A legal conversation of up to `turns` answers that ends with the user."""
    writer = _Writer(rng, images=images, system=system)
    for _ in range(rng.randint(1, turns)):
        writer.turn()
    writer.user()
    return Conversation(writer.messages, writer.snapshot())


def canonical(message: Json) -> Message:
    return parse_message(message["role"], msgspec.json.encode(message["content"]))


def blocks_of(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def body(messages: list[Json], **fields: object) -> bytes:
    """The client's request with these messages."""
    return msgspec.json.encode({"model": "claude", "max_tokens": 1000, "tools": TOOLS, **fields, "messages": messages})


def call_state(upstream: str, turn: int, ordinal: int) -> bytes:
    """What such an upstream leaves with a call."""
    if upstream == "gemini" and ordinal == 0:
        return gemini_state.write(gemini_state.State(signature=f"sig{turn:05d}"))
    if upstream == "openai-responses":
        item = {"id": f"rs_{turn}", "type": "reasoning", "summary": [], "encrypted_content": f"gAAA{turn}"}
        reasoning = (Raw(msgspec.json.encode(item)),) if ordinal == 0 else ()
        return responses_state.pack(responses_state.State(f"fc_{turn}_{ordinal}", reasoning))
    if upstream in ("deepseek", "minimax"):
        return msgspec.json.encode({"reasoning_content": f"because {turn}"})
    return b""


def message_state(upstream: str, turn: int, content: list[Json]) -> bytes:
    """What such an upstream leaves with a whole answer."""
    if upstream == "gemini":
        kinds = {"text": gemini_state.Piece("text", 8), "tool_use": gemini_state.Piece("call")}
        pieces = [kinds[block["type"]] for block in content if block["type"] in kinds]
        first = next((n for n, piece in enumerate(pieces) if piece.kind == "call"), 0)
        signed = [replace(piece, signature=f"sig{turn:05d}") if n == first else piece for n, piece in enumerate(pieces)]
        return gemini_state.write(gemini_state.State(tuple(signed)))
    if upstream == "openai-responses" and content[-1]["type"] == "text":
        item = {"id": f"rs_{turn}_end", "type": "reasoning", "summary": [], "encrypted_content": f"gBBB{turn}"}
        length = len(content[-1]["text"])
        text = responses_state.TextState(length, f"msg_{turn}", reasoning=(Raw(msgspec.json.encode(item)),))
        return responses_state.pack(responses_state.State(texts=(text,)))
    return b""


class _Writer:
    def __init__(self, rng: Random, *, images: bool, system: bool) -> None:
        self._rng = rng
        self._images = images
        self._system = system
        self._count = 0
        self._links: dict[str, Link] = {}
        self._origins: dict[int, Origin] = {}
        self._made: dict[int, int] = {}  # index of an answer -> its turn
        self._waiting: list[str] = []
        self.messages: list[Json] = []

    def turn(self) -> None:
        self.user()
        self.assistant()

    def user(self) -> None:
        rng = self._rng
        content: list[Json] = [self._result(id_) for id_ in self._waiting]
        if rng.random() < 0.3:
            rng.shuffle(content)
        if not content or rng.random() < 0.2:
            content.append(self._text("do"))
        if self._images and rng.random() < 0.1:
            content.append(IMAGE)
        single = len(content) == 1 and content[0]["type"] == "text" and rng.random() < 0.5
        self.messages.append({"role": "user", "content": content[0]["text"] if single else content})
        self._waiting = []
        if self._system and rng.random() < 0.1:
            self.messages.append({"role": "system", "content": f"note {rng.randrange(1000)}"})

    def assistant(self) -> None:
        rng = self._rng
        turn = len(self._made) + 1
        upstream = rng.choice(UPSTREAMS)
        origin = Origin(upstream, MODELS[upstream])
        stateful = rng.random() < 0.7
        content: list[Json] = []
        if rng.random() < 0.4:
            content.append({"type": "thinking", "thinking": f"hm {turn}", "signature": rng.choice(("", "c2lnbmVk"))})
        calls = rng.choice((0, 1, 1, 2, 3))
        if not calls or rng.random() < 0.5:
            content.append(self._text("answer"))
        for ordinal in range(calls):
            state = call_state(upstream, turn, ordinal) if stateful else b""
            content.append(self._call(turn, ordinal, Origin(upstream, origin.model, state)))
            if rng.random() < 0.05:
                content.append(self._text("and"))
        if rng.random() < 0.9:
            state = message_state(upstream, turn, content) if stateful else b""
            self._origins[turn] = Origin(upstream, origin.model, state)
        self._made[len(self.messages)] = turn
        self.messages.append({"role": "assistant", "content": content})

    def snapshot(self) -> Snapshot:
        hashes = chain(map(canonical, self.messages))
        return Snapshot(self._links, {hashes[index]: turn for index, turn in self._made.items()}, self._origins)

    def _call(self, turn: int, ordinal: int, origin: Origin) -> Json:
        self._count += 1
        name = self._rng.choice(NAMES)
        ours = self._rng.random() < 0.85
        id_ = f"toolu_{self._count:024d}" if ours else f"call-{'x' * self._rng.choice((1, 45, 70))}_{self._count}"
        arguments = {"path": f"/{self._count}"}
        if ours:
            upstream_id = self._rng.choice(("call_0", f"call_{self._count}", ""))
            self._links[id_] = Link(
                id_, name, name[:64], upstream_id, msgspec.json.encode(arguments), origin, turn, ordinal
            )
        self._waiting.append(id_)
        return {"type": "tool_use", "id": id_, "name": name, "input": arguments}

    def _result(self, id_: str) -> Json:
        contents: list[object] = ["output", "output", [self._text("out")], "", [], [self._text("a"), self._text("b")]]
        contents.append([{"type": "tool_reference", "tool_name": "Fetch"}])
        if self._images:
            contents += [[IMAGE], [self._text("picture"), IMAGE]]
        block: Json = {"type": "tool_result", "tool_use_id": id_, "content": self._rng.choice(contents)}
        if self._rng.random() < 0.15:
            block["is_error"] = True
        return block

    def _text(self, word: str) -> Json:
        return {"type": "text", "text": f"{word} {self._rng.randrange(1000)}"}
