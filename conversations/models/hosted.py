"""Tools that the bridge runs itself: what an operator or a key registered, its secrets, and every run."""

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models

from conversations.models.configuration import ApiKey
from conversations.models.history import Conversation, Turn

NAME = RegexValidator(r"^[a-zA-Z0-9_-]{1,64}\Z", "Letters, digits, _ and -, at most 64 of them.")


class ToolSecret(models.Model):
    """A value that goes into a header, and only to its host. It is encrypted, and never shown again."""

    owner = models.ForeignKey(ApiKey, on_delete=models.CASCADE, null=True, blank=True, related_name="+", editable=False)
    name = models.CharField(max_length=200, help_text="Headers name it in double braces: Bearer {{weather}}.")
    host = models.CharField(max_length=255, help_text="The only host that it is ever sent to.")
    value = models.BinaryField(editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="tool_secret_identity"),
            models.UniqueConstraint(
                fields=["name"], name="tool_secret_operators", condition=models.Q(owner__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return self.name


class HostedTool(models.Model):
    """One HTTP endpoint, or an MCP server with all its tools."""

    class Kind(models.TextChoices):
        HTTP = "http", "HTTP endpoint: one tool"
        MCP = "mcp", "MCP server: all its tools"

    class Method(models.TextChoices):
        GET = "GET"
        POST = "POST"
        PUT = "PUT"
        PATCH = "PATCH"
        DELETE = "DELETE"

    owner = models.ForeignKey(
        ApiKey,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="own_tools",
        help_text="The key that registered it for itself.",
    )
    name = models.CharField(
        max_length=64, validators=[NAME], help_text="What the model calls it; an MCP server's name."
    )
    kind = models.CharField(max_length=4, choices=Kind, default=Kind.HTTP)
    enabled = models.BooleanField(default=True)
    description = models.TextField(blank=True, default="", help_text="What the model is told about it.")
    url = models.CharField("URL", max_length=2000, help_text="Arguments in braces go into it: https://host/users/{id}.")
    method = models.CharField(
        max_length=6, choices=Method, default=Method.POST, help_text="GET and DELETE send arguments as a query."
    )
    schema = models.TextField(
        "input schema", blank=True, default='{"type": "object", "properties": {}}', help_text="A JSON Schema."
    )
    headers = models.TextField(
        blank=True,
        default="",
        help_text="One per line: Authorization: Bearer {{secret}}. Secrets go to their host only.",
    )
    timeout = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.1), MaxValueValidator(86_400)],
        help_text="Seconds; empty: the bridge's own limit.",
    )
    long_running = models.BooleanField(
        default=False, help_text="Runs on a worker and outlives the request; its result is picked up when it is there."
    )
    api_keys = models.ManyToManyField(ApiKey, blank=True, related_name="hosted", help_text="The keys it is offered to.")
    for_models = models.TextField(
        "models",
        blank=True,
        default="",
        help_text="It is also offered whenever one of these models is asked for, one per line.",
    )
    # the circuit breaker
    failures = models.PositiveIntegerField(default=0, editable=False, help_text="In a row.")
    open_until = models.DateTimeField(null=True, editable=False, help_text="Until then it is not called.")
    last_error = models.CharField(max_length=500, blank=True, default="", editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="hosted_tool_identity"),
            models.UniqueConstraint(
                fields=["name"], name="hosted_tool_operators", condition=models.Q(owner__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ExecutionStatus(models.TextChoices):
    QUEUED = "queued", "waits for a worker"
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed", "told to the model as an error"
    CANCELLED = "cancelled", "the client left"


class ToolExecution(models.Model):
    """One run of a tool. Of a long-running one this row is the truth: worker and web process meet here."""

    id = models.BigIntegerField(primary_key=True)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="tool_executions")
    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+", db_index=False)
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="tool_executions")
    tool = models.ForeignKey(
        HostedTool,
        on_delete=models.SET_NULL,
        null=True,
        related_name="executions",
        db_constraint=False,
        db_index=False,
    )
    tool_use_id = models.CharField(max_length=255)
    server_name = models.CharField(max_length=200)
    tool_name = models.CharField(max_length=200)
    round_number = models.PositiveSmallIntegerField(default=1)
    arguments = models.BinaryField(default=b"")
    state = models.BinaryField(default=b"", help_text="What the upstream needs back with this round's answer.")
    status = models.CharField(max_length=9, choices=ExecutionStatus, default=ExecutionStatus.RUNNING)
    long_running = models.BooleanField(default=False)
    result = models.BinaryField(default=b"", help_text="Text, as the model was told it.")
    result_size = models.PositiveIntegerField(default=0)
    is_error = models.BooleanField(default=False)
    error = models.CharField(max_length=32, blank=True, default="", help_text="What kind of failure it was.")
    progress = models.CharField(max_length=200, blank=True, default="")  # JSON: progress, total, message
    attempts = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(db_index=True)
    seen_at = models.DateTimeField(null=True, help_text="When its worker last said that it works on it.")
    finished_at = models.DateTimeField(null=True)
    duration_ms = models.FloatField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["conversation", "tool_use_id"], name="tool_execution_identity")]
        indexes = [
            models.Index(
                fields=["status", "seen_at"],
                name="tool_execution_waiting",
                condition=models.Q(long_running=True, status__in=("queued", "running")),
            ),
            models.Index(fields=["tool", "id"], name="tool_execution_tool"),
            models.Index(fields=["tool_name", "id"], name="tool_execution_name"),
        ]

    def __str__(self) -> str:
        return f"{self.tool_name} {self.tool_use_id}"


class Round(models.Model):
    """Each further call of the upstream inside one turn: what was sent beyond the call before it, what came back."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="rounds")
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="rounds")
    number = models.PositiveSmallIntegerField()
    sent_prefix = models.PositiveIntegerField(default=0)
    sent_tail = models.BinaryField(default=b"")
    answer = models.BinaryField(default=b"")
    answer_meta = models.BinaryField(default=b"{}")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["turn", "number"], name="round_identity")]

    def __str__(self) -> str:
        return f"round {self.number}"
