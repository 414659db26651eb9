"""Secrets taken out of texts: those that the bridge knows, and what looks like one.

Log lines pass through `redact` on their way out. What an upstream says about a key is scrubbed before anybody reads it.
"""

import re
from collections.abc import Iterable

HIDDEN = "[hidden]"
SHORTEST = 8  # anything shorter would hide words of the text
PATTERNS = (
    r"(?<![\w-])(?:sk|pk|rk|xai|gsk|key)-[A-Za-z0-9_\-]{12,}",
    r"AIza[A-Za-z0-9_\-]{20,}",
    r"(?<=[Bb]earer )[^\s\"',;]{6,}",
    r"(?<=://)[^\s/@\"']*:[^\s/@\"']+(?=@)",
    r"(?<=[?&]key=)[^\s&\"']+",
    r"""(?i:(?<=_token["']:["'])|(?<=_token["']: ["'])|(?<=api_key["']:["'])|(?<=api_key["']: ["']))[^"']{6,}""",
)
_TOKENS = re.compile(rb'("authorization_token"\s*:\s*")(?:[^"\\]|\\.)*(")')


class _Known:
    """Of this process: its settings give the first, upstreams add theirs."""

    def __init__(self) -> None:
        self.secrets: set[str] = set()
        self.expression = re.compile("|".join(PATTERNS))

    def add(self, secrets: Iterable[str]) -> None:
        fresh = {secret for secret in secrets if len(secret) >= SHORTEST} - self.secrets
        if fresh:
            self.secrets |= fresh
            # The longest first: one may be the beginning of another.
            literal = (re.escape(secret) for secret in sorted(self.secrets, key=len, reverse=True))
            self.expression = re.compile("|".join((*literal, *PATTERNS)))


_known = _Known()


def hide(*secrets: str) -> None:
    """From now on these are taken out."""
    _known.add(secrets)


def redact(text: str) -> str:
    return _known.expression.sub(HIDDEN, text)


def scrub(data: bytes) -> bytes:
    """What an upstream says, byte for byte but for the secrets that are known."""
    for secret in sorted(_known.secrets, key=len, reverse=True):
        data = data.replace(secret.encode(), HIDDEN.encode())
    return data


def without_tokens(body: bytes) -> bytes:
    """A request as it may be kept: a client's tokens for its MCP servers are not."""
    return _TOKENS.sub(rb"\g<1>[hidden]\g<2>", body)
