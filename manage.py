"""Toolbridge's command line.

`up` supervises for the life of the server and has to stay small, so it starts without Django; every other
command is Django's.
"""

import os
import sys

try:
    from django.core.exceptions import ImproperlyConfigured
except ImportError:
    sys.exit("toolbridge: this Python has no Django: use .venv/bin/python, which `make venv` makes")

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")


def main() -> int:
    try:
        return _up() if sys.argv[1:] == ["up"] else _django()
    except ImproperlyConfigured as error:
        sys.stderr.write(f"toolbridge: {error}\n")
        return 1


def _up() -> int:
    from bridge_project.up import supervisor  # noqa: PLC0415 - importing it reads the settings, which may be wrong

    return supervisor.run()


def _django() -> int:
    from django.core.management import execute_from_command_line  # noqa: PLC0415 - `up` has to start without it
    from django.db import OperationalError, ProgrammingError  # noqa: PLC0415

    try:
        execute_from_command_line(sys.argv)
    except (OperationalError, ProgrammingError) as error:  # nobody answers, or the tables are not there yet
        if "--traceback" in sys.argv:
            raise
        reason = str(error).partition("\n")[0]
        raise ImproperlyConfigured(
            f"the database cannot be used: {reason} (manage.py prepare makes it ready)"
        ) from error
    return 0


if __name__ == "__main__":
    sys.exit(main())
