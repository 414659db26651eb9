"""The models that clients can ask for: the configuration's own names, and what the upstreams say they have.

Upstreams are asked now and then, briefly, and only when somebody lists; one that does not answer just adds nothing.
"""

import asyncio
import time

from conversations.routing import Offer, Router
from conversations.upstream import Upstream, Upstreams
from translation.adapter import UpstreamRequest
from translation.catalog import model_names
from translation.errors import UpstreamFault

PATIENCE = 2.0
LIST_LIMIT = 8 * 1024 * 1024
FRESH, RETRY = 300.0, 30.0  # seconds


class Catalog:
    def __init__(self, router: Router, upstreams: Upstreams) -> None:
        self._router = router
        self._upstreams = upstreams
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}  # when to ask again, and what was said

    async def offers(self) -> tuple[Offer, ...]:
        # Profiles that share a provider's settings would list its models a second time.
        asked = [upstream for upstream in self._router.upstreams if not upstream.profile.shares and upstream.base_url]
        lists = await asyncio.gather(*map(self._models, asked))
        found = [
            Offer(f"{upstream.name}/{model}", upstream.name, model)
            for upstream, models in zip(asked, lists, strict=True)
            for model in models
        ]
        return tuple({offer.id: offer for offer in (*self._router.offers(), *found)}.values())

    async def _models(self, upstream: Upstream) -> tuple[str, ...]:
        until, known = self._known.get(upstream.name, (0.0, ()))
        if upstream.name == "demo" or time.monotonic() < until:
            return known
        listing = UpstreamRequest(_path(upstream), b"", stream=False)
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await self._upstreams.send(upstream, listing, "GET")
                body = await answer.body(LIST_LIMIT)
            known = model_names(body) if answer.status == 200 else known
        except (UpstreamFault, TimeoutError):
            pass  # the list is a courtesy
        self._known[upstream.name] = (time.monotonic() + (FRESH if known else RETRY), known)
        return known


def _path(upstream: Upstream) -> str:
    return "/models?limit=1000" if upstream.profile.dialect == "anthropic" else "/models"
