"""What processes tell each other through the database: that they live, what changed, what they have claimed."""

from django.db import models

from conversations.models.configuration import ApiKey
from conversations.models.history import Conversation


class Process(models.Model):
    """A web process. Its turns are closed by the reconciler once it has not been seen for a while."""

    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    form = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        help_text="The newest form of rows that it reads: none is written that another one cannot.",
    )
    figures = models.BinaryField(default=b"", help_text="Its metrics as it last told them, JSON.")

    class Meta:
        verbose_name_plural = "processes"

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"


class Tally(models.Model):
    """A counter that outlives the processes which count: purges, and what ended processes had counted."""

    name = models.CharField(max_length=255, unique=True)
    value = models.FloatField(default=0)

    class Meta:
        verbose_name_plural = "tallies"

    def __str__(self) -> str:
        return self.name


class Change(models.Model):
    """Something that caches must forget. Every process reads the new rows twice a second."""

    kind = models.CharField(max_length=16)
    ref = models.TextField(help_text="What it is about; of a purge, all its conversations.")
    created_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.ref}"


class Claim(models.Model):
    """Exactly one turn may continue a thread's message; exactly one may run the same request."""

    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+", db_index=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="claims")
    kind = models.CharField(max_length=8)  # thread, request
    token = models.CharField(max_length=64)
    turn = models.BigIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["api_key", "kind", "token"], name="claim_identity")]
        # Those of requests are swept after a while; the others stay as long as their conversation.
        indexes = [models.Index(fields=["created_at"], name="claim_request", condition=models.Q(kind="request"))]

    def __str__(self) -> str:
        return f"{self.kind} {self.token}"


class LiveSnapshot(models.Model):
    """What a running turn has said so far, while somebody watches. Gone when the turn ends."""

    turn = models.BigIntegerField(primary_key=True)
    conversation = models.BigIntegerField(db_index=True)
    sequence = models.PositiveIntegerField()
    content = models.BinaryField(help_text="Blocks, JSON; the newest part of long ones.")
    updated_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"turn {self.turn}, {self.sequence}"
