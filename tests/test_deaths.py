"""A web process that dies leaves a lock that nobody holds: who starts next knows, and nobody alive is buried."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

import pytest
from django.utils import timezone

from conversations import deaths
from conversations.models import Process

pytestmark = pytest.mark.django_db


@pytest.fixture
def process() -> Process:
    return Process.objects.create(host="here", pid=1, started_at=timezone.now(), seen_at=timezone.now())


@pytest.fixture
def sign(tmp_path: Path, process: Process) -> Iterator[IO[str]]:
    sign = deaths.live(tmp_path, process)
    assert sign is not None
    with closing(sign):
        yield sign


def seen(process: Process) -> int:
    process.refresh_from_db()
    return process.seen_at.year


def test_the_living_are_left_alone(tmp_path: Path, process: Process, sign: IO[str]) -> None:
    deaths.bury(tmp_path)
    assert seen(process) > 1970
    sign.close()
    deaths.bury(tmp_path)
    assert seen(process) == 1970
    assert not list((tmp_path / "processes").iterdir())


def test_a_process_of_another_database_is_not_this_one(tmp_path: Path, process: Process, sign: IO[str]) -> None:
    sign.close()
    Process.objects.update(started_at=timezone.now())
    deaths.bury(tmp_path)
    assert seen(process) > 1970


def test_what_is_no_sign_is_left_where_it_is(tmp_path: Path, process: Process, sign: IO[str]) -> None:
    sign.close()
    (tmp_path / "processes" / str(process.pk)).write_text("nonsense")
    assert deaths.bury(tmp_path) == 0
    assert seen(process) > 1970


def test_a_home_that_cannot_be_written_is_only_said(
    tmp_path: Path, process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "processes").write_text("a file")
    assert deaths.live(tmp_path, process) is None
    assert "only its heartbeat" in caplog.text
    assert deaths.bury(tmp_path) == 0
