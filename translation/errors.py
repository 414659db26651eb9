"""Every failure that a client can be told about.

    BridgeError
      ClientFault         InvalidRequest (PromptTooLong, ThreadRefused, UnknownToolResult) · ThreadNotFound
                          Unauthenticated · Forbidden · NotFound · MethodNotAllowed · Conflict (ConversationEnded,
                          CallForgotten) · TooLarge · TooSlow · RateLimited · OverBudget
      UpstreamFault       UpstreamRefused · UpstreamModelMissing · UpstreamMoved · UpstreamKeyRefused
                          UpstreamRateLimited (UpstreamQuotaSpent) · UpstreamOverloaded · UpstreamTimeout
                          UpstreamFailed (UpstreamUnreachable) · UpstreamProtocolError (TruncatedStream)
                          UpstreamGaveUp · RepeatedCall
      OwnFault            StoreUnavailable · Overloaded · ShuttingDown

The class says whose fault it is, which HTTP status and Anthropic error type the client sees, and whether the bridge may
try the same request again before the first content block.
"""

OPAQUE_STATE_REJECTED = "opaque_state_rejected"  # a `code`: the upstream did not take back its own opaque state


class BridgeError(Exception):
    """The message is shown to the client: it says what was found, and holds no secret."""

    status = 500
    type = "api_error"
    transient = False  # the bridge may retry, or fall back to another target
    should_retry: bool | None = None  # `x-should-retry`: None leaves it to the client's own rule

    def __init__(self, message: str, *, code: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code  # `error.details.error_code`
        self.retry_after = retry_after  # seconds


class ClientFault(BridgeError):
    status = 400
    type = "invalid_request_error"


class InvalidRequest(ClientFault):
    """The request is wrong; the message starts with the path of the field: `messages.0.role: ...`."""


class PromptTooLong(InvalidRequest):
    """Clients compact on exactly this wording: `prompt is too long: N tokens > M maximum`.

    0 is a number that the upstream did not tell: `overflow.counted` puts one in its place.
    """

    def __init__(self, found: int = 0, limit: int = 0) -> None:
        super().__init__(f"prompt is too long: {found or 'unknown'} tokens > {limit or 'unknown'} maximum")
        self.found = found
        self.limit = limit


class UnknownToolResult(InvalidRequest):
    """A result whose call is known neither to the request nor to the store."""


class ThreadRefused(InvalidRequest):
    """A `thread` that cannot go on; `code` is one of the API's thread_* codes."""


class ThreadNotFound(ClientFault):
    status = 404
    type = "not_found_error"


class Unauthenticated(ClientFault):
    status = 401
    type = "authentication_error"


class OverBudget(ClientFault):
    status = 402
    type = "billing_error"


class Forbidden(ClientFault):
    status = 403
    type = "permission_error"


class NotFound(ClientFault):
    status = 404
    type = "not_found_error"


class MethodNotAllowed(ClientFault):
    status = 405


class Conflict(ClientFault):
    status = 409
    type = "conflict_error"
    should_retry: bool | None = False


class ConversationEnded(Conflict):
    """The conversation was terminated or purged while a turn of it ran: asking again would bring it back."""


class CallForgotten(Conflict):
    """A tool call was deleted from the store while the answer that makes it was still being written."""

    should_retry = None


class TooLarge(ClientFault):
    status = 413
    type = "request_too_large"


class TooSlow(ClientFault):
    status = 408
    type = "timeout_error"


class RateLimited(ClientFault):
    status = 429
    type = "rate_limit_error"


class UpstreamFault(BridgeError):
    status = 502


class UpstreamRefused(UpstreamFault):
    """The upstream found the translated request wrong; its own message, parameter and type are kept."""

    status = 400
    type = "invalid_request_error"


class UpstreamModelMissing(UpstreamFault):
    """The upstream does not know the model or the path."""

    status = 404
    type = "not_found_error"


class UpstreamMoved(UpstreamFault):
    """A redirect: what is configured is not where the upstream is, and no trying again helps."""

    should_retry = False


class UpstreamKeyRefused(UpstreamFault):
    """401 or 403 from the upstream: the bridge's key, never the client's."""

    transient = True  # with another key or another target
    should_retry = False


class UpstreamRateLimited(UpstreamFault):
    status = 429
    type = "rate_limit_error"
    transient = True


class UpstreamQuotaSpent(UpstreamRateLimited):
    """A 429 that no waiting helps: nothing is left to pay with."""

    should_retry = False


class UpstreamOverloaded(UpstreamFault):
    status = 529
    type = "overloaded_error"
    transient = True


class UpstreamFailed(UpstreamFault):
    """5xx, a refused connection, HTML where JSON belongs."""

    transient = True


class UpstreamUnreachable(UpstreamFailed):
    """No connection: this cannot be the request's fault."""


class UpstreamTimeout(UpstreamFault):
    status = 504
    type = "timeout_error"
    transient = True


class UpstreamProtocolError(UpstreamFault):
    """The upstream answered 200 with something that is not its protocol."""

    transient = True


class TruncatedStream(UpstreamProtocolError):
    """The upstream's stream ended before a finish reason."""


class UpstreamGaveUp(UpstreamFault):
    """The upstream ended an answer by saying that it has none (Gemini's MALFORMED_FUNCTION_CALL).

    The same request often succeeds the next time, so it is sent once more, whatever the configured retries.
    """


class RepeatedCall(UpstreamFault):
    """An answer that a policy does not let pass before it was asked for once more; no client ever sees this."""


class OwnFault(BridgeError):
    status = 500


class StoreUnavailable(OwnFault):
    status = 529
    type = "overloaded_error"

    def __init__(self, message: str = "the bridge's state store is unavailable", *, retry_after: float = 2.0) -> None:
        super().__init__(message, retry_after=retry_after)


class Overloaded(OwnFault):
    status = 529
    type = "overloaded_error"


class ShuttingDown(OwnFault):
    status = 529
    type = "overloaded_error"

    def __init__(self) -> None:
        super().__init__("the bridge is restarting", retry_after=1)
