"""Work on a request so large that everybody else would wait for it: done in a thread, one step of one such request at
a time.

The threads take turns, and short ones: the event loop, which has to wait for its turn after everything that it sends
or reads, goes on meanwhile. What a step does in one piece (to read 30 MB of JSON) it waits for all the same: after each
comes a rest, so that most of the others' requests meet none.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from translation.values import Request

P = ParamSpec("P")
T = TypeVar("T")

LARGE = 1_000_000  # bytes of a request: some ten milliseconds of work
MESSAGE = 500  # bytes that are as much work as what there is to do for each message
TURN_SECONDS, SHORT_TURN_SECONDS = 0.001, 0.0001
FELT = 0.01  # seconds of a step that others feel
REST, LONGEST_REST = 4.0, 2.0  # after such a step: as a multiple of what it took; seconds

sys.setswitchinterval(TURN_SECONDS)


def size_of(request: Request) -> int:
    """In bytes: what the client sent, or the messages that it has become with what is stored."""
    return max(request.size, MESSAGE * len(request.messages))


class _Lane:
    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="large-requests")
        self._rests_until = 0.0

    def run(self, work: Callable[[], T]) -> T:
        time.sleep(max(self._rests_until - time.monotonic(), 0.0))
        started = time.thread_time()
        sys.setswitchinterval(SHORT_TURN_SECONDS)
        try:
            return work()
        finally:
            sys.setswitchinterval(TURN_SECONDS)
            took = time.thread_time() - started
            rest = REST * took if took >= FELT else 0.0
            self._rests_until = time.monotonic() + min(rest, LONGEST_REST)


_LANE = _Lane()


async def beside(size: int, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """At once, unless the request has this size: then beside the event loop. `work` must be fit for a thread."""
    if size < LARGE:
        return work(*given, **named)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_LANE.thread, _LANE.run, partial(work, *given, **named))
