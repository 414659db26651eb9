"""Errors of the chat family's upstreams as the client sees them."""

import msgspec
import pytest

from translation.adapter import Target
from translation.adapters import adapter
from translation.errors import (
    BridgeError,
    PromptTooLong,
    TooLarge,
    UpstreamFailed,
    UpstreamKeyRefused,
    UpstreamModelMissing,
    UpstreamOverloaded,
    UpstreamQuotaSpent,
    UpstreamRateLimited,
    UpstreamRefused,
    UpstreamTimeout,
)
from translation.events import Failed
from translation.providers.openai_chat import OpenAIChat
from translation.providers.profiles import PROFILES
from translation.refusals import Complaint, in_band, read, retry_after
from translation.values import Message, Request, Text

TARGET = Target("openai", "gpt-4.1", PROFILES["openai"])
ASKED = Request(model="m", messages=(Message("user", (Text("q"),)),), max_tokens=9, stream=True)
OPENAI = {"message": "Invalid 'x'.", "type": "invalid_request_error", "param": "messages[2].role", "code": None}


def failure(status: int, value: object, **headers: str) -> BridgeError:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return OpenAIChat().failure(TARGET, status, named, msgspec.json.encode(value))


def test_message_parameter_and_type_are_kept() -> None:
    found = failure(400, {"error": OPENAI})
    assert isinstance(found, UpstreamRefused)
    assert found.message == "Invalid 'x'. (Param: messages[2].role) (Type: invalid_request_error)"
    assert (found.status, found.type) == (400, "invalid_request_error")


@pytest.mark.parametrize(
    "said", [{"type": "insufficient_quota", "code": "insufficient_quota"}, {"type": "exceeded_current_quota_error"}]
)
def test_a_quota_that_is_spent_is_not_waited_for(said: dict[str, str]) -> None:
    found = failure(429, {"error": {"message": "You exceeded your current quota.", **said}})
    assert isinstance(found, UpstreamQuotaSpent)
    assert (found.status, found.type, found.should_retry) == (429, "rate_limit_error", False)
    assert failure(429, {"error": {"message": "Slow down.", "type": "tokens"}}).should_retry is None


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ('{"error":{"message":"Bad tool.","type":"x"}}', "Provider returned error: Bad tool."),
        ({"error": {"message": "Bad tool."}}, "Provider returned error: Bad tool."),
        ("Bad tool.", "Provider returned error: Bad tool."),
        ("<html>gone</html>", "Provider returned error"),
        ('{"weird":1}', "Provider returned error"),
        (7, "Provider returned error"),
    ],
)
def test_what_the_provider_behind_openrouter_said_is_told(raw: object, told: str) -> None:
    error = {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw, "provider_name": "P"}}
    assert failure(400, {"error": error}).message == told
    assert failure(400, {"error": error | {"metadata": None}}).message == "Provider returned error"


def test_a_prompt_that_is_too_long_behind_openrouter_is_said_in_the_clients_words() -> None:
    raw = {
        "error": {
            "message": "This model's maximum context length is 100 tokens. However, your messages resulted in 120"
        }
    }
    error = {"message": "Provider returned error", "code": 400, "metadata": {"raw": msgspec.json.encode(raw).decode()}}
    assert failure(400, {"error": error}).message == "prompt is too long: 120 tokens > 100 maximum"


@pytest.mark.parametrize(
    ("status", "class_"),
    [
        (400, UpstreamRefused),
        (401, UpstreamKeyRefused),
        (402, UpstreamKeyRefused),
        (403, UpstreamKeyRefused),
        (404, UpstreamModelMissing),
        (408, UpstreamTimeout),
        (409, UpstreamRefused),
        (413, TooLarge),
        (422, UpstreamRefused),
        (424, UpstreamFailed),
        (425, UpstreamFailed),
        (429, UpstreamRateLimited),
        (499, UpstreamFailed),
        (500, UpstreamFailed),
        (502, UpstreamFailed),
        (503, UpstreamOverloaded),
        (504, UpstreamTimeout),
        (529, UpstreamOverloaded),
    ],
)
def test_every_status_has_its_class(status: int, class_: type[BridgeError]) -> None:
    assert type(failure(status, {"error": OPENAI})) is class_


def test_a_refused_key_is_said_to_be_the_bridges() -> None:
    assert failure(401, {"error": OPENAI}).message.startswith("the bridge's upstream key was refused: ")


def test_retry_after_is_kept_in_seconds() -> None:
    assert failure(429, {"error": OPENAI}, retry_after="7").retry_after == 7
    assert failure(503, {"error": OPENAI}, retry_after_ms="1500").retry_after == 1.5
    assert retry_after({"Retry-After": "0.5"}) == 0.5
    assert retry_after({"retry-after": "9", "retry-after-ms": "1500"}) == 1.5
    assert retry_after({"retry-after": "²"}) is None
    moment = {"retry-after": "Mon, 16 Nov 2026 15:00:00 GMT"}
    assert retry_after(moment) is None, "nobody says when this was"
    assert retry_after({**moment, "Date": "Mon, 16 Nov 2026 14:59:20 GMT"}) == 40
    assert retry_after({**moment, "date": "Mon, 16 Nov 2026 16:59:20 +0200"}) == 40
    assert retry_after({**moment, "date": "Mon, 16 Nov 2026 15:59:20 -0000"}) == 0
    assert retry_after({"content-type": "application/json"}) is None


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "36s"}


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ({"message": "You exceeded your quota.", "details": [{"@type": "x"}, RETRY_INFO]}, 36),
        ({"message": "Please retry in 36.5s.", "details": "none"}, 36.5),
        ({"message": "Rate limit reached. Please try again in 2.5s. Visit ..."}, 2.5),
        ({"message": "Rate limit reached. Please try again in 6m0s."}, 360),
        ({"message": "Rate limit reached. Please try again in 250ms."}, 0.25),
        ({"message": "Retry after 9 seconds."}, 9),
        ({"message": "Please try again in a while."}, None),
        ({"message": "Slow down.", "details": [{"retryDelay": "soon"}, "x"]}, None),
    ],
)
def test_an_error_may_say_itself_how_long_to_wait(said: dict[str, object], seconds: float | None) -> None:
    """Google sends no header, not in its layer for OpenAI's clients either."""
    for body in ({"error": said}, [{"error": said}]):
        assert failure(429, body).retry_after == seconds
    assert failure(429, {"error": said}, retry_after="7").retry_after == 7


@pytest.mark.parametrize(
    ("code", "kind"),
    [(1002, UpstreamRateLimited), (1004, UpstreamKeyRefused), (2013, UpstreamRefused), (1000, UpstreamFailed)],
)
def test_minimax_says_inside_a_200_what_went_wrong(code: int, kind: type[BridgeError]) -> None:
    body = {"choices": None, "base_resp": {"status_code": code, "status_msg": "invalid params (2013)"}}
    complaint = read(msgspec.json.encode(body))
    assert complaint is not None
    found = in_band(complaint)
    assert type(found) is kind
    assert found.message.endswith("invalid params (2013)")
    assert read(b'{"choices":null,"base_resp":{"status_code":0,"status_msg":""}}') is None


def test_a_key_that_is_refused_with_400_is_the_bridges() -> None:
    words = "Incorrect API key provided: sk***gA. You can obtain an API key from https://console.x.ai."
    found = failure(400, {"code": "Client specified an invalid argument", "error": words})
    assert type(found) is UpstreamKeyRefused
    assert found.message == f"the bridge's upstream key was refused: {words}"
    assert type(in_band(Complaint("no", type="invalid_request_error", code="invalid_api_key"))) is UpstreamKeyRefused


def test_an_overflow_is_told_in_the_words_that_clients_know() -> None:
    words = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    found = failure(400, {"error": {"message": words, "code": "context_length_exceeded"}})
    assert isinstance(found, PromptTooLong)
    assert found.message == "prompt is too long: 9000 tokens > 8192 maximum"
    assert isinstance(failure(400, {"error": {"message": "no", "type": "exceed_context_size_error"}}), PromptTooLong)


def test_a_page_of_html_is_never_shown() -> None:
    found = OpenAIChat().failure(TARGET, 502, {}, b"<html>secret-host</html>")
    assert isinstance(found, UpstreamFailed)
    assert found.message == "the upstream answered 502 without a readable error"
    assert "secret-host" not in OpenAIChat().failure(TARGET, 422, {}, b" <html>secret-host</html>").message


@pytest.mark.parametrize("provider", ["xai", "xai-responses", "gemini", "anthropic"])
def test_a_refusal_in_plain_words_is_told(provider: str) -> None:
    profile = PROFILES[provider]
    target = Target(provider, "m", profile)
    words = "Failed to deserialize the JSON body into the target type: tools[0]: unknown variant `x`"
    found = adapter(profile).failure(target, 422, {}, words.encode())
    assert (type(found), found.message) == (UpstreamRefused, words)
    assert isinstance(adapter(profile).failure(target, 400, {}, b"prompt is too long"), PromptTooLong)
    for status, body in ((400, b""), (400, b"\xff"), (500, words.encode())):
        assert adapter(profile).failure(target, status, {}, body).message.endswith("without a readable error")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"error": "model 'x' not found"}, Complaint("model 'x' not found")),
        ({"code": "bad", "error": "no such model"}, Complaint("no such model", code="bad")),
        ({"object": "error", "message": "m", "type": "t", "code": 3051}, Complaint("m", "t", code="3051")),
        ({"detail": "Not Found"}, Complaint("Not Found")),
        ({"message": "Unauthorized", "request_id": "r"}, Complaint("Unauthorized")),
        ({"error": {}}, Complaint("the upstream gave no message")),
        ({"success": False, "errors": [{"code": 5006, "message": "m"}]}, Complaint("m", code="5006")),
        ({"error": None, "errors": []}, None),
        ({"code": 429, "msg": "busy"}, Complaint("busy", code="429")),
        ({"error": {"message": "m", "code": True}}, Complaint("m")),
        ([{"error": {"message": "m", "code": 400}}], Complaint("m", code="400")),
        (
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "user"], "msg": "Extra inputs are not permitted"}]},
            Complaint("body.user: Extra inputs are not permitted", param="user"),
        ),
        (
            {"object": "error", "message": {"detail": [{"loc": ["body", "a", 0], "msg": "bad"}]}, "type": "t"},
            Complaint("body.a.0: bad", "t", "a.0"),
        ),
        ({"object": "error", "message": {"why": "x"}}, Complaint('{"why":"x"}')),
        ({"detail": ["odd"]}, Complaint("['odd']")),
        ([], None),
        ("text", None),
        ({"error": None}, None),
        ({"id": "x"}, None),
    ],
)
def test_errors_are_read_in_every_shape(value: object, expected: Complaint | None) -> None:
    assert read(msgspec.json.encode(value)) == expected


@pytest.mark.parametrize(
    ("complaint", "class_"),
    [
        (Complaint("m", code="429"), UpstreamRateLimited),
        (Complaint("m", code="1302"), UpstreamFailed),
        (Complaint("m", "overloaded_error"), UpstreamOverloaded),
        (Complaint("m", "server_error"), UpstreamFailed),
        (Complaint("m", "invalid_request_error"), UpstreamRefused),
        (Complaint("m", code="model_not_found"), UpstreamModelMissing),
        (Complaint("m", "BadRequestError"), UpstreamRefused),
    ],
)
def test_an_error_in_band_is_known_by_code_or_type(complaint: Complaint, class_: type[BridgeError]) -> None:
    assert type(in_band(complaint)) is class_


@pytest.mark.parametrize(
    ("said", "expected", "words"),
    [
        (
            {"error_code": 336003, "error_msg": "message content can not be empty", "id": "as-1"},
            UpstreamRefused,
            "empty",
        ),
        ({"error_code": 18, "error_msg": "Open api qps request limit reached"}, UpstreamRateLimited, "qps"),
        ({"error_code": 110, "error_msg": "Access token invalid"}, UpstreamKeyRefused, "Access token"),
        ({"error_code": 336000, "error_msg": "Internal error"}, UpstreamFailed, "Internal"),
        ({"Error": {"message": "boom"}}, UpstreamFailed, "boom"),
        ({"Error": {"Code": "RequestLimitExceeded", "Message": "Slow down."}}, UpstreamRateLimited, "Slow down."),
        ({"Response": {"Error": {"Code": "AuthFailure.X", "Message": "No."}}}, UpstreamKeyRefused, "No."),
    ],
)
@pytest.mark.parametrize("begun", [b"", b'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\n'])
def test_an_error_inside_a_stream_that_is_over_then_is_no_end_of_turn(
    said: object, expected: type[BridgeError], words: str, begun: bytes
) -> None:
    decoder = OpenAIChat().decoder(ASKED, TARGET, OpenAIChat().build(ASKED, TARGET), "")
    events = decoder.feed(begun + b"data: %b\n\ndata: [DONE]\n\n" % msgspec.json.encode(said))
    (*_, failed) = [*events, *decoder.close()]
    assert isinstance(failed, Failed)
    assert type(failed.error) is expected
    assert words in failed.error.message
