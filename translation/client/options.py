"""The smaller fields of a request: thinking, output format, thread, metadata."""

import msgspec
from msgspec import Raw, Struct

from translation.client.paths import carried_object, decode, named, one_of, wrong
from translation.values import Field, ThinkingConfig, Thread

EFFORTS = ("low", "medium", "high", "xhigh", "max")
THINKING = ("enabled", "adaptive", "between_tools", "disabled")
MIN_BUDGET = 1024


ABSENT = Raw(b"")


class ThinkingWire(Struct):
    type: str
    budget_tokens: int | None = None
    display: str | None = None


class FormatWire(Struct):
    type: str
    schema: Raw


class OutputWire(Struct):
    effort: str | None = None
    format: FormatWire | None = None
    task_budget: Raw = ABSENT


class MetadataWire(Struct):
    user_id: str | None = None


class ThreadWire(Struct):
    type: str
    previous_message_id: str | None = None


_THINKING = msgspec.json.Decoder(ThinkingWire)
_FORMAT = msgspec.json.Decoder(FormatWire)
_OUTPUT = msgspec.json.Decoder(OutputWire)
_METADATA = msgspec.json.Decoder(MetadataWire)
_THREAD = msgspec.json.Decoder(ThreadWire)


def thinking(raw: Raw) -> ThinkingConfig:
    wire = decode(_THINKING, raw, "thinking")
    display = wire.display or ""
    match wire.type:
        case "enabled":
            if wire.budget_tokens is None:
                raise wrong("thinking.budget_tokens", "Field required")
            if wire.budget_tokens < MIN_BUDGET:
                raise wrong("thinking.budget_tokens", f"Input should be greater than or equal to {MIN_BUDGET}")
            return ThinkingConfig("enabled", wire.budget_tokens, display)
        case "adaptive" | "between_tools" | "disabled" as kind:
            return ThinkingConfig(kind, None, display)
        case other:
            raise one_of("thinking.type", THINKING, other)


class Output(Struct, frozen=True):
    effort: str = ""
    schema: bytes = b""
    others: tuple[Field, ...] = ()


NO_OUTPUT = Output()


def output_config(raw: Raw) -> Output:
    wire = decode(_OUTPUT, raw, "output_config")
    if wire.effort is not None and wire.effort not in EFFORTS:
        raise one_of("output_config.effort", EFFORTS, wire.effort)
    budget = bytes(wire.task_budget)
    return Output(
        wire.effort or "",
        _schema(wire.format, "output_config.format") if wire.format else b"",
        (Field("output_config.task_budget", budget),) if budget not in (b"", b"null") else (),
    )


def output_format(raw: Raw) -> bytes:
    """The older place of the answer's schema."""
    return _schema(decode(_FORMAT, raw, "output_format"), "output_format")


def _schema(wire: FormatWire, path: str) -> bytes:
    if wire.type != "json_schema":
        raise one_of(path + ".type", ("json_schema",), wire.type)
    return carried_object(wire.schema, path + ".schema")


def user_id(raw: Raw) -> str:
    return decode(_METADATA, raw, "metadata").user_id or ""


def thread(raw: Raw) -> Thread:
    wire = decode(_THREAD, raw, "thread")
    match wire.type:
        case "create":
            return Thread("create")
        case "continue":
            if wire.previous_message_id is None:
                raise wrong("thread.previous_message_id", "Field required")
            return Thread("continue", named(wire.previous_message_id, "thread.previous_message_id"))
        case other:
            raise one_of("thread.type", ("create", "continue"), other)
