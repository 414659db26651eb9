"""What models cost unless a `Price` row says otherwise: dollars per million tokens, list prices of autumn 2026.

They are a convenience, not an invoice: discounts, long-context surcharges and hour-long cache writes are not in them.
"""

from msgspec import Struct


class Price(Struct, frozen=True):
    """Dollars per million tokens are millionths of a dollar per token."""

    pattern: str
    input: float
    output: float
    cache_read: float
    cache_write: float


FREE = Price("*", 0, 0, 0, 0)
# Servers of one's own, and the built-in demo.
OWN_UPSTREAMS = frozenset({"demo", "ollama", "vllm"})


def _claude(pattern: str, given: float, output: float, cached: float = 0.1) -> Price:
    return Price(pattern, given, output, given * cached, given * 1.25)


def _other(pattern: str, given: float, output: float, cache_read: float | None = None) -> Price:
    """Writing to the cache costs what reading afresh does."""
    return Price(pattern, given, output, given * 0.1 if cache_read is None else cache_read, given)


# Names are compared in lower case, without what is before the last slash, and with "-" for ".".
DEFAULTS = (
    _claude("claude-fable*", 10, 50),
    _claude("claude-fable-5-1*", 10, 50, 0.025),
    _claude("claude-opus*", 5, 25),
    _claude("claude-opus-5-5*", 4, 20, 0.05),
    _claude("claude-opus-4-0*", 15, 75),
    _claude("claude-opus-4-1*", 15, 75),
    _claude("claude-opus-4-2*", 15, 75),  # claude-opus-4-20250514
    _claude("claude-3-opus*", 15, 75),
    _claude("claude-sonnet*", 3, 15),
    _claude("claude-sonnet-5*", 2, 10),
    _claude("claude-sonnet-5-5*", 2, 10, 0.05),
    _claude("claude-3-*sonnet*", 3, 15),
    _claude("claude-haiku*", 1, 5),
    _claude("claude-haiku-5-5*", 0.1, 0.5),
    _claude("claude-3-5-haiku*", 0.8, 4),
    _claude("claude-3-haiku*", 0.25, 1.25),
    _other("gpt-5*", 1.25, 10),
    _other("gpt-5*-mini*", 0.25, 2),
    _other("gpt-5*-nano*", 0.05, 0.4),
    _other("gpt-5-pro*", 15, 120, 15),
    _other("gpt-5-2*", 1.75, 14),
    _other("gpt-5-4*", 2.5, 15),
    _other("gpt-5-4-mini*", 0.75, 4.5),
    _other("gpt-5-4-nano*", 0.2, 1.25),
    _other("gpt-5-5*", 5, 30),
    _other("gpt-4-1*", 2, 8, 0.5),
    _other("gpt-4-1-mini*", 0.4, 1.6, 0.1),
    _other("gpt-4-1-nano*", 0.1, 0.4, 0.025),
    _other("gpt-4o*", 2.5, 10, 1.25),
    _other("gpt-4o-mini*", 0.15, 0.6, 0.075),
    _other("o1*", 15, 60, 7.5),
    _other("o3*", 2, 8, 0.5),
    _other("o3-mini*", 1.1, 4.4, 0.55),
    _other("o4-mini*", 1.1, 4.4, 0.275),
    _other("text-embedding-3-small*", 0.02, 0),
    _other("text-embedding-3-large*", 0.13, 0),
    _other("text-embedding-ada*", 0.1, 0),
    _other("gemini-2-0-flash*", 0.1, 0.4),
    _other("gemini-2-5-flash*", 0.3, 2.5),
    _other("gemini-2-5-flash-lite*", 0.1, 0.4),
    _other("gemini-2-5-pro*", 1.25, 10),
    _other("gemini-3*-pro*", 2, 12),
    _other("gemini-3*-flash*", 0.5, 3),
    _other("gemini-3*-flash-lite*", 0.25, 1.5),
    _other("gemini-embedding*", 0.15, 0),
    _other("grok-3*", 3, 15, 0.75),
    _other("grok-4*", 3, 15, 0.75),
    _other("grok-4*-fast*", 0.2, 0.5, 0.05),
    _other("grok-code-fast*", 0.2, 1.5, 0.02),
    _other("deepseek*", 0.28, 0.42, 0.028),
    _other("deepseek-v4-flash*", 0.14, 0.28, 0.0028),
    _other("deepseek-v4-pro*", 0.435, 0.87, 0.0435),
    _other("kimi-k2*", 0.6, 2.5, 0.15),
    _other("glm-4*", 0.6, 2.2, 0.11),
    _other("glm-5*", 1, 3.2, 0.2),
    _other("minimax-m2*", 0.3, 1.2, 0.03),
    _other("minimax-m3*", 0.3, 1.2, 0.03),
    _other("mistral-large*", 0.5, 1.5, 0.05),
    _other("mistral-medium*", 0.4, 2, 0.04),
    _other("mistral-small*", 0.1, 0.3, 0.01),
    _other("codestral*", 0.3, 0.9, 0.03),
    _other("devstral*", 0.4, 2, 0.04),
)
