"""`manage.py purge_inactive`: what beat does every five minutes, now."""

from django.core.management.base import BaseCommand

from conversations import retention


class Command(BaseCommand):
    help = "Delete the conversations that were idle for BRIDGE_INACTIVITY_HOURS."

    def handle(self, *args: object, **options: object) -> None:
        self.stdout.write(f"{retention.purge()} conversations deleted")
