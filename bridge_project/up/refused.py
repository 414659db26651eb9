"""What a client is told that the application never hears of: its request is none that HTTP knows."""

from http import HTTPStatus

from conversations import ids
from translation.client.render import MESSAGES
from translation.errors import InvalidRequest

INVALID = "Invalid HTTP request received."
TOO_LARGE = "The head of the request is too large."


def refused(status: HTTPStatus, message: str) -> bytes:
    """In the API's words, for a connection that is closed after it."""
    refusal = MESSAGES.refusal(InvalidRequest(message), ids.request_id())
    length = ("content-length", str(len(refusal.body)))
    headers = (*refusal.headers, ("content-type", "application/json"), length, ("connection", "close"))
    lines = (f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {value}" for name, value in headers))
    return "\r\n".join((*lines, "", "")).encode() + refusal.body
