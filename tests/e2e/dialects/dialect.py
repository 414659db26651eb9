"""What a scripted model needs to know about the dialect that it speaks."""

from typing import Any, NamedTuple, Protocol

from tests.e2e.dialects.script import Json, Result, Speech
from tests.servers.script import Answer


class Gist(NamedTuple):
    """What an assistant turn says to anybody: text, and the names and arguments of its calls."""

    text: str
    calls: list[tuple[str, Json]]


class Turn(NamedTuple):
    """An assistant turn as it came back, and the results that follow it."""

    gist: Gist
    ids: list[str]
    state: Any  # what only its maker can use, at its place
    results: list[Result]


class Dialect(Protocol):
    def refused(self, body: bytes, *, long_ids: bool) -> list[str]:
        """What the strict validator says."""
        ...

    def opening(self, body: Json) -> str:
        """The text of the first user message."""
        ...

    def turns(self, body: Json) -> list[Turn]: ...

    def state(self, speech: Speech) -> Any:
        """What has to come back of an answer: `Turn.state`, exactly."""
        ...

    def answer(self, speech: Speech) -> Answer: ...

    def error(self, message: str) -> Answer:
        """The provider's 400."""
        ...
