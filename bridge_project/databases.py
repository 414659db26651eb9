"""DATABASE_URL as Django's database settings, for the embedded SQLite and for PostgreSQL."""

from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote

from django.core.exceptions import ImproperlyConfigured

from bridge_project.environment import split

# WAL lets readers and the one writer work side by side; FULL makes each commit survive a power cut.
SQLITE_PRAGMAS = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON"


# A server that is gone without a word is noticed in half a minute, not in the system's two hours.
ALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 15_000}
# No CONN_MAX_AGE: a page has a thread of its own, and what that keeps nobody takes, nor closes.


def database(url: str | None, home: Path) -> dict[str, Any]:
    if url is None:
        return sqlite(str(home / "bridge.sqlite3"))
    parts = split("DATABASE_URL", url)
    match parts.scheme:
        case "sqlite":
            # sqlite:///relative.db and sqlite:////absolute.db: the first slash only separates.
            path = unquote(parts.path)[1:]
            if parts.netloc or not path:
                raise ImproperlyConfigured("DATABASE_URL must be sqlite:///relative/path or sqlite:////absolute/path")
            return sqlite(path)
        case "postgres" | "postgresql":
            return postgresql(parts)
        case scheme:
            raise ImproperlyConfigured(f"DATABASE_URL has the scheme {scheme!r}; it must be postgres or sqlite")


def sqlite(path: str) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        # IMMEDIATE: a deferred transaction that turns writer beside another one fails at once, whatever the timeout.
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 10, "init_command": SQLITE_PRAGMAS},
        # The writer has its own connection, which an in-memory test database would not reach.
        "TEST": {"NAME": f"{path}.test"},
    }


def postgresql(parts: SplitResult) -> dict[str, Any]:
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise ImproperlyConfigured("DATABASE_URL names no database: postgres://user:password@host:port/name")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        # A percent-encoded host is a socket directory.
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        # Behind pgbouncer in transaction mode the next statement may reach another server connection: nothing may be
        # left behind on one, neither a cursor nor a prepared statement.
        "DISABLE_SERVER_SIDE_CURSORS": True,
        "OPTIONS": {"connect_timeout": 5, **ALIVE, "prepare_threshold": None, **dict(parse_qsl(parts.query))},
    }
