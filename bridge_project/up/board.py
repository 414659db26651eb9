"""How many connections each web process has, in memory that they share: whoever has the fewest takes the next."""

import fcntl
import mmap
import sys
import tempfile
from typing import IO

NOBODY = 2**32 - 1  # has this place
AHEAD = 4  # connections that a process may have more than another


def made(places: int) -> IO[bytes]:
    file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - open as long as the supervisor lives
    file.write(NOBODY.to_bytes(4, sys.byteorder) * places)
    return file


class Board:
    """The place of one process on it."""

    def __init__(self, descriptor: int) -> None:
        self._counts = memoryview(mmap.mmap(descriptor, 0)).cast("I")
        self._own = next(place for place in range(len(self._counts)) if _claimed(descriptor, place))
        self.tell(0)

    def tell(self, count: int) -> None:
        self._counts[self._own] = count

    @property
    def room(self) -> int:
        """How many this process may take before another one should."""
        least = min((count for place, count in enumerate(self._counts) if place != self._own), default=NOBODY)
        return least + AHEAD - self._counts[self._own]


def _claimed(descriptor: int, place: int) -> bool:
    """Until this process dies, however it does."""
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except OSError:
        return False
    return True
