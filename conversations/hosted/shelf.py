"""Which tools are offered to whom: what is registered, from a cache that changes reach within a second, and the MCP
servers that a request names.
"""

import asyncio
import logging
import re
import time
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Literal
from urllib.parse import urlsplit

from conversations import secrets
from conversations.hosted.runner import Runner
from conversations.hosted.values import NOTHING_OFFERED, Endpoint, Hosted, Offered, ToolFailed
from conversations.store import Store
from conversations.store.accounts import KeyRow
from conversations.store.hosted import Registered, SecretRow, ToolRow, registered
from translation.errors import Forbidden, InvalidRequest, StoreUnavailable
from translation.hosted import OWN, Offer
from translation.mcp_servers import Listed, Server, listing_block, records_listings, servers
from translation.values import Note, Request

log = logging.getLogger(__name__)

LISTING_SECONDS = 300.0
LISTINGS = 1_000
PLACEHOLDER = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")


class Shelf:
    def __init__(self, store: Store, runner: Runner) -> None:
        self._store = store
        self._runner = runner
        self._registered: Registered | None = None
        self._listings: dict[tuple[str, str, str], tuple[float, tuple[Listed, ...]]] = {}

    @property
    def empty(self) -> bool:
        """Nothing is registered, as far as is known: what is not known yet has to be looked up."""
        return self._registered is not None and not self._registered.tools

    async def load(self) -> None:
        """At the start, so that no request has to; a store that is away is asked again by the first that needs it."""
        try:
            await self._all()
        except StoreUnavailable:
            log.warning("hosted tools could not be read yet")

    def forget(self) -> None:
        """Something registered has changed."""
        self.reread()
        self._listings.clear()

    def reread(self) -> None:
        self._registered = None

    def doubt(self, endpoint: Endpoint) -> None:
        """A call failed: maybe the server has other tools by now."""
        self._listings.pop(_identity(endpoint), None)

    async def offered(self, key: KeyRow, request: Request, names: tuple[str, ...], *, connector: bool) -> Offered:
        """The tools for this request; `connector` if the bridge has to serve its `mcp_servers`, too."""
        rows = await self._rows(key, names)
        named = servers(request) if connector else ()
        if not rows and not named:
            return NOTHING_OFFERED
        if named and not key.hosted:
            raise Forbidden("mcp_servers: this API key may not name MCP servers")
        found = await asyncio.gather(
            *(self._row(row) for row in rows),
            *(self._server(key, server, recorded=records_listings(request)) for server in named),
        )
        return Offered(
            tuple(tool for one in found for tool in one.tools),
            tuple(note for one in found for note in one.notes),
            tuple(block for one in found for block in one.listings),
            connector,
        )

    async def find(self, row: int, tool: str) -> Hosted | None:
        """A registered tool, for whoever has only its number: a worker, or a turn that goes on."""
        for one in (await self._all()).tools:
            if one.id == row:
                endpoint = self._endpoint(one)
                return Hosted(Offer(one.name, OWN if one.kind == "http" else one.name, tool), endpoint)
        return None

    # ------------------------------------------------------------ what is registered

    async def _all(self) -> Registered:
        if self._registered is None:
            self._registered = await self._store.read(registered, Registered())
        return self._registered

    async def _rows(self, key: KeyRow, names: tuple[str, ...]) -> list[ToolRow]:
        tools = (self._registered or await self._all()).tools
        return [row for row in tools if _is_for(row, key, names)] if tools else []

    async def _row(self, row: ToolRow) -> Offered:
        """An operator's server that is away must not take the conversation with it."""
        try:
            endpoint = self._endpoint(row)
            if row.kind == "http":
                offer = Offer(row.name, OWN, row.name, row.description, row.schema.encode())
                return Offered((Hosted(offer, endpoint),))
            listing = await self._listing(endpoint)
        except ToolFailed as failed:
            return Offered(notes=(Note("degradation", "hosted-tool-away", f"{row.name}: {failed.text}"),))
        return Offered(tuple(Hosted(offer, endpoint) for offer in Server(row.name, row.url).offers(listing)))

    def _endpoint(self, row: ToolRow) -> Endpoint:
        kind: Literal["http", "mcp"] = "http" if row.kind == "http" else "mcp"
        owner = f"key {row.owner}" if row.owner else "operator"
        place = (kind, row.url, owner, row.method, self._headers(row), row.timeout)
        return Endpoint(*place, row.id, row.long_running, row.failures, row.open_until or 0.0)

    def _headers(self, row: ToolRow) -> tuple[tuple[str, str], ...]:
        known = {one.name: one for one in (self._registered or Registered()).secrets if one.owner == row.owner}
        host = urlsplit(row.url).hostname or ""
        pairs = (line.partition(":") for line in row.headers.splitlines() if line.strip())
        return tuple((name.strip(), _revealed(value.strip(), known, host)) for name, _, value in pairs)

    # ------------------------------------------------------------ MCP servers

    async def _server(self, key: KeyRow, server: Server, *, recorded: bool) -> Offered:
        headers = (("authorization", f"Bearer {server.token}"),) if server.token else ()
        endpoint = Endpoint("mcp", server.url, f"key {key.id}", headers=headers)
        listing = server.listing
        if listing is None:
            try:
                listing = await self._listing(endpoint)
            except ToolFailed as failed:
                raise InvalidRequest(f"mcp_servers: {server.name}: {failed.text}") from None
        unknown = server.unknown(listing)
        what = f"mcp_servers: {server.name} has no tool {', '.join(unknown)}"
        return Offered(
            tuple(Hosted(offer, endpoint) for offer in server.offers(listing)),
            (Note("degradation", "mcp-tool-unknown", what[:2000]),) if unknown else (),
            (listing_block(server.name, listing),) if recorded and server.listing is None else (),
        )

    async def _listing(self, endpoint: Endpoint) -> tuple[Listed, ...]:
        """Kept for each server and whoever asks with which secret: two keys may be shown different tools."""
        identity, now = _identity(endpoint), time.monotonic()
        known = self._listings.get(identity)
        if known is not None and known[0] > now:
            return known[1]
        listing = await self._runner.listing(endpoint)
        if len(self._listings) >= LISTINGS:
            self._listings.clear()
        self._listings[identity] = (now + LISTING_SECONDS, listing)
        return listing


def _identity(endpoint: Endpoint) -> tuple[str, str, str]:
    return endpoint.owner, endpoint.url, sha256(repr(endpoint.headers).encode()).hexdigest()


def _is_for(row: ToolRow, key: KeyRow, names: tuple[str, ...]) -> bool:
    if row.owner is not None:
        return row.owner == key.id and key.hosted
    if key.id in row.api_keys:
        return True
    patterns = [line.strip().lower() for line in row.for_models.splitlines() if line.strip()]
    return any(fnmatchcase(name.lower(), pattern) for name in names for pattern in patterns)


def _revealed(template: str, known: dict[str, SecretRow], host: str) -> str:
    """The header's value. A secret that belongs to another host stays where it is."""

    def value(match: re.Match[str]) -> str:
        secret = known.get(match.group(1))
        if secret is None or secret.host.lower() != host.lower():
            raise ToolFailed("refused", f"the secret {match.group(1)} does not belong to {host}")
        try:
            return secrets.decrypt(secret.value)
        except secrets.Unreadable as error:
            raise ToolFailed("refused", str(error)) from None

    return PLACEHOLDER.sub(value, template)
