"""What an operator decides: who may call."""

from django.db import models
from django.utils import timezone


class StorageLevel(models.TextChoices):
    FULL = "full", "Full: everything, as it was said"
    METADATA = "metadata", "Metadata: structure, sizes and tool mappings, no text"
    MINIMAL = "minimal", "Minimal: only what tool mapping needs"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self) -> "ApiKeyQuerySet":
        now = timezone.now()
        return self.filter(revoked_at=None).filter(models.Q(expires_at=None) | models.Q(expires_at__gt=now))


class ApiKey(models.Model):
    """A tenant. Conversations belong to a key, and nothing of one key can reach another."""

    name = models.CharField(max_length=100, help_text="Who or what uses this key.")
    prefix = models.CharField(max_length=16, editable=False, help_text="The first characters, to recognise it by.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    storage = models.CharField(
        max_length=8,
        choices=StorageLevel,
        default=StorageLevel.FULL,
        help_text="How much of this key's conversations is kept. Below full, message threads are not available.",
    )
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Empty: never.")
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def usable(self) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())
