"""The lean ASGI handler of the hot paths: no thread per request, no middleware, no ORM.

Reads the body, runs the ninja operation, sends what it returns. When the client leaves, the operation is cancelled.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from conversations import ids, telemetry
from conversations.api.cycle import CYCLE, Cycle, Messages, Send
from conversations.api.exchange import LeanRequest, LeanResponse
from conversations.api.incoming import CODINGS, LARGE, PLAIN, ClientGone, Receive, announced, read_body, unpacked
from conversations.audience import Client
from conversations.heads import head_of
from conversations.process import current
from conversations.store import patience
from translation.errors import BridgeError, OwnFault
from translation.renderer import Refusal

Operation = Callable[[LeanRequest], Awaitable[LeanResponse]]
Refuse = Callable[[BridgeError, str], Refusal]  # an error in the dialect of the path, with the request's id

log = logging.getLogger(__name__)


async def serve(operation: Operation, refuse: Refuse, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    request_id = ids.request_id()
    cycle: Cycle = scope.get(CYCLE) or Messages(scope["headers"], receive, send)
    head = head_of(cycle.lines)
    request = LeanRequest(scope, head, request_id)
    try:
        body = cycle.body_at_once() if CODINGS.get(head.coding) == PLAIN else None
        if body is None and (size := announced(head, cycle.length)) < LARGE:
            body = await read_body(receive)
        if body is not None:
            request.lean_body = body
            await _serve(operation, refuse, request, cycle)
        else:
            process = current()
            process.ready()
            await process.callers.authenticate(head.digests)
            async with process.room.taken(size) as place:
                request.lean_body = await unpacked(await read_body(receive), head)
                place.resize(len(request.lean_body))
                await _serve(operation, refuse, request, cycle)
    except ClientGone:
        return
    except BridgeError as error:  # before there was a request to answer
        response = _told(refuse, error, request_id)
        await cycle.answer(response.lean_status, response.lean_headers, response.lean_body)


async def _serve(operation: Operation, refuse: Refuse, request: LeanRequest, cycle: Cycle) -> None:
    patience.begin()
    client = request.client = Client()
    unwatch = cycle.watch(client.leave)
    try:
        try:
            response = await operation(request)
        except BridgeError as error:
            response = _told(refuse, error, request.request_id)
        except Exception:  # the last resort: a fault of ours must look like one
            log.exception("request %s failed", request.request_id)
            response = refused(refuse(OwnFault("internal error"), request.request_id))
        if response.lean_stream is None:
            await cycle.answer(response.lean_status, response.lean_headers, response.lean_body)
        else:
            await cycle.begin(response.lean_status, response.lean_headers)
            await response.lean_stream(cycle.write)
            await cycle.end()
    except asyncio.CancelledError:
        if not client.gone:  # cancelled by the server, not by the client's leaving
            raise
    finally:
        unwatch()


def _told(refuse: Refuse, error: BridgeError, request_id: str) -> LeanResponse:
    """That there was such a request, nothing else remembers."""
    current().meter.error(error)
    telemetry.refused(request_id, error)
    return refused(refuse(error, request_id))


def refused(refusal: Refusal) -> LeanResponse:
    headers = [(b"content-type", b"application/json")]
    headers += [(name.encode(), value.encode()) for name, value in refusal.headers]
    return LeanResponse(refusal.status, headers, refusal.body)
