"""`make demo` in small, and what operators see of it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from tests.e2e.dialects.providers import NAMES
from tests.servers.bridge import PROJECT, clean_environment
from tests.servers.ports import free_port
from tests.servers.records import Records, opened

STORIES = 17  # each once


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "home"
    command = [sys.executable, "-m", "scripts.demo", "--home", str(folder), "--conversations", str(STORIES)]
    subprocess.run([*command, "--pace", "0.05"], cwd=PROJECT, env=clean_environment(folder, free_port()), check=True)
    return folder


@pytest.fixture(scope="module")
def records(home: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[Records]:
    with django_db_blocker.unblock(), opened("demo", f"sqlite:///{home}/bridge.sqlite3") as found:
        yield found


def test_the_demo_has_something_of_everything(records: Records) -> None:
    conversations, turns, calls = (records.rows(name) for name in ("Conversation", "Turn", "ToolMapping"))
    assert conversations.count() >= STORIES
    assert set(turns.values_list("upstream", flat=True)) >= set(NAMES) - {"minimax-m3"}
    assert set(turns.values_list("status", flat=True)) == {"complete", "error", "aborted"}
    assert {"answered", "failed", "pending"} <= set(calls.values_list("status", flat=True))
    assert conversations.filter(agent_id="agent-API-deep", parent_agent_id="agent-API").exists()
    assert conversations.filter(turn_count__gt=40).exists()
    assert records.rows("Round").exists()
    assert turns.filter(note_count__gt=0).exists()
    assert turns.filter(cost_micros__gt=0).exists()
    # The times are spread, in the order in which things happened.
    began = list(conversations.order_by("created_at").values_list("created_at", flat=True))
    assert (began[-1] - began[0]).total_seconds() > 10 * 3600
