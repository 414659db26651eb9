"""Which web processes of this machine have died. Each holds a lock in BRIDGE_HOME for as long as it lives, however it
ends: who starts after a crash need not wait until the dead one has not been seen for half a minute.
"""

import fcntl
import logging
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from conversations.models import Process
from conversations.retention import close_abandoned

log = logging.getLogger(__name__)

LONG_AGO = datetime.fromtimestamp(0, UTC)


def live(home: Path, process: Process) -> IO[str] | None:
    """What is returned stays open until the process ends. None where the machine has no such locks."""
    try:
        folder = home / "processes"
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / str(process.pk)
        sign = place.with_suffix(".new").open("w", encoding="ascii")
        fcntl.flock(sign, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sign.write(process.started_at.isoformat())
        sign.flush()
        place.with_suffix(".new").rename(place)  # by this name it is looked at, and it is locked by now
    except OSError as error:
        log.warning("only its heartbeat tells that this process lives: %s", error)
        return None
    return sign


def bury(home: Path) -> int:
    """Close the turns that the dead have left; how many there were."""
    _mark(_dead(home / "processes"))
    return close_abandoned()


def bury_at_once(home: Path) -> int:
    """The same for who lives on: the database hears of it only if somebody has died."""
    dead = _dead(home / "processes")
    if not dead:
        return 0
    _mark(dead)
    return close_abandoned()


def _mark(dead: dict[int, datetime]) -> None:
    known = Process.objects.filter(pk__in=dead).values_list("pk", "started_at")
    # The same home may have had another database, with the same numbers.
    same = [number for number, started in known if started == dead[number]]
    Process.objects.filter(pk__in=same).update(seen_at=LONG_AGO)


def _dead(folder: Path) -> dict[int, datetime]:
    found = {}
    for place in folder.glob("[0-9]*"):
        # What is locked belongs to the living; what cannot be read, to nobody.
        with suppress(OSError, ValueError), place.open(encoding="ascii") as sign:
            fcntl.flock(sign, fcntl.LOCK_EX | fcntl.LOCK_NB)
            place.unlink()
            found[int(place.name)] = datetime.fromisoformat(sign.read())
    return found
