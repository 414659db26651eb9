"""One bridge in front of one server with every provider's model, for all tests of a worker."""

import itertools
from collections.abc import Callable, Iterator

import pytest
from anthropic import Anthropic
from pytest_django import DjangoDbBlocker

from tests.e2e.dialects.models import Models
from tests.e2e.dialects.providers import settings
from tests.e2e.dialects.script import Chain
from tests.servers.bridge import Bridge
from tests.servers.client import Client
from tests.servers.records import Records, opened

NewChain = Callable[..., Chain]


@pytest.fixture(scope="session")
def all_models() -> Iterator[Models]:
    with Models() as server:
        yield server


@pytest.fixture(scope="session")
def bridge(all_models: Models, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    folder = tmp_path_factory.mktemp("dialects")
    database = f"sqlite:///{folder}/bridge.sqlite3"
    served = Bridge(folder / "home", {"DATABASE_URL": database, **settings(all_models.url)})
    served.start()
    yield served
    served.stop()


@pytest.fixture
def models(all_models: Models) -> Models:
    all_models.reset()
    return all_models


@pytest.fixture(scope="session")
def records(bridge: Bridge, django_db_blocker: DjangoDbBlocker) -> Iterator[Records]:
    folder = bridge.home.parent
    with django_db_blocker.unblock(), opened("dialects", f"sqlite:///{folder}/bridge.sqlite3") as found:
        yield found


@pytest.fixture
def bridge_key(bridge: Bridge) -> str:
    """The key of `sdk`."""
    return bridge.api_key


@pytest.fixture(scope="session")
def sdk(bridge: Bridge) -> Iterator[Anthropic]:
    with Anthropic(base_url=bridge.url, api_key=bridge.api_key, max_retries=0) as client:
        yield client


@pytest.fixture
def client(bridge: Bridge, records: Records) -> Iterator[Client]:
    """A client that hides nothing, with a key of its own."""
    connected = Client(bridge.url, records.issue())
    yield connected
    connected.close()


NUMBERS = itertools.count()


@pytest.fixture
def new_chain() -> NewChain:
    def new(ids: str = "own") -> Chain:
        return Chain(f"c{next(NUMBERS):04d}x", ids)

    return new
