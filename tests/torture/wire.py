"""A client of one connection that costs little: what is asked a million times must not wait for who asks."""

from collections.abc import Iterable
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import NamedTuple, Self

SECONDS = 30.0
LINES = 80  # of the log, from where it names the request


class Answer(NamedTuple):
    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def request_id(self) -> str:
        return self.headers.get("request-id", "")

    def __str__(self) -> str:
        return f"{self.status} {self.request_id} {self.body[:1000]!r}"


class Wire:
    def __init__(self, port: int, api_key: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        self._headers = {
            "host": f"127.0.0.1:{port}".encode(),
            "accept": b"*/*",
            "accept-encoding": b"gzip, deflate",
            "connection": b"keep-alive",
            "user-agent": b"toolbridge-torture",
            "content-type": b"application/json",
            "x-api-key": api_key.encode(),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, headers: Iterable[tuple[str, bytes]], body: bytes) -> Answer:
        """Given headers stand instead of the usual ones. A connection that breaks is not used again."""
        connection = self._connection
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in (self._headers | dict(headers)).items():
                connection.putheader(name, value)
            if body or method in ("POST", "PUT", "PATCH"):
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            with connection.getresponse() as response:
                return Answer(response.status, response.headers, response.read())
        except BaseException:
            connection.close()
            raise


def logged(log: Path, request_id: str) -> str:
    """What the bridge's log says of a request, with the traceback after it; its last lines, where that is nothing."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    at = next((at for at, line in enumerate(lines) if request_id and request_id in line), None)
    return "\n".join(lines[-LINES:] if at is None else lines[at : at + LINES])
