"""An HTTP/1.1 client transport behind httpx's interface, made for many long streams and few microseconds each.

`Transport.handle_async_request(request)` answers an `httpx.Response`; `response.stream` is directly iterable
(`async for chunk in response.stream`): one raw chunk per socket read, no decoding. Iterate it to its end or call its
`aclose()`; an end seen returns the connection to the pool, an `aclose()` before it closes the connection at once.
"""

from conversations.transport.client import Transport

__all__ = ["Transport"]
