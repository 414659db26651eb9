"""Text from elsewhere, as columns take it."""

from hashlib import blake2b

from translation.errors import BridgeError, UpstreamFault
from translation.unicode import well_formed

WORDS_LIMIT = 2_000  # characters of an error's message
NOT_KEPT = "(what the upstream said is not kept with this key)"
ID_LIMIT = 2_000  # within what an index of PostgreSQL takes


def storable(text: str, limit: int) -> str:
    """Text of an upstream's as a text column takes it: PostgreSQL refuses NUL and what is too long, both surrogates."""
    return well_formed(text).replace("\0", "\ufffd")[:limit]


def words(error: BridgeError, storage: str) -> str:
    """What is kept of an error: an upstream may quote the request that it refuses, or its own answer."""
    quotes = storage != "full" and isinstance(error, UpstreamFault)
    return NOT_KEPT if quotes else storable(error.message, WORDS_LIMIT)


def storable_id(id_: str) -> str:
    """An upstream's call id as it is; one that no column takes gets a name of its own, the same every time."""
    if len(id_) <= ID_LIMIT and storable(id_, ID_LIMIT) == id_:
        return id_
    return f"{storable(id_, 40)}~{digest(id_.encode('utf-8', 'surrogatepass')).hex()}"


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
