"""Opening a connection: resolve, connect, shake hands; every way to fail has its httpx name."""

from __future__ import annotations

import asyncio
import ssl

import httpx

from conversations.transport.connection import Connection


async def dial(connection: Connection, tls: ssl.SSLContext | None, within: float | None) -> None:
    origin = connection.origin
    try:
        async with asyncio.timeout(within):
            await connection.loop.create_connection(
                lambda: connection,
                origin.address,
                origin.port,
                ssl=tls,
                server_hostname=origin.host if tls is not None else None,
            )
    except TimeoutError as error:
        connection.abort()
        raise httpx.ConnectTimeout(f"no connection to {origin.host}:{origin.port} in time") from error
    except (OSError, ValueError, OverflowError) as error:  # ValueError: a host that cannot be a DNS or TLS name
        connection.abort()
        raise httpx.ConnectError(f"{origin.host}:{origin.port}: {error}") from error
    except BaseException:
        connection.abort()
        raise
