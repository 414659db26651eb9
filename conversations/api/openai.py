"""`POST /v1/chat/completions` and `/v1/embeddings`: clients of OpenAI's API, with the same keys, routes and records."""

import time

from django.http import HttpRequest
from ninja import Router

from conversations import embeddings as embedding
from conversations.api import sse
from conversations.api.exchange import LeanRequest, LeanResponse
from conversations.ask import Ask
from conversations.beside import beside
from conversations.process import current
from translation.client.identity import identity
from translation.errors import InvalidRequest
from translation.openai_client.parse import parse
from translation.openai_client.render import ChatRenderer

router = Router(tags=["OpenAI"])


@router.post("/chat/completions", summary="Create a chat completion", auth=None)
async def chat_completions(request: HttpRequest) -> LeanResponse:
    """OpenAI's Chat Completions, streaming and not, in front of the upstream that the model name routes to."""
    assert isinstance(request, LeanRequest)
    process, head = current(), request.head
    bridge = process.ready()
    key = await process.callers.authenticate(head.digests)
    chat = await beside(len(request.lean_body), parse, request.lean_body)
    asked = chat.request
    who = identity(head.names, asked.user_id)
    ask = Ask(key, asked, who, request.request_id, head, request.client, body=request.lean_body)
    try:
        turn = await bridge.open(ask)
    except InvalidRequest as error:
        raise chat.placed(error) from None
    renderer = ChatRenderer(int(time.time()), include_usage=chat.include_usage)
    return await (sse.stream(turn, process, renderer) if asked.stream else sse.whole(turn, renderer))


@router.post("/embeddings", summary="Create embeddings", auth=None)
async def embeddings(request: HttpRequest) -> LeanResponse:
    """Passed on to the upstream that the model name routes to, if it has such an endpoint."""
    assert isinstance(request, LeanRequest)
    process = current()
    bridge = process.ready()
    key = await process.callers.authenticate(request.head.digests)
    body = await embedding.create(bridge, key, request.lean_body, request.request_id)
    identified = ChatRenderer(created=0).headers(request.request_id)
    headers = [(name.encode(), value.encode()) for name, value in identified]
    return LeanResponse(200, [(b"content-type", b"application/json"), *headers], body)
