"""What was said: conversations, their messages as a prefix tree, turns with every hop, tool calls.

Ids of conversations and turns are minted by the process that makes them (`conversations.ids`), so that rows which
refer to each other can be written in one batch. Content is bytes: tool output holds NULs, which PostgreSQL's text
refuses. Each index costs something with every turn: a foreign key has its own only where no other begins with it.
"""

from django.db import models

from conversations.models.configuration import ApiKey
from conversations.models.row_id import RowId
from conversations.secrets import opened


class Conversation(models.Model):
    class Recognised(models.TextChoices):
        THREAD = "thread", "message thread"
        HEADER = "header", "X-Conversation-ID"
        SESSION = "session", "Claude Code session"
        TOOL = "tool", "tool id of ours"
        PREFIX = "prefix", "known history"
        NEW = "new", "new"

    id = RowId(primary_key=True)
    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="conversations", db_index=False)
    external_id = models.CharField("conversation id", max_length=255)
    recognised = models.CharField(max_length=8, choices=Recognised, default=Recognised.NEW)
    session_id = models.CharField(
        max_length=255, blank=True, default="", help_text="The Claude Code session it is part of."
    )
    agent_id = models.CharField(
        max_length=255, blank=True, default="", help_text="The sub-agent; empty for the main loop."
    )
    parent_agent_id = models.CharField(max_length=255, blank=True, default="")
    created_at = models.DateTimeField()
    last_activity = models.DateTimeField(db_index=True)
    held = models.BooleanField(default=False, help_text="A held conversation is never purged and cannot be terminated.")
    ended_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="Terminated or purged: nobody finds it any more, its rows are being deleted.",
    )
    content_purged_at = models.DateTimeField(
        null=True, editable=False, help_text="What was said before this is no longer kept."
    )
    turn_count = models.PositiveIntegerField(default=0)
    tool_count = models.PositiveIntegerField(default=0)
    last_model = models.CharField(max_length=200, blank=True, default="")
    last_status = models.CharField(max_length=8, blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["api_key", "external_id"], name="conversation_identity")]
        indexes = [
            models.Index(fields=["session_id"], name="conversation_session", condition=~models.Q(session_id="")),
            models.Index(fields=["ended_at"], name="conversation_ended", condition=models.Q(ended_at__isnull=False)),
        ]
        permissions = [("view_content", "Can read what was said in conversations")]

    def __str__(self) -> str:
        return self.external_id

    @property
    def message_total(self) -> int:
        return self.messages.aggregate(total=models.Sum("span"))["total"] or 0


class Message(models.Model):
    """One node of a conversation's prefix tree. A resent history adds no rows; a rewind becomes a branch."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages", db_index=False)
    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+", db_index=False)
    chain_hash = models.BinaryField(max_length=16)
    parent_hash = models.BinaryField(max_length=16)
    depth = models.PositiveIntegerField()
    answers = models.PositiveIntegerField(
        default=0, help_text="How many answers of the bridge are in the chain up to here."
    )
    span = models.IntegerField(
        default=1,
        db_default=1,
        help_text="How many messages are in it. The hash and the depth are those of the last one.",
    )
    role = models.CharField(max_length=9)
    content = models.BinaryField(help_text="Normalised blocks, JSON; of several messages, all of them, compressed.")
    turn = models.ForeignKey(
        "Turn",
        on_delete=models.CASCADE,
        related_name="messages",
        help_text="The turn that brought it, or that it answers.",
    )
    message_id = models.CharField(max_length=64, blank=True, default="", help_text="msg_… of an answer.")
    upstream = models.CharField(max_length=64, blank=True, default="")
    model = models.CharField(max_length=200, blank=True, default="")
    state = models.BinaryField(default=b"", help_text="What the upstream needs back with this message.")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["conversation", "chain_hash"], name="message_node")]
        indexes = [
            models.Index(fields=["api_key", "chain_hash"], name="message_chain", condition=models.Q(answers__gt=0)),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.depth}"


class TurnStatus(models.TextChoices):
    RUNNING = "running"
    COMPLETE = "complete"
    ABORTED = "aborted"
    ERROR = "error"


class Turn(models.Model):
    """One request, every hop of it."""

    id = RowId(primary_key=True)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="turns", db_index=False)
    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+", db_index=False)
    process = models.BigIntegerField(help_text="The web process that runs or ran it.")
    request_id = models.CharField(max_length=64, unique=True)
    message_id = models.CharField(max_length=64, help_text="msg_… of its answer.")
    status = models.CharField(max_length=8, choices=TurnStatus, default=TurnStatus.RUNNING)
    started_at = models.DateTimeField(help_text="The id has it, too, and is its index.")
    # what was asked
    requested_model = models.CharField(max_length=200)
    params = models.BinaryField(default=b"{}", help_text="The request without system, tools and messages.")
    headers = models.BinaryField(default=b"{}", help_text="Received headers, without secrets.")
    stream = models.BooleanField(default=False)
    head_hash = models.BinaryField(max_length=16, default=b"", help_text="The last message of the request.")
    system_digest = models.BinaryField(max_length=16, default=b"")
    tools_digest = models.BinaryField(max_length=16, default=b"")
    # where it went
    upstream = models.CharField(max_length=64, blank=True, default="")
    resolved_model = models.CharField(max_length=200, blank=True, default="")
    returned_model = models.CharField(max_length=200, blank=True, default="")
    attempts = models.BinaryField(default=b"[]")
    notes = models.BinaryField(default=b"[]", help_text="Repairs, substitutions, degradations and policies, JSON.")
    note_count = models.PositiveIntegerField(default=0)
    sent_parent = models.BigIntegerField(null=True, help_text="The turn whose request this one's starts with.")
    sent_prefix = models.PositiveIntegerField(default=0)
    sent_tail = models.BinaryField(default=b"", help_text="The rest of the request as sent, compressed.")
    sent_meta = models.BinaryField(default=b"{}")
    sent_depth = models.PositiveSmallIntegerField(default=0)
    # what came back
    answer = models.BinaryField(default=b"", help_text="The upstream's raw answer, compressed.")
    answer_meta = models.BinaryField(default=b"{}")
    answer_hash = models.BinaryField(max_length=16, default=b"")
    stop_reason = models.CharField(max_length=32, blank=True, default="")
    http_status = models.PositiveSmallIntegerField(default=0)
    error_type = models.CharField(max_length=64, blank=True, default="")
    error_message = models.TextField(blank=True, default="")
    # figures
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cache_read = models.PositiveBigIntegerField(default=0)
    cache_write = models.PositiveBigIntegerField(default=0)
    thinking_tokens = models.PositiveBigIntegerField(default=0)
    usage_estimated = models.BooleanField(default=False)
    cost_micros = models.BigIntegerField(default=0, help_text="Millionths of a dollar.")
    tool_count = models.PositiveIntegerField(default=0)
    state_ms = models.FloatField(default=0, help_text="Time in the bridge before the upstream was called.")
    first_byte_ms = models.FloatField(default=0)
    first_token_ms = models.FloatField(default=0)
    duration_ms = models.FloatField(default=0)

    class Meta:
        indexes = [
            models.Index(fields=["conversation", "id"], name="turn_conversation"),
            models.Index(fields=["api_key", "message_id"], name="turn_message"),
            models.Index(fields=["process"], name="turn_running", condition=models.Q(status="running")),
            # Of each, few: most turns are complete, and in no index for it.
            models.Index(fields=["id"], name="turn_error", condition=models.Q(status="error")),
            models.Index(fields=["id"], name="turn_aborted", condition=models.Q(status="aborted")),
        ]

    def __str__(self) -> str:
        return self.request_id


class ToolStatus(models.TextChoices):
    STREAMING = "streaming", "arguments not complete"
    PENDING = "pending", "waiting for its result"
    ANSWERED = "answered"
    FAILED = "failed", "answered with an error"
    TRUNCATED = "truncated", "cut off by the token limit"
    REPAIRED = "repaired", "its result never came; the model was told so"


class ToolMapping(models.Model):
    """A tool call: the client's id on one side, the upstream's on the other."""

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="tool_mappings", db_index=False
    )
    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="+", db_index=False)
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="tool_mappings")
    tool_use_id = models.CharField(max_length=255)
    tool_name = models.CharField(max_length=200, db_index=True)
    upstream = models.CharField(max_length=64)
    model = models.CharField(max_length=200, blank=True, default="")
    upstream_name = models.CharField(max_length=200)
    # Some gateways put a signature into it: far more than 255 characters.
    upstream_call_id = models.TextField(blank=True, default="")
    ordinal = models.PositiveIntegerField(default=0)
    arguments = models.BinaryField(default=b"")
    state = models.BinaryField(default=b"")
    status = models.CharField(max_length=9, choices=ToolStatus, default=ToolStatus.STREAMING)
    is_error = models.BooleanField(default=False)
    result_size = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(db_index=True)
    answered_at = models.DateTimeField(null=True)
    answered_turn = models.BigIntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["conversation", "tool_use_id"], name="tool_mapping_identity")]
        indexes = [
            models.Index(fields=["api_key", "tool_use_id"], name="tool_mapping_lookup"),
            models.Index(
                fields=["upstream_call_id"], name="tool_mapping_upstream", condition=~models.Q(upstream_call_id="")
            ),
            models.Index(fields=["status", "created_at"], name="tool_mapping_status"),
        ]

    def __str__(self) -> str:
        return f"{self.tool_name} {self.tool_use_id}"

    @property
    def call_arguments(self) -> bytes:
        """As they were made, also where they are encrypted; b"" where the key for that is gone."""
        return opened(bytes(self.arguments))


class SearchedTurn(models.Model):
    """A turn whose words can be found. Where the words are, the database decides: `conversations.search`."""

    turn = models.BigIntegerField(primary_key=True)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="searched_turns")

    def __str__(self) -> str:
        return f"turn {self.turn}"


class Blob(models.Model):
    """System prompts and tool lists: large, and the same in every turn of a conversation."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="blobs", db_index=False)
    digest = models.BinaryField(max_length=16)
    data = models.BinaryField(help_text="Compressed JSON.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["conversation", "digest"], name="blob_identity")]

    def __str__(self) -> str:
        return bytes(self.digest).hex()
