"""Toolbridge's command line."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")


def main() -> int:
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"toolbridge: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
