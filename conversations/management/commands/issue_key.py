"""`manage.py issue_key NAME`: a new API key, shown once."""

from django.core.management.base import BaseCommand, CommandParser

from conversations import keys


class Command(BaseCommand):
    help = "Issue an API key and print it; it cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="who or what will use it")

    def handle(self, *args: object, **options: object) -> None:
        _, secret = keys.issue(str(options["name"]))
        self.stdout.write(secret)
