"""Turns that an operator ran again: kept beside the conversation, never in it."""

import datetime as dt

from django.db import models
from django.utils import timezone

from conversations.models.history import Conversation, Turn

LONGEST = dt.timedelta(minutes=6)  # a replay is given up before


class ReplayStatus(models.TextChoices):
    RUNNING = "running"
    COMPLETE = "complete"
    ERROR = "error"


class Replay(models.Model):
    """What an upstream answered to a stored turn, asked again."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="replays")
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="replays")
    target = models.CharField(max_length=265)
    exact = models.BooleanField(help_text="The stored request byte for byte; else made anew for its target.")
    round_number = models.PositiveSmallIntegerField(default=0, help_text="A later round of the turn; 0: its first.")
    status = models.CharField(max_length=8, choices=ReplayStatus, default=ReplayStatus.RUNNING)
    who = models.CharField("operator", max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    sent = models.BinaryField(default=b"", help_text="The request as sent, compressed; empty if it is the turn's own.")
    notes = models.BinaryField(default=b"[]")
    answer = models.BinaryField(default=b"", help_text="The upstream's raw answer, compressed.")
    content = models.BinaryField(default=b"[]", help_text="The answer's blocks, JSON.")
    stop_reason = models.CharField(max_length=32, blank=True, default="")
    error_type = models.CharField(max_length=64, blank=True, default="")
    error_message = models.TextField(blank=True, default="")
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cache_read = models.PositiveBigIntegerField(default=0)
    cache_write = models.PositiveBigIntegerField(default=0)
    thinking_tokens = models.PositiveBigIntegerField(default=0)
    usage_estimated = models.BooleanField(default=False)
    cost_micros = models.BigIntegerField(default=0, help_text="Millionths of a dollar.")
    first_byte_ms = models.FloatField(default=0)
    first_token_ms = models.FloatField(default=0)
    duration_ms = models.FloatField(default=0)

    def __str__(self) -> str:
        return f"replay {self.pk} through {self.target}"

    @property
    def interrupted(self) -> bool:
        """The process that ran it went away."""
        return self.status == ReplayStatus.RUNNING and self.created_at < timezone.now() - LONGEST
