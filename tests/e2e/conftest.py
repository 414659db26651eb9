"""Real clients against the real bridge; the fixtures are those of the API's tests."""

from tests.api.conftest import (
    client,
    connect,
    database,
    postgres_served,
    serve,
    serve_shared,
    served,
    shared_upstream,
    sqlite_served,
)

__all__ = [
    "client",
    "connect",
    "database",
    "postgres_served",
    "serve",
    "serve_shared",
    "served",
    "shared_upstream",
    "sqlite_served",
]
