"""`POST /v1/messages` and `/v1/messages/count_tokens`."""

from django.http import HttpRequest
from ninja import Router

from conversations.api import sse
from conversations.api.exchange import LeanRequest, LeanResponse
from conversations.ask import Ask
from conversations.beside import LARGE, beside
from conversations.process import current
from translation.client.identity import identity
from translation.client.parse import parse
from translation.client.render import MESSAGES

router = Router(tags=["Messages"])


@router.post("/messages", summary="Create a message", auth=None)
async def messages(request: HttpRequest) -> LeanResponse:
    """Anthropic's Messages API, streaming and not, in front of the upstream that the model name routes to."""
    ask = await _ask(request)
    process = current()
    turn = await process.ready().open(ask)
    return await (sse.stream(turn, process, MESSAGES) if ask.request.stream else sse.whole(turn, MESSAGES))


@router.post("/messages/count_tokens", summary="Count a message's tokens", auth=None)
async def count_tokens(request: HttpRequest) -> LeanResponse:
    """The input tokens of what `messages` would send for the same body: translated, and completed from the store."""
    ask = await _ask(request, counting=True)
    tokens = await current().ready().count(ask)
    headers = [(b"content-type", b"application/json"), (b"request-id", ask.request_id.encode())]
    return LeanResponse(200, headers, b'{"input_tokens":%d}' % tokens)


async def _ask(request: HttpRequest, *, counting: bool = False) -> Ask:
    assert isinstance(request, LeanRequest)
    process, head = current(), request.head
    process.ready()
    key = await process.callers.authenticate(head.digests)
    body = request.lean_body
    if len(body) < LARGE:
        asked = parse(body, head.version, head.betas, counting=counting)
    else:
        asked = await beside(len(body), parse, body, head.version, head.betas, counting=counting)
    return Ask(key, asked, identity(head.names, asked.user_id), request.request_id, head, request.client)
