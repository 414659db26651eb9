"""Was a reused connection closed by the peer as idle, before it had our request?

FIN is ordered behind what the peer acknowledged. So if the end of input arrives while our request is unacknowledged, or
our request was answered by a reset after that end, then no server had the request, and sending it again is safe. A
server that read the request and then died acknowledged it first. Linux only; elsewhere the answer is no.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys

_TCP_CLOSE = 7
_STATE_AND_UNACKED = struct.Struct("=B23xI")  # struct tcp_info: tcpi_state, tcpi_unacked


def closed_as_idle(transport: asyncio.BaseTransport) -> bool:
    """To be asked at the end of input."""
    sock = transport.get_extra_info("socket")
    if sys.platform != "linux" or sock is None:
        return False
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _STATE_AND_UNACKED.size)
    except OSError:  # already closed: nothing is known
        return False
    state, unacked = _STATE_AND_UNACKED.unpack(info)
    return bool(state == _TCP_CLOSE or unacked)
