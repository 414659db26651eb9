"""A turn's own settings, as they are kept: what is neither history nor context."""

import msgspec
from msgspec import Struct, field

from translation.values import Request, ThinkingConfig, ToolChoice

NONE = msgspec.Raw(b"")


class Parameters(Struct, frozen=True, omit_defaults=True):
    max_tokens: int = 0
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    tool_choice: ToolChoice | None = None
    thinking: ThinkingConfig | None = None
    effort: str = ""
    betas: tuple[str, ...] = ()
    version: str = field(default_factory=lambda: "2023-06-01")  # kept also when it is this one
    unknown: tuple[str, ...] = ()
    open_ended: bool = False
    # These hold words of the client's.
    stop_sequences: tuple[str, ...] = ()
    output_schema: msgspec.Raw = NONE
    extras: msgspec.Raw = NONE


def dump(request: Request, *, texts: bool) -> bytes:
    return _ENCODER.encode(
        Parameters(
            request.max_tokens,
            request.temperature,
            request.top_p,
            request.top_k,
            request.tool_choice,
            request.thinking,
            request.effort,
            request.betas,
            request.version,
            request.unknown if request.others else (),
            request.open_ended,
            *(_worded(request) if texts else ()),
        )
    )


def load(data: bytes) -> Parameters:
    return _DECODER.decode(data)


def _worded(request: Request) -> tuple[tuple[str, ...], msgspec.Raw, msgspec.Raw]:
    schema, extras = request.output_schema, request.extras
    return request.stop_sequences, msgspec.Raw(schema) if schema else NONE, msgspec.Raw(extras) if extras else NONE


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Parameters)
