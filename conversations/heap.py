"""Memory that was freed goes back to the system. The C library keeps it for the next time: a process that once had two
hundred large answers at a time would be five times its size for ever."""

import ctypes
from pathlib import Path
from resource import getpagesize

MUCH = 64 * 1024 * 1024  # bytes that are kept for nobody
STATM = Path("/proc/self/statm")
FIELDS = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
    *("uordblks", "fordblks", "keepcost"),
)


class _Use(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


class Heap:
    """Where the C library, or the system, does not tell, nothing is done."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._trim = getattr(library, "malloc_trim", None)
        self._use = getattr(library, "mallinfo2", None) if STATM.exists() else None
        if self._use is not None:
            self._use.restype = _Use
        self._usual = self._kept()

    def give_back(self) -> None:
        if self._trim is not None and self._kept() > self._usual + MUCH:
            self._trim(0)
            self._usual = self._kept()

    def _kept(self) -> int:
        """Bytes that the process has, and that were not asked for, or not in this way."""
        if self._use is None:
            return 0
        use = self._use()
        resident = int(STATM.read_text(encoding="ascii").split()[1]) * getpagesize()
        return resident - int(use.uordblks) - int(use.hblkhd)
