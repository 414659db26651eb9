"""One spelling for each path: the `/anthropic` prefix, a slash at the end and the forms without `/v1` lead to the same
operations.

Paths with a conversation's id are matched undecoded, since an id may hold a slash.
"""

from typing import Any

ANTHROPIC = "/anthropic"
SHORT = ("/models", "/chat/completions", "/embeddings")
API = "/v1/"
MESSAGES = "/v1/messages"  # what nearly everybody asks for
UNDECODED = "/v1/conversations/"


def canonical(scope: dict[str, Any]) -> dict[str, Any]:
    path: str = scope["path"]
    if path == MESSAGES:
        return scope
    found = path.removeprefix(ANTHROPIC) if path.startswith(ANTHROPIC + "/") else path
    if found.startswith(SHORT):
        found = "/v1" + found.rstrip("/")
    elif found.startswith(UNDECODED):
        raw = scope.get("raw_path") or found.encode()
        found = raw.decode("latin-1").partition("?")[0].removeprefix(ANTHROPIC).rstrip("/")
    elif found.startswith(API):
        found = found.rstrip("/")
    return scope if found == path else {**scope, "path": found}
