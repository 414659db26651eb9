"""The background process of one machine: a Celery worker that runs one task at a time, and beat in a thread of it.

`celery worker -B` would put beat into a process of its own, forty megabytes for a clock.
"""

import os
import signal
import sys
import threading

from celery.beat import EmbeddedService

from bridge_project import settings
from bridge_project.celery import app


def main(arguments: list[str]) -> int:
    for argument in arguments:
        threading.Thread(target=_follow, args=(int(argument.removeprefix("--lifeline=")),), daemon=True).start()
    for folder in settings.BROKER_FOLDERS.values():
        folder.mkdir(parents=True, exist_ok=True)
    beat = EmbeddedService(app, thread=True, schedule_filename=settings.CELERY_BEAT_SCHEDULE_FILENAME)
    beat.start()
    # Gossip and mingle are for workers that know each other; this one is alone.
    worker = app.Worker(pool="solo", loglevel="WARNING", quiet=True, without_gossip=True, without_mingle=True)
    worker.start()
    beat.stop()
    return int(worker.exitcode or 0)


def _follow(lifeline: int) -> None:
    """Returns from the read when the supervisor is gone: nobody writes."""
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
