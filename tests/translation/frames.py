"""Events as an upstream streams them."""

import msgspec


def sse(*events: object) -> bytes:
    """Bytes are sent as they are, all else as JSON."""
    return b"".join(b"data: %b\n\n" % (e if isinstance(e, bytes) else msgspec.json.encode(e)) for e in events)
