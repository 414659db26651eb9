"""A beat that never rests: purges and reconciles again and again, and says after each purge that found something in how
many batches it deleted it: each is a transaction of its own."""

import os
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")


def main() -> None:
    django.setup()
    from conversations import retention  # noqa: PLC0415 - it has models, which need the set-up

    while True:
        done = retention.purge(budget=5)
        retention.reconcile()
        sys.stdout.write(f"{done.pieces.count if done.conversations else 0}\n")
        sys.stdout.flush()
        time.sleep(0 if done.conversations else 0.05)


if __name__ == "__main__":
    main()
