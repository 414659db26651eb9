"""Errors in OpenAI's shape."""

from typing import Any

import msgspec
import pytest

from translation import errors
from translation.errors import BridgeError
from translation.openai_client.errors import error_body, status


def told(error: BridgeError) -> Any:
    return msgspec.json.decode(error_body(error, "req_1"))["error"]


@pytest.mark.parametrize(
    ("error", "number", "kind", "code"),
    [
        (errors.InvalidRequest("n: one"), 400, "invalid_request_error", None),
        (errors.PromptTooLong(2, 1), 400, "invalid_request_error", "context_length_exceeded"),
        (errors.Unauthenticated("no"), 401, "invalid_request_error", "invalid_api_key"),
        (errors.OverBudget("spent"), 429, "insufficient_quota", "insufficient_quota"),
        (errors.NotFound("model: x"), 404, "invalid_request_error", "model_not_found"),
        (errors.TooLarge("big"), 413, "invalid_request_error", None),
        (errors.RateLimited("slow down"), 429, "rate_limit_error", "rate_limit_exceeded"),
        (errors.UpstreamFailed("broken"), 502, "server_error", None),
        (errors.UpstreamTimeout("late"), 504, "server_error", "timeout"),
        (errors.UpstreamOverloaded("busy"), 503, "server_error", "overloaded"),
        (errors.StoreUnavailable(), 503, "server_error", "overloaded"),
        (errors.ThreadRefused("thread: no", code="thread_x"), 400, "invalid_request_error", "thread_x"),
    ],
)
def test_each_error_has_a_status_and_a_code_that_the_clients_know(
    error: BridgeError, number: int, kind: str, code: str | None
) -> None:
    assert status(error) == number
    assert (told(error)["type"], told(error)["code"]) == (kind, code)


@pytest.mark.parametrize(
    ("error", "param"),
    [
        (errors.InvalidRequest("messages.3.content.1.type: Input should be 'text'"), "messages[3].content[1].type"),
        (errors.InvalidRequest("model: Field required"), "model"),
        (errors.InvalidRequest("The request body is not valid JSON"), None),
        (errors.UpstreamRefused("Unsupported value (Param: temperature) (Type: x)"), "temperature"),
        (errors.NotFound("model: x"), "model"),
        (errors.RateLimited("limit: reached"), None),
    ],
)
def test_the_field_that_is_wrong_is_named_as_openai_names_it(error: BridgeError, param: str | None) -> None:
    assert told(error)["param"] == param


def test_the_body_has_what_every_error_of_the_bridge_has() -> None:
    body = msgspec.json.decode(error_body(errors.NotFound("model: x"), "req_1"))
    assert (body["type"], body["request_id"]) == ("error", "req_1")


def test_lone_surrogates_do_not_break_the_answer() -> None:
    assert told(errors.InvalidRequest("model: \ud800"))["message"] == "model: �"
