"""Fixtures of the whole suite, and its one rule: under BRIDGE_TEST_STRICT a skipped test is a failed one.

Django's settings are read after this module was imported; until then it gives them an environment of their own.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import django
import hypothesis
import pytest

from tests.servers.bridge import PROJECT, Bridge
from tests.servers.postgres import Postgres, running_postgres
from tests.servers.upstream import ScriptedUpstream
from tests.servers.valkey import running_valkey
from tests.torture.ledger import proof, pytest_collection_modifyitems, pytest_pyfunc_call, trials

__all__ = ["proof", "pytest_collection_modifyitems", "pytest_pyfunc_call", "trials"]

STRICT = os.environ.get("BRIDGE_TEST_STRICT") == "1"

# Nothing of the developer's own configuration reaches the tests.
CONFIGURATION = re.compile(
    r"BRIDGE_(?!TEST_).*|MODEL_MAP_.*|.*_API_KEYS?|.*_BASE_URL|ANTHROPIC_UPSTREAM_URL"
    r"|DATABASE_URL|REDIS_URL|CELERY_BROKER_URL|HOST|PORT|WEB_WORKERS"
)
for variable in filter(CONFIGURATION.fullmatch, list(os.environ)):
    del os.environ[variable]
os.environ["DJANGO_SETTINGS_MODULE"] = "bridge_project.settings"
os.environ["BRIDGE_HOME"] = tempfile.mkdtemp(prefix="toolbridge-tests-")

# How long an example takes is the machine's matter.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")

StartBridge = Callable[..., Bridge]


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ["BRIDGE_HOME"], ignore_errors=True)


def pytest_configure(config: pytest.Config) -> None:
    """pytest-django looked for settings before this module named them; test modules import models, so set up now."""
    if config.pluginmanager.hasplugin("django"):
        django.setup()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if STRICT and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if STRICT and report.skipped:
        report.outcome = "failed"
    return report


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Postgres) -> str:
    """A database of its own for each test."""
    return postgres.create_database()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_valkey(tmp_path_factory.mktemp("valkey")) as url:
        yield url


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as server:
        yield server


@pytest.fixture
def start_bridge(tmp_path: Path) -> Iterator[StartBridge]:
    """Call it with environment variables to get a running bridge; each call has a home of its own."""
    bridges: list[Bridge] = []

    def start(**environment: str) -> Bridge:
        bridge = Bridge(tmp_path / f"home-{len(bridges)}", environment)
        bridges.append(bridge)
        bridge.start()
        return bridge

    yield start
    for bridge in bridges:
        bridge.stop()


@pytest.fixture(scope="session")
def claude_code() -> str:
    """Claude Code's command, which `make test` installs where npm is to be had."""
    command = PROJECT / ".claude-code" / "node_modules" / ".bin" / "claude"
    if not command.exists():
        pytest.skip("no Claude Code: `make claude` could not install it")
    return str(command)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The system's browser, which `make test` installs where it may."""
    command = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if command is None:
        pytest.skip("no Chromium: `make browser` could not install it")
    return command
