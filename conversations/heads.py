"""What the head of a request says, but for how long its body is: worked out once for each head that differs, since a
client's are nearly all alike."""

import re

import msgspec

from conversations.callers import digests_of, secrets_of
from conversations.lines import KNOWN, LARGEST, Lines
from translation.client.identity import Identity, identity
from translation.memo import once

BETAS = b"anthropic-beta"
DEFAULT_VERSION = "2023-06-01"
STORED = 8_000  # bytes of headers that are kept with a turn
# Also those of proxies and of whoever comes next: what sounds like a secret is one.
SECRET = re.compile(r"auth|cookie|token|secret|password|credential|signature|api-?key|-key$", re.IGNORECASE)


class Head:
    def __init__(self, lines: Lines) -> None:
        self.names = {name.decode("latin-1"): value.decode("latin-1") for name, value in lines}
        if len(self.names) < len(lines) and BETAS.decode() in self.names:  # of others that come twice the last counts
            listed = b",".join(value for name, value in lines if name == BETAS)
            self.names[BETAS.decode()] = listed.decode("latin-1")

    @once
    def digests(self) -> tuple[str, ...]:
        """Of the keys that the client shows."""
        return digests_of(self.names)

    @once
    def identity(self) -> Identity:
        """Whose turn it is, as far as the head tells."""
        return identity(self.names, "")

    @once
    def version(self) -> str:
        return self.names.get("anthropic-version", DEFAULT_VERSION)

    @once
    def betas(self) -> tuple[str, ...]:
        listed = self.names.get(BETAS.decode(), "").split(",")
        return tuple([beta.strip() for beta in listed if beta.strip()])

    @once
    def coding(self) -> str:
        """How the body is packed."""
        return self.names.get("content-encoding", "").strip().lower()

    @once
    def stored(self) -> bytes:
        """As operators may see it: without its secrets."""
        hidden = secrets_of(self.names)
        shown = {name: value for name, value in self.names.items() if not SECRET.search(name) and value not in hidden}
        encoded = msgspec.json.encode(shown)
        return encoded if len(encoded) <= STORED else b"{}"


_known: dict[Lines, Head] = {}


def head_of(lines: Lines) -> Head:
    found = _known.get(lines)
    if found is None:
        found = Head(lines)
        if sum(len(name) + len(value) for name, value in lines) <= LARGEST:
            if len(_known) >= KNOWN:
                _known.clear()
            _known[lines] = found
    return found
