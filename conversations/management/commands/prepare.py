"""`manage.py prepare`: migrations, the first operator and API key, once per deployment and before its web processes."""

from django.core.management.base import BaseCommand, CommandError

from bridge_project.up.errors import StartError
from bridge_project.up.preparation import prepare


class Command(BaseCommand):
    help = "Migrate, and make the first operator and API key; what was generated is printed, once."

    def handle(self, *args: object, **options: object) -> None:
        try:
            first_run = prepare()
        except StartError as error:
            raise CommandError(str(error)) from error
        if first_run.admin_password:
            self.stdout.write(f"admin password: {first_run.admin_password}")
        if first_run.api_key:
            self.stdout.write(f"API key: {first_run.api_key}")
