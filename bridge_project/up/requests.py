"""uvicorn's HTTP, with an end for heads that never end: who only holds a connection open must not have it for long."""

from asyncio import BaseTransport, TimerHandle, Transport
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 30.0


class Requests(HttpToolsProtocol):
    head_seconds = HEAD_SECONDS
    _late: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(cast("Transport", transport))
        self._expect_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._late is None:
            self._expect_head()

    def on_headers_complete(self) -> None:
        self._has_head()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_head()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._late = self.loop.call_later(self.head_seconds, self.transport.close)

    def _has_head(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
