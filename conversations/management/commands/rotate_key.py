"""`manage.py rotate_key KEY`: a new secret for a key, by name, prefix or the old secret."""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations import keys


class Command(BaseCommand):
    help = "Give an API key a new secret and print it; the old one stops within a second. All else of the key stays."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key", help="its name, its first characters, or the key itself")

    def handle(self, *args: object, **options: object) -> None:
        try:
            key = keys.find(str(options["key"]))
        except LookupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(keys.rotate(key))
        self.stderr.write(
            f"{key.name} has this secret now; if the old one is in BRIDGE_API_KEYS, take it out there too"
        )
