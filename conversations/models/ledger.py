"""The ledger: what was used. No content; it survives the purging of conversations."""

from django.db import models

from conversations.models.configuration import ApiKey


class UsageEntry(models.Model):
    """One upstream attempt."""

    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="usage", db_index=False)
    conversation_id = models.CharField(max_length=255)
    request_id = models.CharField(max_length=64, db_index=True)
    attempt = models.PositiveSmallIntegerField(default=1)
    created_at = models.DateTimeField(db_index=True)
    requested_model = models.CharField(max_length=200)
    upstream = models.CharField(max_length=64)
    model = models.CharField("resolved model", max_length=200)
    returned_model = models.CharField(max_length=200, blank=True, default="")
    status = models.CharField(max_length=8)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cache_read = models.PositiveBigIntegerField(default=0)
    cache_write = models.PositiveBigIntegerField(default=0)
    thinking_tokens = models.PositiveBigIntegerField(default=0)
    estimated = models.BooleanField(default=False)
    cost_micros = models.BigIntegerField(default=0, help_text="Millionths of a dollar.")
    tool_count = models.PositiveIntegerField(default=0)
    duration_ms = models.FloatField(default=0)
    first_token_ms = models.FloatField(default=0)

    class Meta:
        verbose_name_plural = "usage entries"
        indexes = [models.Index(fields=["api_key", "created_at"], name="usage_key_time")]

    def __str__(self) -> str:
        return f"{self.request_id} #{self.attempt}"


class ToolEntry(models.Model):
    """The calls of one tool in one answer."""

    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+", db_index=False)
    request_id = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_index=True)
    upstream = models.CharField(max_length=64)
    model = models.CharField(max_length=200)
    tool_name = models.CharField(max_length=200)
    calls = models.PositiveIntegerField(default=1)

    class Meta:
        verbose_name_plural = "tool entries"
        indexes = [models.Index(fields=["api_key", "created_at"], name="tool_key_time")]

    def __str__(self) -> str:
        return f"{self.tool_name} × {self.calls}"
