"""An ASGI application behind uvicorn, in the test's own event loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn


@asynccontextmanager
async def serving(application: Any, http: type[asyncio.Protocol], **more: Any) -> AsyncIterator[int]:
    """Its port."""
    server = uvicorn.Server(uvicorn.Config(application, port=0, http=http, lifespan="off", log_config=None, **more))
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await running
