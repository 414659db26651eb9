"""What web processes tell each other and the supervisor, in memory that they share: how many connections each has, so
that whoever has the fewest takes the next, and that its event loop goes on."""

import fcntl
import mmap
import os
import struct
import tempfile
from typing import IO

NOBODY = 2**32 - 1  # has this place
AHEAD = 4  # connections that a process may have more than another
PLACE = struct.Struct("III")  # connections, turns of the event loop that were counted, the process
FIELDS = 3


def made(places: int) -> IO[bytes]:
    file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - open as long as the supervisor lives
    file.write(PLACE.pack(NOBODY, 0, 0) * places)
    return file


def beats(board: IO[bytes]) -> dict[int, int]:
    """By process, of those that serve: who starts or shuts down has none."""
    told = os.pread(board.fileno(), os.fstat(board.fileno()).st_size, 0)
    return {process: beat for count, beat, process in PLACE.iter_unpack(told) if beat and count != NOBODY}


class Board:
    """The place of one process on it."""

    def __init__(self, descriptor: int) -> None:
        told = memoryview(mmap.mmap(descriptor, 0)).cast("I")
        self._counts, self._beats, processes = (told[field::FIELDS] for field in range(FIELDS))
        self._own = next(place for place in range(len(self._counts)) if _claimed(descriptor, place))
        self._beats[self._own], processes[self._own] = 0, os.getpid()
        self.tell(0)

    def tell(self, count: int) -> None:
        self._counts[self._own] = count

    def beat(self) -> None:
        self._beats[self._own] = self._beats[self._own] % NOBODY + 1

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
