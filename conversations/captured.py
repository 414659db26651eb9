"""A captured upstream answer through the decoder and the writer: what its client would have read. Pure."""

from msgspec.structs import replace

from translation import adapters
from translation.adapter import Target
from translation.client.parse import parse
from translation.client.render import MESSAGES
from translation.errors import BridgeError
from translation.events import Event, Failed, Finished, ToolStarted
from translation.history import repair
from translation.providers.profiles import PROFILES
from translation.values import Usage

ANYTHING = b'{"model":"replayed","max_tokens":1024,"stream":true,"messages":[{"role":"user","content":"(not given)"}]}'
MESSAGE_ID, REQUEST_ID = "msg_replayed", "req_replayed"


def client_stream(captured: bytes, provider: str, body: bytes = ANYTHING, model: str = "") -> bytes:
    """The client's server-sent events. Raises a BridgeError when the request itself is wrong."""
    request = replace(parse(body, "", ()), stream=True)
    target = Target(provider, model or request.model, PROFILES[provider])
    request, _ = repair(request, target.profile)
    adapter = adapters.adapter(target.profile)
    decoder = adapter.decoder(request, target, adapter.build(request, target), _content_type(captured))
    writer = adapters.writer(target.profile, request, MESSAGE_ID)
    events = _named([*decoder.feed(captured), *decoder.close()])
    wire = [writer.start(MESSAGE_ID, request.model, Usage())]
    try:
        wire += writer.feed(events)
        match events[-1:]:
            case [Finished() as finished]:
                wire += writer.finish(finished, finished.usage or Usage())
            case [Failed(error=error)]:
                raise error
    except BridgeError as failed:
        return MESSAGES.events(wire) + MESSAGES.error(failed, REQUEST_ID)
    return MESSAGES.events(wire)


def _named(events: list[Event]) -> list[Event]:
    """The same ids every time: a report is compared with another."""
    return [
        replace(event, id=f"toolu_replayed_{event.call}") if isinstance(event, ToolStarted) and not event.id else event
        for event in events
    ]


def _content_type(captured: bytes) -> str:
    return "application/json" if captured.lstrip()[:1] in (b"{", b"[") else "text/event-stream"
