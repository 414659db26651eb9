"""What is proven, in the order of the table in docs/reliability.md; a test names one with `@pytest.mark.proves`."""

from typing import NamedTuple


class Property(NamedTuple):
    says: str
    full_size: str


PROPERTIES = {
    "chains": Property(
        "Multi-turn tool chains over all dialects with transient faults of upstream, store and network: at least 99.9 % "
        "complete, no unknown tool name",
        "10,000 chains",
    ),
    "kill": Property(
        "The server is killed at every event boundary and at random bytes of every provider's streams: every tool call "
        "that a client saw is known after the restart, no turn stays `running`",
        "8 captures exhaustively + 2,000 random kills, SQLite and PostgreSQL",
    ),
    "database": Property(
        "The database dies under 50 requests/s (SIGKILL, disk full, read-only, locked, connection limit, stalls of 5 s): "
        "no valid key gets 401 or 403, answers within 2 s are 529 or 503 with `retry-after`, `/readyz` 503 while "
        "`/livez` 200, recovery within 10 s, no connection leaked, no call shown but not stored",
        "20 outages of 60 s",
    ),
    "broker": Property(
        "Redis and the broker die: requests go on, limits degrade as documented, the live view reconnects, no task that "
        "matters is lost",
        "20 rounds",
    ),
    "streams": Property(
        "Exactly one terminator and legal blocks for every capture cut at every byte and for fuzzed upstream streams: a "
        "valid answer or error, no traceback, no hang",
        "every byte of all captures + 1,000,000 fuzzed streams",
    ),
    "endpoints": Property(
        "Schema-aware fuzz of our own endpoints and admin parameters: no 500, every error in Anthropic's shape with a "
        "request id",
        "1,000,000 requests",
    ),
    "histories": Property(
        "Any sub-history that a client may send yields a legal upstream request for all validators",
        "200,000 conversations",
    ),
    "isolation": Property(
        "Nothing of one key's conversations reaches another key, whatever ids and headers it sends", "100,000 probes"
    ),
    "authentication": Property(
        "Every URL of the project with header, host, path and duplicate-header tricks: nothing opens without a credential",
        "5,000 combinations",
    ),
    "secrets": Property(
        "Canaries everywhere a secret can be: none in logs, rows, pages, exports, errors, process list, metrics",
        "12 canaries",
    ),
    "disconnects": Property(
        "A client leaves before the first upstream byte, in mid-stream, or a whole answer: the upstream is closed within "
        "1 s, the turn stored as aborted with its usage",
        "1,000 of 1,000",
    ),
    "silence": Property(
        "The status line is held at most 15 s, no gap between bytes over 12 s, an error at the idle deadline, and an "
        "identical resend in flight makes one upstream call",
        "100 streams, 6 minutes real time",
    ),
    "purge": Property(
        "Purge under load (two beats, clock skew of 5 minutes, SIGKILL in mid-batch, 200 active clients): no active or "
        "held conversation deleted, no orphan rows",
        "10,000 batches",
    ),
    "restart": Property(
        "SIGTERM under 50 streams: all finish within the grace period or end in `event: error`; nothing is lost",
        "20 rolling restarts",
    ),
    "abuse": Property(
        "Slow-loris, half-open sockets, bodies of 32 MB, histories of 100,000 messages, 10,000 tools: memory bounded, "
        "the median of the other clients within 20 % of the usual",
        "each",
    ),
    "soak": Property(
        "Mixed stream, tool and abort traffic: memory slope under 1 MB per 10,000 requests, file descriptors and tasks flat",
        "200,000 requests",
    ),
}
