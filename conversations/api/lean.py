"""The lean ASGI handler of the hot paths: no thread per request, no middleware, no ORM.

Reads the body, runs the ninja operation, sends what it returns. When the client leaves, the operation is cancelled.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from conversations import ids
from conversations.api.cycle import CYCLE, Cycle, Messages, Send
from conversations.api.exchange import LeanRequest, LeanResponse
from conversations.api.incoming import LARGE, ClientGone, Receive, announced, read_body, unpacked
from conversations.audience import Client
from conversations.process import current
from conversations.store import patience
from translation.errors import BridgeError, OwnFault
from translation.renderer import Refusal

Operation = Callable[[LeanRequest], Awaitable[LeanResponse]]
Refuse = Callable[[BridgeError, str], Refusal]  # an error in the dialect of the path, with the request's id

log = logging.getLogger(__name__)

BETAS = "anthropic-beta"  # a list; of every other header that comes twice the last line counts


async def serve(operation: Operation, refuse: Refuse, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    request_id = ids.request_id()
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    if len(headers) < len(scope["headers"]) and BETAS in headers:
        headers[BETAS] = _lines(scope["headers"], BETAS.encode())
    request = LeanRequest(scope, headers, request_id)
    cycle: Cycle = scope.get(CYCLE) or Messages(receive, send)
    try:
        size = announced(headers)
        if size < LARGE:
            body = cycle.body_at_once()
            request.lean_body = await read_body(receive) if body is None else body
            await _serve(operation, refuse, request, cycle)
        else:
            process = current()
            process.ready()
            await process.callers.authenticate(headers)
            async with process.room.taken(size) as place:
                request.lean_body = await unpacked(await read_body(receive), headers)
                place.resize(len(request.lean_body))
                await _serve(operation, refuse, request, cycle)
    except ClientGone:
        return
    except BridgeError as error:  # before there was a request to answer
        current().meter.error(error)
        response = refused(refuse(error, request_id))
        await cycle.answer(response.lean_status, response.lean_headers, response.lean_body)


def _lines(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> str:
    """A list that comes in several lines of its header is one list."""
    return b",".join(value for name, value in headers if name == wanted).decode("latin-1")


async def _serve(operation: Operation, refuse: Refuse, request: LeanRequest, cycle: Cycle) -> None:
    patience.begin()
    client = request.client = Client()
    unwatch = cycle.watch(client.leave)
    try:
        await _answer(operation, refuse, request, cycle)
    except asyncio.CancelledError:
        if not client.gone:  # cancelled by the server, not by the client's leaving
            raise
    finally:
        unwatch()


async def _answer(operation: Operation, refuse: Refuse, request: LeanRequest, cycle: Cycle) -> None:
    try:
        response = await operation(request)
    except BridgeError as error:
        current().meter.error(error)
        response = refused(refuse(error, request.request_id))
    except Exception:  # the last resort: a fault of ours must look like one
        log.exception("request %s failed", request.request_id)
        response = refused(refuse(OwnFault("internal error"), request.request_id))
    if response.lean_stream is None:
        await cycle.answer(response.lean_status, response.lean_headers, response.lean_body)
    else:
        await cycle.begin(response.lean_status, response.lean_headers)
        await response.lean_stream(cycle.write)
        await cycle.end()


def refused(refusal: Refusal) -> LeanResponse:
    headers = [(b"content-type", b"application/json")]
    headers += [(name.encode(), value.encode()) for name, value in refusal.headers]
    return LeanResponse(refusal.status, headers, refusal.body)
