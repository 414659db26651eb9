"""Who is calling: the API key of a request, from a cache that changes reach within a second."""

import time
from collections.abc import Mapping, Sequence, Set
from functools import partial

from conversations.keys import digest
from conversations.store import Store, accounts
from conversations.store.accounts import KeyRow
from translation.errors import Unauthenticated

CACHED = 10_000
NOT_ACCEPTED = "this API key is no longer accepted"
LATE_SECONDS = 15.0  # in which a request that was let in before a change may become a turn


class Callers:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, KeyRow] = {}  # by digest
        self._changes = 0
        self.changed: dict[str, float] = {}  # digests, and when that was heard of, lately

    async def authenticate(self, digests: Sequence[str]) -> KeyRow:
        for key_digest in digests:
            key = self._known.get(key_digest) or await self._find(key_digest)
            if key is not None and (key.expires_at is None or key.expires_at > time.time()):
                return key
        raise unknown(digests)

    def forget(self, key_digest: str) -> None:
        self._known.pop(key_digest, None)
        self._changes += 1
        self.changed[key_digest] = time.monotonic()

    async def refused(self, running: Set[str]) -> list[str]:
        """Of these keys, by digest, those that a change has made invalid: revoked, given another secret, expired."""
        found = []
        for key_digest in self.changed.keys() & running:
            try:
                await self.authenticate((key_digest,))
            except Unauthenticated:
                found.append(key_digest)
        late = time.monotonic() - LATE_SECONDS
        self.changed = {changed: heard for changed, heard in self.changed.items() if heard > late}
        return found

    async def _find(self, key_digest: str) -> KeyRow | None:
        changes = self._changes
        anyone: KeyRow | None = KeyRow(0, key_digest, "full", None)  # without a store
        found = await self._store.read(partial(accounts.key_by_digest, digest=key_digest), anyone)
        # What was read before a change was heard of may be what has changed.
        if found is not None and changes == self._changes:
            if len(self._known) >= CACHED:
                self._known.clear()
            self._known[key_digest] = found
        return found


def secrets_of(headers: Mapping[str, str]) -> list[str]:
    """What a client shows; of two, one may be meant for somebody else."""
    shown = [headers["x-api-key"]] if headers.get("x-api-key") else []
    if "authorization" in headers:
        scheme, _, bearer = headers["authorization"].partition(" ")
        if scheme.lower() == "bearer" and bearer.strip():
            shown.append(bearer.strip())
    return shown


def digests_of(headers: Mapping[str, str]) -> tuple[str, ...]:
    return tuple([digest(secret) for secret in secrets_of(headers)])


def unknown(digests: Sequence[str]) -> Unauthenticated:
    return Unauthenticated("invalid x-api-key" if digests else "x-api-key header is required")
