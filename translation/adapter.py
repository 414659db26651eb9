"""The border between the bridge and a provider's dialect. One file per dialect implements it, in `providers/`."""

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

from msgspec import Struct

from translation.errors import BridgeError
from translation.events import Event, Finished, WireEvent
from translation.memo import once
from translation.patterns import matches
from translation.providers.profile import Choice, Profile
from translation.values import Note, Request, Usage


class Target(Struct, frozen=True, dict=True):
    """Where a request goes: an upstream by name, one of its models, and what that pair can do."""

    upstream: str
    model: str
    profile: Profile

    @once
    def refused(self) -> tuple[str, ...]:
        """Parameters that it does not take."""
        patterns = (names for pattern, names in self.profile.refused if matches(self.model, (pattern,)))
        return self.profile.drop_params + next(patterns, ())

    @once
    def choices(self) -> tuple[Choice, ...]:
        """What it takes of tool choices."""
        for pattern, choices in self.profile.model_choices:
            if matches(self.model, (pattern,)):
                return choices
        return self.profile.tool_choices


class UpstreamRequest(Struct, frozen=True):
    """A request ready to be sent, stored and replayed. Holds no secret: the shell adds the key."""

    path: str  # below the upstream's base URL: `/chat/completions`
    body: bytes
    stream: bool
    headers: tuple[tuple[str, str], ...] = ()  # beyond content-type and authentication
    names: tuple[tuple[str, str], ...] = ()  # (upstream name, client name) of tools whose name was changed
    notes: tuple[Note, ...] = ()


class Decoder(Protocol):
    """One per upstream answer. `Finished` or `Failed` is the last event, and comes exactly once."""

    def feed(self, chunk: bytes) -> list[Event]: ...

    def close(self) -> list[Event]:
        """The upstream's bytes have ended."""
        ...


class Ending:
    """A decoder that knows when an answer lacks nothing but its figures: some upstreams never end their stream."""

    ending = False


class Around(Ending, ABC):
    """A decoder around another one, whose events it passes on as it sees fit."""

    def __init__(self, decoder: Decoder) -> None:
        self._inner = decoder

    def feed(self, chunk: bytes) -> list[Event]:
        events = self._passed(self._inner.feed(chunk))
        self.ending = isinstance(self._inner, Ending) and self._inner.ending
        return events

    def close(self) -> list[Event]:
        return self._passed(self._inner.close())

    @abstractmethod
    def _passed(self, events: list[Event]) -> list[Event]: ...


class Writer(Protocol):
    """One per client answer: makes events what the client reads."""

    def feed(self, events: list[Event]) -> list[WireEvent]: ...

    def start(self, message_id: str, model: str, usage: Usage) -> WireEvent: ...

    def finish(self, finished: Finished, usage: Usage) -> list[WireEvent]: ...


@runtime_checkable
class RoundsWriter(Writer, Protocol):
    """A writer whose message may take several calls of an upstream, with the bridge's own blocks between them."""

    def next_round(self) -> list[WireEvent]:
        """Close what is open; the next events are another call's."""
        ...

    def add(self, block: bytes) -> list[WireEvent]: ...


class Adapter(Protocol):
    def build(self, request: Request, target: Target) -> UpstreamRequest: ...

    def decoder(self, request: Request, target: Target, sent: UpstreamRequest, content_type: str) -> Decoder:
        """For a 2xx answer, whether it is a stream or whole JSON."""
        ...

    def failure(self, target: Target, status: int, headers: dict[str, str], body: bytes) -> BridgeError:
        """For an answer that is not 2xx."""
        ...


@runtime_checkable
class Forgetful(Protocol):
    """An adapter that can do without the opaque state that its upstream has just refused to take back.

    On an error whose code is `OPAQUE_STATE_REJECTED` the bridge sends `without_state(sent)` once, never again. The same
    object comes back when there was none in it: then the error is the client's.
    """

    def without_state(self, sent: UpstreamRequest) -> UpstreamRequest: ...
