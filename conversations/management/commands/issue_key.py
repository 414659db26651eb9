"""`manage.py issue_key NAME`: a new API key, shown once; its limits as options."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations import keys
from conversations.models import ApiKey

CHOICES = (
    "storage",
    "expires_at",
    "allowed_routes",
    "requests_per_minute",
    "concurrent_streams",
    "daily_tokens",
    "monthly_tokens",
    "daily_dollars",
    "monthly_dollars",
    "content_hours",
    "inactivity_hours",
    "ledger_days",
)
FIELDS = {field.name: field for field in ApiKey._meta.concrete_fields}


class Command(BaseCommand):
    help = "Issue an API key and print it; it cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="who or what will use it")
        for name in CHOICES:
            # argparse takes a % for its own.
            text = str(FIELDS[name].help_text).replace("%", "%%")
            choices = [value for value, _ in FIELDS[name].choices or ()] or None
            parser.add_argument(f"--{name.replace('_', '-')}", choices=choices, help=text)

    def handle(self, *args: object, **options: object) -> None:
        given = {name: options[name] for name in ("name", *CHOICES) if options[name] is not None}
        chosen = {name: _cleaned(name, value) for name, value in given.items()}
        _, secret = keys.issue(**chosen)
        self.stdout.write(secret)


def _cleaned(name: str, value: object) -> Any:
    """As the admin's form takes it: a time without a zone is one of UTC, and a number is finite."""
    try:
        entered = FIELDS[name].formfield().clean(value)  # type: ignore[union-attr]  # none of these is without
        return FIELDS[name].clean(entered, None)
    except ValidationError as error:
        raise CommandError(f"{name.replace('_', '-')}: {'; '.join(error.messages)}") from error
