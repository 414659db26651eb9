"""Where requests go: what an operator decides over the environment's defaults, and what upstreams taught."""

from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone

from translation.providers.profiles import PROFILES

PROVIDERS = [(name, f"{profile.title} ({name})") for name, profile in PROFILES.items() if name != "demo"]
NAME = RegexValidator(r"^[a-z0-9][a-z0-9._-]*\Z", "Lower-case letters, digits, dots, hyphens and underscores.")
TARGET = RegexValidator(r"^[a-z0-9][a-z0-9._-]*/\S+\Z", "It must be upstream/model.")


class Upstream(models.Model):
    """A provider's API under a name. One with the name of a provider replaces what the environment says about it."""

    name = models.CharField(
        max_length=64,
        unique=True,
        validators=[NAME],
        help_text="Its models are asked for as name/model. A provider's own name replaces the environment's settings.",
    )
    provider = models.CharField(max_length=32, choices=PROVIDERS, help_text="What it speaks, and what it can do.")
    base_url = models.CharField(
        "base URL",
        max_length=500,
        blank=True,
        default="",
        help_text="With its version path (https://…/v1). Empty: the provider's own.",
    )
    secret = models.BinaryField(default=b"", editable=False)  # its keys, one per line, encrypted
    key_count = models.PositiveSmallIntegerField(default=0, editable=False)
    enabled = models.BooleanField(default=True, help_text="Off: nothing is sent to it, whatever the environment says.")
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Route(models.Model):
    """Which upstream answers for which model names, and how."""

    pattern = models.CharField(
        max_length=200,
        help_text="Of the names that clients ask for, in any case: claude-*opus*, gpt-5*, openai/*, *.",
    )
    priority = models.SmallIntegerField(
        default=0, help_text="Of several that match, the highest counts; then the longest pattern."
    )
    target = models.CharField(
        max_length=265,
        validators=[TARGET],
        help_text="upstream/model. With * as the model: the name that the client asked for.",
    )
    fallbacks = models.TextField(
        blank=True,
        default="",
        help_text="Targets to ask instead when the one before fails, one per line. Only before anything is shown.",
    )
    policy = models.CharField(
        max_length=12,
        blank=True,
        default="",
        choices=[("", "as BRIDGE_POLICY says"), ("agentic", "agentic"), ("conservative", "conservative")],
    )
    switches = models.TextField(blank=True, default="", editable=False)  # lines: `drop_echo off`
    guardrail = models.TextField("guardrail sentence", blank=True, default="", help_text="Empty: the default.")
    read_cues = models.TextField("cues to read", blank=True, default="", help_text="One per line. Empty: the default.")
    write_cues = models.TextField(
        "cues to write", blank=True, default="", help_text="One per line. Empty: the default."
    )
    read_only_tools = models.TextField(blank=True, default="", help_text="One per line. Empty: the default.")
    guidance = models.TextField(
        blank=True, default="", help_text="Added to the system prompt. Not toward Anthropic, like all policies."
    )
    stream_upstream = models.BooleanField(
        "stream upstream",
        default=True,
        help_text="Off: the upstream is called without streaming; clients that want a stream still get one.",
    )
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ("-priority", "pattern", "id")

    def __str__(self) -> str:
        return f"{self.pattern} → {self.target}"


class Learned(models.Model):
    """A parameter that an upstream's model refused: renamed or left out from then on."""

    upstream = models.CharField(max_length=64)
    model = models.CharField(max_length=200)
    remedy = models.CharField(max_length=500)  # JSON
    why = models.TextField("what the upstream said")
    learned_at = models.DateTimeField()

    class Meta:
        verbose_name = "lesson"
        constraints = [models.UniqueConstraint(fields=["upstream", "model", "remedy"], name="learned_once")]

    def __str__(self) -> str:
        return f"{self.upstream}/{self.model}"


class Rest(models.Model):
    """A key that was refused or limited, or an upstream that could not be reached: left alone for a while."""

    upstream = models.CharField(max_length=64)
    key = models.PositiveSmallIntegerField(help_text="Its number among the upstream's keys; 0: the upstream itself.")
    reason = models.CharField(max_length=200)
    since = models.DateTimeField()
    until = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["upstream", "key"], name="rest_of")]

    def __str__(self) -> str:
        return f"{self.upstream}, key {self.key}" if self.key else self.upstream

    @property
    def is_over(self) -> bool:
        return self.until <= timezone.now()
