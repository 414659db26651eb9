"""Work on a request so large that everybody else would wait for it: done in a thread, one such request at a time.

The threads take turns, and short ones: the event loop, which has to wait for its turn after everything that it sends
or reads, goes on meanwhile.
"""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from translation.values import Request

P = ParamSpec("P")
T = TypeVar("T")

LARGE = 1_000_000  # bytes of a request: some ten milliseconds of work
MESSAGE = 500  # bytes that are as much work as what there is to do for each message
TURN_SECONDS, SHORT_TURN_SECONDS = 0.001, 0.0001
_LANE = ThreadPoolExecutor(1, thread_name_prefix="large-requests")

sys.setswitchinterval(TURN_SECONDS)


def size_of(request: Request) -> int:
    """In bytes: what the client sent, or the messages that it has become with what is stored."""
    return max(len(request.body), MESSAGE * len(request.messages))


async def beside(size: int, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """At once, unless the request has this size: then beside the event loop. `work` must be fit for a thread."""
    if size < LARGE:
        return work(*given, **named)
    return await asyncio.get_running_loop().run_in_executor(_LANE, lambda: _in_short_turns(work, *given, **named))


def _in_short_turns(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    sys.setswitchinterval(SHORT_TURN_SECONDS)
    try:
        return work(*given, **named)
    finally:
        sys.setswitchinterval(TURN_SECONDS)
