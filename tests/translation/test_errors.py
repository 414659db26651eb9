"""Whose fault it is, and what the client sees of it."""

import inspect

import pytest

from translation import errors
from translation.errors import BridgeError, ClientFault, OwnFault, ShuttingDown, StoreUnavailable, UpstreamFault

CLASSES = [found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, BridgeError)]
LEAVES = [found for found in CLASSES if found not in (BridgeError, ClientFault, UpstreamFault, OwnFault)]
TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    502: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


@pytest.mark.parametrize("error", CLASSES)
def test_type_is_the_one_of_the_status(error: type[BridgeError]) -> None:
    assert error.type == TYPES[error.status]


@pytest.mark.parametrize("error", LEAVES)
def test_error_is_one_party_s_fault(error: type[BridgeError]) -> None:
    assert sum(issubclass(error, party) for party in (ClientFault, UpstreamFault, OwnFault)) == 1


@pytest.mark.parametrize("error", LEAVES)
def test_error_stands_in_the_drawing(error: type[BridgeError]) -> None:
    assert error.__name__ in (errors.__doc__ or "")


def test_the_bridge_never_repeats_what_the_client_got_wrong() -> None:
    assert not any(error.transient for error in CLASSES if issubclass(error, ClientFault))


def test_refused_upstream_key_is_not_the_client_s_key() -> None:
    error = errors.UpstreamKeyRefused("the bridge's upstream key was refused")
    assert (error.status, error.type, error.should_retry) == (502, "api_error", False)


def test_error_keeps_what_it_was_told() -> None:
    error = BridgeError("what was found", code="thread_not_found", retry_after=1.5)
    assert (str(error), error.message, error.code, error.retry_after) == (
        "what was found",
        "what was found",
        "thread_not_found",
        1.5,
    )
    assert StoreUnavailable().retry_after == 2.0
    assert StoreUnavailable("x", retry_after=7).message == "x"


@pytest.mark.parametrize("error", [StoreUnavailable(), ShuttingDown()])
def test_who_finds_the_bridge_away_is_told_when_to_come_back(error: OwnFault) -> None:
    assert error.message
    assert error.retry_after
