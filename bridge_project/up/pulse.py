"""Whether web processes go on: one whose event loop stands still answers nobody, and does not die of it."""

from typing import IO

from bridge_project.up import board

LOOKS = 6  # without a beat


class Pulse:
    """Looks are counted, not seconds: a machine that was asleep, or a container that was stopped, wakes up to one more
    look, and who was stopped with the supervisor goes on before the next."""

    def __init__(self, shared: IO[bytes], seconds: float) -> None:
        self.seconds = seconds
        self.pause = seconds / LOOKS  # between two looks
        self._board = shared
        self._last: dict[int, int] = {}
        self._still: dict[int, int] = {}

    def look(self) -> dict[int, int]:
        """The processes that stand still, and for how many looks more than they may."""
        found = board.beats(self._board)
        self._still = {
            process: self._still.get(process, 0) + 1
            for process, beat in found.items()
            if self._last.get(process) == beat
        }
        self._last = found
        return {process: looks - LOOKS for process, looks in self._still.items() if looks >= LOOKS}
