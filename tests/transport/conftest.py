"""Every test runs on asyncio's own loop and on uvloop, against raw sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import pytest
import uvloop

from conversations.transport import Transport
from tests.transport.peer import Upstream


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


@pytest.fixture
async def transport() -> AsyncIterator[Transport]:
    client = Transport()
    yield client
    await client.aclose()
