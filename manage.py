"""Toolbridge's command line.

`up` supervises for the life of the server and has to stay small, so it starts without Django; every other
command is Django's.
"""

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")


def main() -> int:
    if sys.argv[1:] == ["up"]:
        from bridge_project import supervisor  # noqa: PLC0415 - Django's commands do not need it

        return supervisor.main()
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415 - `up` must not import Django
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"toolbridge: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
