"""`manage.py purge_inactive`: what beat does every five minutes, now."""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations import retention


class Command(BaseCommand):
    help = "Delete what was kept long enough: idle conversations, text, usage entries."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seconds", default=240.0, type=float, help="stop after so long; the next run goes on")

    def handle(self, *args: object, **options: object) -> None:
        seconds = float(str(options["seconds"]))
        if not seconds >= 0:  # nor is NaN
            raise CommandError(f"seconds: {seconds:g} is no time to work for")
        done, left = retention.purge(seconds), retention.backlog()
        pieces = done.pieces
        slowest = (
            f"the longest transaction took {pieces.longest * 1_000:.1f} ms ({pieces.slowest}); "
            if pieces.slowest
            else ""
        )
        self.stdout.write(
            f"{done.conversations} conversations deleted, {done.contents} emptied of text, {done.rows} rows in all; "
            f"{slowest}"
            f"left for next time: {left.conversations} conversations, {left.contents} texts, {left.entries} entries"
        )
