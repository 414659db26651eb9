"""One bridge for all tests of a worker; each test gives it upstreams and routes of its own, while it runs."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.api.conftest import Serve, Served, serve, serve_shared, shared_upstream
from tests.routing.lab import ENCRYPTION, Lab
from tests.servers.upstream import ScriptedUpstream

__all__ = ["serve", "serve_shared", "shared_upstream"]


@pytest.fixture(scope="session")
def routed(serve_shared: Serve) -> Served:
    return serve_shared(
        BRIDGE_ENCRYPTION_KEYS=ENCRYPTION, BRIDGE_UPSTREAM_RETRIES="1", BRIDGE_UPSTREAM_IDLE_SECONDS="1"
    )


@pytest.fixture
def encryption(settings: Settings) -> None:
    """Rows are encrypted here and decrypted there."""
    settings.BRIDGE_ENCRYPTION_KEYS = (ENCRYPTION,)


@pytest.fixture
def lab(routed: Served, shared_upstream: ScriptedUpstream, encryption: None) -> Iterator[Lab]:
    shared_upstream.reset()
    made = Lab(routed)
    yield made
    made.close()
