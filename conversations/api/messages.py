"""`POST /v1/messages` and `/v1/messages/count_tokens`."""

from django.http import HttpRequest
from ninja import Router

from conversations.api import sse
from conversations.api.exchange import LeanRequest, LeanResponse
from conversations.ask import Ask
from conversations.beside import LARGE, beside
from conversations.process import WebProcess, current
from translation.client.identity import identity
from translation.client.parse import parse
from translation.client.render import MESSAGES

router = Router(tags=["Messages"])


@router.post("/messages", summary="Create a message", auth=None)
async def messages(request: HttpRequest) -> LeanResponse:
    """Anthropic's Messages API, streaming and not, in front of the upstream that the model name routes to."""
    process = current()
    bridge = process.ready()
    ask = await _ask(request, process)
    turn = await bridge.open(ask)
    return await (sse.stream(turn, process, MESSAGES) if ask.request.stream else sse.whole(turn, MESSAGES))


@router.post("/messages/count_tokens", summary="Count a message's tokens", auth=None)
async def count_tokens(request: HttpRequest) -> LeanResponse:
    """The input tokens of what `messages` would send for the same body: translated, and completed from the store."""
    process = current()
    bridge = process.ready()
    ask = await _ask(request, process, counting=True)
    tokens = await bridge.count(ask)
    headers = [(b"content-type", b"application/json"), (b"request-id", ask.request_id.encode())]
    return LeanResponse(200, headers, b'{"input_tokens":%d}' % tokens)


async def _ask(request: HttpRequest, process: WebProcess, *, counting: bool = False) -> Ask:
    assert isinstance(request, LeanRequest)
    head, body = request.head, request.lean_body
    key = await process.callers.authenticate(head.digests)
    if len(body) < LARGE:
        asked = parse(body, head.version, head.betas, counting=counting)
    else:
        asked = await beside(len(body), parse, body, head.version, head.betas, counting=counting)
    who = identity(head.names, asked.user_id) if asked.user_id else head.identity
    return Ask(key, asked, who, request.request_id, head, request.client)
