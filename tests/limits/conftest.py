"""Four web processes on PostgreSQL and Valkey, in front of a scripted upstream."""

from collections.abc import Iterator

import pytest

from tests.limits.cluster import CHAT, Cluster, chat_answer
from tests.servers.postgres import Postgres
from tests.servers.upstream import ScriptedUpstream


@pytest.fixture(scope="package")
def scripted() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as server:
        server.always(CHAT, chat_answer())
        yield server


@pytest.fixture(scope="package")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, postgres: Postgres, redis_url: str, scripted: ScriptedUpstream
) -> Iterator[Cluster]:
    environment = {
        "WEB_WORKERS": "4",
        "DATABASE_URL": postgres.create_database(),
        "REDIS_URL": redis_url,
        "OPENAI_BASE_URL": f"{scripted.url}/v1",
        "OPENAI_API_KEY": "sk-upstream",
        "BRIDGE_METRICS_TOKEN": "metrics-token",
    }
    cluster = Cluster(tmp_path_factory.mktemp("cluster") / "home", environment)
    cluster.start()
    yield cluster
    cluster.stop()
