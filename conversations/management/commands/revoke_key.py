"""`manage.py revoke_key KEY`: by name, prefix or the key itself."""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations import keys


class Command(BaseCommand):
    help = "Revoke an API key, effective in every process within a second."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key", help="its name, its first characters, or the key itself")

    def handle(self, *args: object, **options: object) -> None:
        try:
            key = keys.find(str(options["key"]))
        except LookupError as error:
            raise CommandError(str(error)) from error
        keys.revoke(key)
        self.stdout.write(f"revoked {key}")
