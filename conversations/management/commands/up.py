"""`manage.py up`: the whole bridge as one process tree.

`manage.py` takes the bare command itself, without Django; this one is for `help`, for options and for `call_command`.
"""

import sys

from django.core.management.base import BaseCommand

from bridge_project.up import supervisor


class Command(BaseCommand):
    help = "Migrate, make the first operator and API key, and serve: web, worker and beat, until Ctrl-C."
    requires_system_checks: tuple[str, ...] = ()

    def handle(self, *args: object, **options: object) -> None:
        sys.exit(supervisor.run())
