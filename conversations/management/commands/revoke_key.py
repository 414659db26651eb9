"""`manage.py revoke_key KEY`: by name, prefix or the key itself."""

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q

from conversations import keys
from conversations.models import ApiKey


class Command(BaseCommand):
    help = "Revoke an API key, effective in every process within a second."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key", help="its name, its first characters, or the key itself")

    def handle(self, *args: object, **options: object) -> None:
        given = str(options["key"])
        found = ApiKey.objects.filter(revoked_at=None).filter(
            Q(name=given) | Q(prefix=given) | Q(digest=keys.digest(given))
        )
        match list(found[:2]):
            case [key]:
                keys.revoke(key)
                self.stdout.write(f"revoked {key}")
            case []:
                raise CommandError(f"no usable key is called {given}")
            case _:
                raise CommandError(f"several keys match {given}: give more of it")
