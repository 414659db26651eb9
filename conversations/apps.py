"""The app's registration with Django."""

from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    name = "conversations"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Toolbridge"

    def ready(self) -> None:
        from conversations import checks  # noqa: F401, PLC0415 - importing registers them; Django asks for it here
