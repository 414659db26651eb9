"""`manage.py rotate_key KEY`: a new secret for a key. `--encryption`: everything encrypted, under the first key."""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations import keys, resealing


class Command(BaseCommand):
    help = (
        "Give an API key a new secret and print it; the old one stops within a second, all else of the key stays. "
        "With --encryption: encrypt everything anew under the first of BRIDGE_ENCRYPTION_KEYS, to retire the others."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key", nargs="?", help="its name, its first characters, or the key itself")
        parser.add_argument("--encryption", action="store_true", help="encrypt everything anew instead")

    def handle(self, *args: object, **options: object) -> None:
        if options["encryption"] and options["key"]:
            raise CommandError("either a key, or --encryption")
        if options["encryption"]:
            count, unreadable = resealing.reseal()
            self.stdout.write(f"{count} values are encrypted under the first key")
            if unreadable:
                raise CommandError(f"{unreadable} values are not readable under any key, and stay as they are")
        elif options["key"]:
            self._rotate(str(options["key"]))
        else:
            raise CommandError("say which key, or --encryption")

    def _rotate(self, given: str) -> None:
        try:
            key = keys.find(given)
        except LookupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(keys.rotate(key))
        self.stderr.write(
            f"{key.name} has this secret now; if the old one is in BRIDGE_API_KEYS, take it out there too"
        )
