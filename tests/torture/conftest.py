"""The fixtures are those of the API's tests; `trials` and `proof` come from tests/conftest.py."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

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

HERE = Path(__file__).parent
CUT_OFF = "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The clients here are killed, cut and left in every way; what they leave open is no fault of the bridge's, which
    is another process. Everywhere else a socket that nobody closes fails the test."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(CUT_OFF))


@pytest.fixture(autouse=True)
def _nothing_left_for_others() -> Iterator[None]:
    yield
    gc.collect()


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
