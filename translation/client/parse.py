"""A request's body to the canonical `Request`. Whatever is wrong with it is an `InvalidRequest` that names the place.

The body is split into the bytes of its fields first: that proves it JSON, and gives the slices that go to Anthropic as
they were written.
"""

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from translation.client import options
from translation.client.blocks import InMessage, blocks, values
from translation.client.paths import BOM, Fields, carried, decode, model_of, one_of, required, split, wrong
from translation.client.tools import tool_choice, tools
from translation.errors import InvalidRequest
from translation.memo import Memo
from translation.values import Field, Message, Request, Text, Thread

VERSIONS = ("2023-06-01", "2026-10-21")
ROLES = ("user", "assistant", "system")
SAMPLING = ("temperature", "top_p", "top_k")
MAX_MESSAGES = 100_000
MAX_INTEGER = 2**31 - 1
NULL = Raw(b"null")
# fmt: off
FREQUENT = frozenset({"model", "messages", "max_tokens", "system", "stream", "thread"})
CARRIED = frozenset({
    "model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "temperature", "top_p", "top_k",
    "stop_sequences", "thinking", "output_config", "output_format", "metadata", "thread", "mcp_servers",
})
# fmt: on


class Wire(Struct, kw_only=True):
    """A message as it is written."""

    role: str
    clear_at: Raw = NULL
    output_config: Raw = NULL


class MessageWire(Wire, kw_only=True):
    """Nearly every one: a string, or blocks that are all known. It is read in one pass."""

    content: str | list[InMessage]


class OtherWire(Wire, kw_only=True):
    content: Raw


_RAWS = msgspec.json.Decoder(list[Raw])
_MESSAGE = msgspec.json.Decoder(MessageWire)
_OTHER = msgspec.json.Decoder(OtherWire)
_OUTPUT: msgspec.json.Decoder[dict[str, Raw] | None] = msgspec.json.Decoder(dict[str, Raw] | None)
_EFFORT: msgspec.json.Decoder[str | None] = msgspec.json.Decoder(str | None)
_STRINGS = msgspec.json.Decoder(list[str])
_INTEGER = msgspec.json.Decoder(int)
_NUMBER = msgspec.json.Decoder(float)
_FLAG = msgspec.json.Decoder(bool)
_SEEN: Memo[Message] = Memo(budget=10 * 1024 * 1024, largest=256 * 1024)  # texts are there as JSON, too


def parse(body: bytes, version: str, betas: tuple[str, ...], *, counting: bool = False) -> Request:
    """`counting` is for `count_tokens`, which takes the same body without `max_tokens`."""
    version = _version(version)
    fields = split(body)
    if body[:3] == BOM:
        body = body[3:]  # which goes to Anthropic as it is
    if version != VERSIONS[0]:
        _refuse_sampling(fields, version)
    thread = options.thread(fields["thread"]) if "thread" in fields else None
    request = Request(
        model=model_of(fields),
        messages=_messages(fields, thread),
        max_tokens=0 if counting and "max_tokens" not in fields else _natural(fields, "max_tokens"),
        system=parse_system(fields["system"]) if "system" in fields else (),
        stream=decode(_FLAG, fields["stream"], "stream") if "stream" in fields else False,
        thread=thread,
        version=version,
        betas=betas,
        body=body,
        size=len(body),
        raw_system=bytes(fields["system"]) if "system" in fields else b"",
    )
    return request if fields.keys() <= FREQUENT else _with_options(request, fields)


def _with_options(request: Request, fields: Fields) -> Request:
    output = options.output_config(fields["output_config"]) if "output_config" in fields else options.NO_OUTPUT
    schema = output.schema
    if not schema and "output_format" in fields:
        schema = options.output_format(fields["output_format"])
    return replace(
        request,
        tools=tools(fields["tools"], request.betas) if "tools" in fields else (),
        tool_choice=tool_choice(fields["tool_choice"]) if "tool_choice" in fields else None,
        temperature=_bounded(fields, "temperature") if "temperature" in fields else None,
        top_p=_bounded(fields, "top_p") if "top_p" in fields else None,
        top_k=_natural(fields, "top_k") if "top_k" in fields else None,
        stop_sequences=_stop_sequences(fields["stop_sequences"]) if "stop_sequences" in fields else (),
        thinking=options.thinking(fields["thinking"]) if "thinking" in fields else None,
        effort=output.effort,
        output_schema=schema,
        user_id=options.user_id(fields["metadata"]) if "metadata" in fields else "",
        mcp_servers=_mcp_servers(fields["mcp_servers"]) if "mcp_servers" in fields else b"",
        others=(*_others(fields), *output.others) if output.others or not fields.keys() <= CARRIED else (),
        raw_tools=bytes(fields.get("tools", b"")),
    )


def _version(version: str) -> str:
    if version and version not in VERSIONS:
        raise one_of("anthropic-version", VERSIONS, version)
    return version or VERSIONS[0]


def _refuse_sampling(fields: Fields, version: str) -> None:
    for name in SAMPLING:
        if name in fields:
            raise wrong(name, f"Extra inputs are not permitted in version {version}")


def _stop_sequences(raw: Raw) -> tuple[str, ...]:
    sequences = decode(_STRINGS, raw, "stop_sequences")
    return tuple(sequences)


def _others(fields: Fields) -> list[Field]:
    return [Field(name, bytes(raw)) for name, raw in fields.items() if name not in CARRIED]


def _messages(fields: Fields, thread: Thread | None) -> tuple[Message, ...]:
    raws = decode(_RAWS, required(fields, "messages"), "messages")
    if not raws and (thread is None or thread.kind != "continue"):
        raise wrong("messages", "at least one message is required")
    if len(raws) > MAX_MESSAGES:
        raise wrong("messages", f"List should have at most {MAX_MESSAGES} items")
    texts = list(map(bytes, raws))
    return tuple(_SEEN.get_all(texts, lambda index: _parsed(texts[index], f"messages.{index}")))


def parse_written(raw: bytes) -> Message:
    """A message as a client wrote it once."""
    return _parsed(raw, "message")


def _parsed(raw: bytes, path: str) -> Message:
    wire, inside = _wire(raw, path), path + ".content"
    match wire.role:
        case "user" | "assistant" | "system" as role:
            content = values(wire.content, inside) if isinstance(wire, MessageWire) else blocks(wire.content, inside)
            if wire.clear_at is NULL and wire.output_config is NULL:
                return Message(role, content, raw)
            return Message(role, content, raw, None, *_options(wire, path + ".output_config"))
        case other:
            raise one_of(path + ".role", ROLES, other)


def _wire(raw: bytes, path: str) -> MessageWire | OtherWire:
    try:
        return _MESSAGE.decode(raw)
    except msgspec.ValidationError:
        return decode(_OTHER, raw, path)


def _options(wire: MessageWire | OtherWire, path: str) -> tuple[tuple[str, ...], str]:
    """What only Anthropic knows of them, and the effort."""
    names = [] if bytes(wire.clear_at) in (b"null", b'"never"') else ["clear_at"]
    output = decode(_OUTPUT, wire.output_config, path) or {}
    effort = decode(_EFFORT, output.pop("effort", NULL), path + ".effort") or ""
    if effort and effort not in options.EFFORTS:
        raise one_of(path + ".effort", options.EFFORTS, effort)
    return (*names, *(["output_config"] if output else ())), effort


def parse_system(raw: Raw | bytes) -> tuple[Text, ...]:
    """`system` in both of its forms."""
    found: list[Text] = []
    for index, block in enumerate(blocks(raw, "system")):
        if not isinstance(block, Text):
            raise InvalidRequest(f"system.{index}.type: Input should be 'text'")
        found.append(block)
    return tuple(found)


def _natural(fields: Fields, path: str) -> int:
    value = decode(_INTEGER, required(fields, path), path)
    if value < 0:
        raise wrong(path, "Input should be greater than or equal to 0")
    if value > MAX_INTEGER:
        raise wrong(path, f"Input should be less than or equal to {MAX_INTEGER}")
    return value


def _bounded(fields: Fields, path: str) -> float:
    value = decode(_NUMBER, fields[path], path)
    if value < 0:
        raise wrong(path, "Input should be greater than or equal to 0")
    if value > 1:
        raise wrong(path, "Input should be less than or equal to 1")
    return value


def _mcp_servers(raw: Raw) -> bytes:
    if not decode(_RAWS, raw, "mcp_servers"):
        return b""
    return carried(raw, "mcp_servers")
