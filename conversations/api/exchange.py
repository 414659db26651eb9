"""Requests and responses of the lean handler: what Django's own cost more than the work of a turn.

They are Django's types, so that the functions of ninja operations take and return them like any other.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse

from conversations.audience import Client
from conversations.heads import Head

Drain = Callable[[], Awaitable[None]]
# Takes a piece of a body; returns what has to be called and waited for before the next one, when the client is behind.
Write = Callable[[bytes], Drain | None]


class LeanRequest(HttpRequest):
    """Method, path, headers, and the body once it was read."""

    lean_body = b""
    client: Client

    def __init__(self, scope: Mapping[str, Any], head: Head, request_id: str) -> None:
        # HttpRequest.__init__ builds five dictionaries that nobody reads on these paths.
        self.method, self.path = scope["method"], scope["path"]
        self.head = head
        self.request_id = request_id


class LeanResponse(HttpResponse):
    """A status, headers as pairs, and a body that is either bytes or written in pieces."""

    def __init__(
        self,
        status: int,
        headers: list[tuple[bytes, bytes]],
        body: bytes = b"",
        stream: Callable[[Write], Awaitable[None]] | None = None,
    ) -> None:
        self.lean_status = status
        self.lean_headers = headers
        self.lean_body = body
        self.lean_stream = stream
