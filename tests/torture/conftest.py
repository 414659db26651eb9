"""The fixtures are those of the API's tests; `trials` and `proof` come from tests/conftest.py."""

from tests.api.conftest import (
    client,
    connect,
    database,
    other_client,
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
    "other_client",
    "postgres_served",
    "serve",
    "serve_shared",
    "served",
    "shared_upstream",
    "sqlite_served",
]
