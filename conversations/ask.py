"""What a client asks for, and who it is."""

import time

from msgspec import Struct, field

from conversations.audience import Client
from conversations.heads import Head
from conversations.store.accounts import KeyRow
from translation.client.identity import Identity
from translation.values import Request


class Ask(Struct, frozen=True):
    key: KeyRow
    request: Request
    identity: Identity
    request_id: str
    head: Head
    client: Client
    received: float = field(default_factory=time.perf_counter)
    body: bytes = b""  # as it came, where the request does not hold it
