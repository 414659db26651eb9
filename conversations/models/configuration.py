"""What an operator decides: who may call, how much, and what a token costs."""

from decimal import Decimal

from django.core.validators import MinValueValidator
from django.db import models
from django.utils import timezone

SHARED = "Counted over all web processes when REDIS_URL is set, else in each process by itself."
TOKENS = "Tokens of all kinds: prompt, cached or not, and answer."
MONEY = "In dollars, by the price table."
DAY = "Per day (UTC); then 402 until the next."
MONTH = "Per month (UTC); then 402 until the next."


def _dollars(help_text: str) -> "models.DecimalField[Decimal | None, Decimal | None]":
    return models.DecimalField(
        max_digits=12, decimal_places=4, null=True, blank=True, validators=[MinValueValidator(0)], help_text=help_text
    )


def _per_million(help_text: str) -> "models.DecimalField[Decimal, Decimal]":
    return models.DecimalField(
        max_digits=12, decimal_places=4, default=Decimal(0), validators=[MinValueValidator(0)], help_text=help_text
    )


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
    allowed_routes = models.TextField(
        blank=True,
        default="",
        help_text="Patterns of the models that this key may ask for, one per line (claude-*, openai/*). Empty: all.",
    )
    hosted_tools = models.BooleanField(
        "may bring tools",
        default=False,
        help_text="May register tools that the bridge runs, and name MCP servers in its requests.",
    )
    # limits; empty is none
    requests_per_minute = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=f"In any sixty seconds. {SHARED}",
    )
    concurrent_streams = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=f"Requests that may run at the same time. {SHARED}",
    )
    daily_tokens = models.PositiveBigIntegerField(null=True, blank=True, help_text=f"{TOKENS} {DAY}")
    monthly_tokens = models.PositiveBigIntegerField(null=True, blank=True, help_text=f"{TOKENS} {MONTH}")
    daily_dollars = _dollars(f"{MONEY} {DAY}")
    monthly_dollars = _dollars(f"{MONEY} {MONTH}")
    # how long things are kept; empty is the bridge's own setting
    content_hours = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.01)],
        help_text="Text of a conversation that was idle this long is deleted; its structure and tool calls stay.",
    )
    inactivity_hours = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.01)],
        help_text="A conversation that was idle this long is deleted.",
    )
    ledger_days = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(32)],
        help_text="Usage entries are kept this long. A monthly budget needs a month of them.",
    )
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


class Price(models.Model):
    """What a model costs; takes precedence over the built-in table (`conversations.ledger`)."""

    pattern = models.CharField(
        max_length=200,
        unique=True,
        help_text="Of the model, or of upstream/model: gpt-5*, openrouter/*. If several match, the longest counts.",
    )
    input = _per_million("Dollars per million tokens of the prompt that came from no cache.")
    output = _per_million("Dollars per million tokens of the answer, thinking included.")
    cache_read = _per_million("Dollars per million tokens read from the upstream's cache.")
    cache_write = _per_million("Dollars per million tokens written to the upstream's cache.")

    class Meta:
        ordering = ("pattern",)

    def __str__(self) -> str:
        return self.pattern
