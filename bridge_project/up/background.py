"""The background process of one machine: a Celery worker that runs one task at a time, and beat in a thread of it.

`celery worker -B` would put beat into a process of its own, forty megabytes for a clock.
"""

import os
import select
import signal
import sys
import threading
import warnings

from celery.beat import EmbeddedService
from celery.exceptions import WorkerShutdown
from celery.platforms import SecurityWarning
from celery.signals import worker_shutting_down
from celery.worker import state

from bridge_project import settings

NICE = 10  # on one machine, whoever waits for an answer comes first


def main(arguments: list[str]) -> int:
    os.environ["DJANGO_SETTINGS_MODULE"] = "bridge_project.up.background_settings"
    # Django's system checks would load the URLs, and with them the admin and the API.
    os.environ["CELERY_SKIP_CHECKS"] = "1"
    from bridge_project.celery import app  # noqa: PLC0415 - it sets up Django with those settings

    for argument in arguments:
        threading.Thread(target=_follow, args=(int(argument.removeprefix("--lifeline=")),), daemon=True).start()
    for folder in settings.BROKER_FOLDERS.values():
        folder.mkdir(parents=True, exist_ok=True)
    # About root and pickled messages; ours are JSON.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    os.nice(NICE)
    worker_shutting_down.connect(_stop_when_idle)
    EmbeddedService(app, thread=True, schedule_filename=settings.CELERY_BEAT_SCHEDULE_FILENAME).start()
    # Gossip and mingle are for workers that know each other; this one is alone.
    worker = app.Worker(pool="solo", loglevel="WARNING", quiet=True, without_gossip=True, without_mingle=True)
    worker.start()
    return int(worker.exitcode or 0)


def _follow(lifeline: int) -> None:
    """Nobody writes to the lifeline: it becomes readable when the supervisor is gone."""
    select.select([lifeline], [], [])
    os.kill(os.getpid(), signal.SIGTERM)


def _stop_when_idle(**_: object) -> None:
    """Runs in the signal handler. An idle worker would look twice more for messages, two seconds each.

    A message taken but not begun is lost by this; everything here is periodic and comes again.
    """
    if not state.active_requests:
        raise WorkerShutdown(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
