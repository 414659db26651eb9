"""Google's error bodies."""

import msgspec
import pytest

from translation.adapter import Target
from translation.errors import (
    OPAQUE_STATE_REJECTED,
    BridgeError,
    PromptTooLong,
    TooLarge,
    UpstreamFailed,
    UpstreamKeyRefused,
    UpstreamModelMissing,
    UpstreamOverloaded,
    UpstreamRateLimited,
    UpstreamRefused,
    UpstreamTimeout,
)
from translation.events import Failed
from translation.providers.gemini import Gemini
from translation.providers.gemini_stream import GeminiDecoder
from translation.providers.profiles import PROFILES

GEMINI = Target("gemini", "gemini-3-pro-preview", PROFILES["gemini"])
NOW, LATER = "Mon, 16 Nov 2026 14:59:20 GMT", "Mon, 16 Nov 2026 15:00:00 GMT"
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}
KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}


def failure(status: int, body: bytes, headers: dict[str, str] | None = None) -> BridgeError:
    return Gemini().failure(GEMINI, status, headers or {}, body)


def error(code: int, status: str, message: str = "m", *details: object) -> bytes:
    return msgspec.json.encode({"error": {"code": code, "status": status, "message": message, "details": details}})


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        (400, "INVALID_ARGUMENT", UpstreamRefused),
        (400, "FAILED_PRECONDITION", UpstreamRefused),
        (401, "UNAUTHENTICATED", UpstreamKeyRefused),
        (403, "PERMISSION_DENIED", UpstreamKeyRefused),
        (404, "NOT_FOUND", UpstreamModelMissing),
        (429, "RESOURCE_EXHAUSTED", UpstreamRateLimited),
        (499, "CANCELLED", UpstreamFailed),
        (409, "ABORTED", UpstreamFailed),
        (499, "", UpstreamFailed),
        (500, "INTERNAL", UpstreamFailed),
        (503, "UNAVAILABLE", UpstreamOverloaded),
        (504, "DEADLINE_EXCEEDED", UpstreamTimeout),
        (413, "", TooLarge),
        (418, "", UpstreamRefused),
        (599, "", UpstreamFailed),
        (529, "", UpstreamOverloaded),
    ],
)
def test_each_status_has_its_class(code: int, status: str, expected: type[BridgeError]) -> None:
    assert type(failure(code, error(code, status))) is expected


@pytest.mark.parametrize(
    "message",
    [
        "Corrupted thought signature.",
        "Invalid thought signature.",
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work.",
        "Function call `Bash` in the 3. content block is missing a `thought_signature`",
        "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed for \"?\"",
    ],
)
def test_a_signature_that_is_refused_or_missed_has_its_code(message: str) -> None:
    found = failure(400, error(400, "INVALID_ARGUMENT", message))
    assert (type(found), found.code, found.message) == (UpstreamRefused, OPAQUE_STATE_REJECTED, message)
    assert failure(500, error(500, "INTERNAL", message)).code is None


def test_the_upstreams_own_words_are_kept() -> None:
    message = 'Invalid JSON payload received. Unknown name "const"'
    assert failure(400, error(400, "INVALID_ARGUMENT", message)).message == message
    assert failure(400, error(400, "INVALID_ARGUMENT", "x" * 9000)).message == "x" * 2000


@pytest.mark.parametrize(
    "body",
    [
        error(400, "INVALID_ARGUMENT", "bad", KEY),
        error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    ],
)
def test_a_400_about_the_key_is_a_refused_key(body: bytes) -> None:
    assert type(failure(400, body)) is UpstreamKeyRefused


def test_a_key_that_google_quotes_is_not_told_on() -> None:
    found = failure(403, error(403, "PERMISSION_DENIED", "Consumer 'api_key:AIzaSyD' has been suspended."))
    assert found.message == "the bridge's upstream key was refused (403 PERMISSION_DENIED)"


def test_overflow_is_the_sentence_that_clients_know() -> None:
    words = "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576)."
    found = failure(400, error(400, "INVALID_ARGUMENT", words))
    assert type(found) is PromptTooLong
    assert found.message == "prompt is too long: 1200293 tokens > 1048576 maximum"


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        (error(429, "RESOURCE_EXHAUSTED", "m", RETRY), {}, 34.07),
        (error(429, "RESOURCE_EXHAUSTED", "m", RETRY), {"retry-after": "7"}, 7.0),
        (error(429, "RESOURCE_EXHAUSTED", "Please retry in 3.5s."), {"retry-after": "soon"}, 3.5),
        (error(503, "UNAVAILABLE", "m"), {"retry-after": LATER, "date": NOW}, 40.0),
        (error(429, "RESOURCE_EXHAUSTED", "m", KEY | {"reason": ""}), {}, None),
    ],
)
def test_how_long_to_wait(body: bytes, headers: dict[str, str], expected: float | None) -> None:
    assert failure(429, body, headers).retry_after == expected


def test_a_list_of_one_error_is_that_error() -> None:
    assert type(failure(503, b"[" + error(503, "UNAVAILABLE") + b"]")) is UpstreamOverloaded
    assert failure(500, b"[]").message == "the upstream answered 500"


def test_a_body_that_is_not_googles_has_its_status() -> None:
    found = failure(502, b"<html>Bad Gateway</html>")
    assert type(found) is UpstreamFailed
    assert found.message == "the upstream answered 502 without a readable error"


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":"too many"}',
        b'{"detail":"too many"}',
        b'{"error":{"message":"too many","details":null}}',
        b'{"error":{"code":429,"message":"too many","details":[{"reason":5}]}}',
        b"too many",
    ],
)
def test_what_a_gateway_says_in_its_own_shape_is_told(body: bytes) -> None:
    found = failure(429, body, {"retry-after": "7"})
    assert (type(found), found.message, found.retry_after) == (UpstreamRateLimited, "too many", 7)


def test_a_code_in_words_counts_by_its_status() -> None:
    assert type(failure(503, b'{"error":{"code":"UNAVAILABLE","message":"busy"}}')) is UpstreamOverloaded


WORDS: list[tuple[object, type[BridgeError]]] = [
    ({"error": {"message": "no", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}, UpstreamRateLimited),
    ({"error": {"message": "no", "code": "429"}}, UpstreamRateLimited),
    ({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}, UpstreamOverloaded),
    ({"error": {"message": "no", "status": "UNAVAILABLE"}}, UpstreamOverloaded),
    ({"error": {"message": "API key not valid."}}, UpstreamKeyRefused),
    ({"error": {"message": "no"}}, UpstreamFailed),
    ({"error": "no"}, UpstreamFailed),
    ({"detail": "no"}, UpstreamFailed),
    ({"code": 503, "msg": "no"}, UpstreamOverloaded),
]


@pytest.mark.parametrize(("said", "expected"), WORDS)
@pytest.mark.parametrize("shape", ["%b", "data: %b\n\n", "event: error\ndata: %b\n\n", "[%b]"])
def test_an_error_inside_a_200_may_be_a_gateways(said: object, expected: type[BridgeError], shape: str) -> None:
    decoder = GeminiDecoder({}, streams=shape.endswith("\n"))
    (failed,) = [*decoder.feed(shape.encode() % msgspec.json.encode(said)), *decoder.close()]
    assert isinstance(failed, Failed)
    assert type(failed.error) is expected
    assert "no" in failed.error.message or expected is UpstreamKeyRefused
