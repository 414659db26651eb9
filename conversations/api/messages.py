"""`POST /v1/messages`."""

from django.http import HttpRequest
from ninja import Router

from conversations.api import sse
from conversations.api.exchange import LeanRequest, LeanResponse
from conversations.process import current
from conversations.turn import Ask
from translation.client.identity import identity
from translation.client.parse import parse

router = Router(tags=["Messages"])
DEFAULT_VERSION = "2023-06-01"


@router.post("/messages", summary="Create a message", auth=None)
async def messages(request: HttpRequest) -> LeanResponse:
    """Anthropic's Messages API, streaming and not, in front of the upstream that the model name routes to."""
    assert isinstance(request, LeanRequest)
    process, headers = current(), request.lean_headers
    bridge = process.ready()
    key = await process.callers.authenticate(headers)
    betas = tuple(beta.strip() for beta in headers.get("anthropic-beta", "").split(",") if beta.strip())
    asked = parse(request.lean_body, headers.get("anthropic-version", DEFAULT_VERSION), betas)
    turn = await bridge.open(Ask(key, asked, identity(headers, asked.user_id), request.request_id, headers))
    return await (sse.stream(turn, process) if asked.stream else sse.whole(turn))
